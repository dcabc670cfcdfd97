"""Installs the package where nothing else is, without extras and with each, and uses it.

``make package`` runs it. ``test_package.py`` does the same in seconds with borrowed packages; here
pip installs them, which takes minutes: versions and wheels that pip would choose are tested too.
"""

import sys
import tempfile
import venv
from pathlib import Path

from test_package import EXTRAS, ROOT, run

SMOKE = (
    "data list",
    "train csbm --model gcn+mmp --epochs 2 --splits 0,1 --data-option nodes=60",
    "audit --nodes nodes.csv --edges edges.csv --label kind",
    "fit --nodes nodes.csv --edges edges.csv --label kind --models linear --trials 1 -o model",
    "predict model -o predictions.csv",
    "explain model -o page.html",
)
TABLES = {
    "nodes.csv": "id,size,kind\n" + "".join(f"n{i},{i % 7},{'ab'[i % 2]}\n" for i in range(60)),
    "edges.csv": "source,target\n" + "".join(f"n{i},n{(i * 7 + 1) % 60}\n" for i in range(60)),
}


def try_out(archive, extra):
    """Install an archive with an extra, and use it: nothing but its own remarks is printed."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        venv.create(folder, with_pip=True)
        python, words = folder / "bin" / "python", ["-m", "pip", "install", "--quiet"]
        wanted = f"{archive}[{extra}]" if extra else archive
        run([python, *words, "--constraint", ROOT / "constraints.txt", wanted])
        for file, text in TABLES.items():
            (folder / file).write_text(text)
        for command in SMOKE:
            _, err = run([folder / "bin" / "memohop", *command.split()], cwd=folder)
            foreign = [line for line in err.splitlines() if not line.startswith("memohop: ")]
            assert not foreign, (command, err)
        if extra in EXTRAS:
            assert run([python, "-c", EXTRAS[extra][1]], cwd=folder) == ("", "")


def main():
    """Build both archives and try them out."""
    with tempfile.TemporaryDirectory() as folder:
        run([sys.executable, "-m", "hatchling", "build", "-d", folder], cwd=ROOT)
        (wheel,), (source,) = Path(folder).glob("*.whl"), Path(folder).glob("*.tar.gz")
        for archive, extra in [(wheel, ""), (source, ""), *((wheel, extra) for extra in EXTRAS)]:
            try_out(archive, extra)
            sys.stdout.write(f"{archive.name}, {extra or 'no'} extra: works\n")


if __name__ == "__main__":
    main()
