"""The wheel and the source archive: built, installed where nothing else is, and used.

The environment is a new one, without any package. The wheel's own dependencies are lent to it, as
links to those of the environment that runs the tests, so that no gigabytes are installed: whatever
the wheel does not require, directly or through another, cannot be imported there.
"""

import os
import re
import subprocess
import sys
import tarfile
import venv
import zipfile
from email import message_from_bytes
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from memohop.version import __version__

ROOT = Path(__file__).parent.parent
EXTRAS = {  # what each brings, and a use that would print something or fail without it
    "metis": (
        "pymetis",
        "import torch; from memohop.parts.partition import partition\n"
        "partition(torch.tensor([[0, 1, 2], [1, 2, 3]]), 4, 2, method='metis')",
    ),
    "ray": ("ray", "from memohop.jobs.ray_workers import import_ray; import_ray()"),
}
WITHOUT = {  # a command that names each extra where it is missing, and its exit code
    "ray": ("train csbm --model gcn --splits 0 --workers 2", 2),
    "metis": ("train csbm --model gcn --splits 0 --workers 2 --cut metis", 2),
}


def needs(lines, extras=()):
    """The names of the distributions that requirements ask for, and those that these require."""
    names, queue = set(), [(lines, extras)]
    while queue:
        lines, extras = queue.pop()
        for wanted in map(Requirement, lines):
            environments = [{"extra": extra} for extra in ("", *extras)]
            if wanted.marker and not any(map(wanted.marker.evaluate, environments)):
                continue
            name = re.sub(r"[-_.]+", "-", wanted.name).lower()
            if name not in names:
                names.add(name)
                queue.append((distribution(name).requires or (), wanted.extras))
    return names


def lend(name, site):
    """Put links to what a distribution installed into a folder of packages."""
    given = distribution(name)
    tops = {path.parts[0] for path in given.files if path.parts[0] not in ("..", "__pycache__")}
    for top in tops:
        link = site / top
        if not link.exists():
            link.symlink_to(Path(given.locate_file(top)).resolve())


@pytest.fixture(scope="session")
def archives(tmp_path_factory):
    """The folder with the wheel and the source archive."""
    pytest.importorskip("hatchling", reason="hatchling builds the package; it is in the extra dev")
    folder = tmp_path_factory.mktemp("dist")
    run([sys.executable, "-m", "hatchling", "build", "-d", folder], cwd=ROOT)
    return folder


@pytest.fixture(scope="session")
def requirements(archives):
    """The lines of the wheel that say what it requires."""
    (wheel,) = archives.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return message_from_bytes(archive.read(name)).get_all("Requires-Dist")


@pytest.fixture(scope="session")
def environment(archives, requirements, tmp_path_factory):
    """The folder of an environment that has the wheel and what it requires, and nothing else."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False)
    (wheel,) = archives.glob("*.whl")
    program = folder / "bin" / "python"
    if not program.exists():
        pytest.skip("environments are laid out differently on this system")
    install = [sys.executable, "-m", "pip", "--python", program, "install", "--quiet"]
    run([*install, "--no-deps", "--no-index", wheel])
    (site,) = folder.glob("lib/python*/site-packages")
    for name in needs(requirements):
        lend(name, site)
    return folder


def run(command, *, cwd=None, status=0):
    """Standard output and error of a program that PYTHONPATH and the like do not reach."""
    alone = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    command = [str(word) for word in command]
    done = subprocess.run(command, cwd=cwd, env=alone, capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stderr
    return done.stdout, done.stderr


def memohop(environment, *words, status=0):
    """Standard output and error of a command in the environment."""
    return run([environment / "bin" / "memohop", *words], cwd=environment, status=status)


def test_the_environment_has_the_wheel_and_no_extra(environment):
    look = "import memohop, importlib.util as u; print(memohop.__file__, *map(u.find_spec, {}))"
    look = look.format([*(module for module, _ in EXTRAS.values()), "pytest"])
    out, _ = run([environment / "bin" / "python", "-c", look], cwd=environment)
    path, *absent = out.split()
    assert Path(path).is_relative_to(environment)
    assert absent == ["None"] * (len(EXTRAS) + 1)


def test_commands_work_without_extras_and_without_warnings(environment):
    assert memohop(environment, "--version")[0].strip() == __version__
    out, err = memohop(environment, "data", "list")
    assert ("csbm" in out, err) == (True, "")


def test_the_command_line_says_what_an_extra_would_add(environment):
    program = "from memohop.cli import main"
    for words, status in WITHOUT.values():
        program += f"\nassert main({words.split()}) == {status}"
    _, err = run([environment / "bin" / "python", "-c", program], cwd=environment)
    told = re.findall(r"pip install 'memohop\[(\w+)\]'", err)
    assert list(dict.fromkeys(told)) == [*WITHOUT]


@pytest.mark.parametrize("extra", EXTRAS)
def test_an_extra_brings_what_it_is_for(environment, requirements, tmp_path, extra):
    module, use = EXTRAS[extra]
    more = needs(requirements, [extra]) - needs(requirements)
    others = {name for name, _ in EXTRAS.values()} - {module}
    assert module in more
    assert not more & others
    for name in more:
        lend(name, tmp_path)
    program = f"import sys; sys.path.append({str(tmp_path)!r}); {use}"
    assert run([environment / "bin" / "python", "-c", program], cwd=environment) == ("", "")


def test_the_source_archive_gives_the_same_wheel(archives, tmp_path):
    (source,) = archives.glob("*.tar.gz")
    with tarfile.open(source) as archive:
        archive.extractall(tmp_path, filter="data")
    (unpacked,) = tmp_path.iterdir()
    run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path], cwd=unpacked)
    wheels = [next(folder.glob("*.whl")) for folder in (archives, tmp_path)]
    first, second = (zipfile.ZipFile(wheel) for wheel in wheels)
    assert sorted(first.namelist()) == sorted(second.namelist())
    assert {info.filename: info.CRC for info in first.infolist()} == {
        info.filename: info.CRC for info in second.infolist()
    }


def test_the_version_is_the_same_everywhere():
    told = {
        "pyproject.toml": r'^version = "(.+)"$',
        "CITATION.cff": r"^version: (.+)$",
        "CHANGELOG.md": r"^## (\d\S*)",  # the newest comes first
    }
    versions = {
        name: re.search(pattern, (ROOT / name).read_text(), re.MULTILINE)[1]
        for name, pattern in told.items()
    }
    assert versions == dict.fromkeys(told, __version__)


def test_every_dependency_is_imported_somewhere(requirements):
    names = {Requirement(line).name for line in requirements if "extra ==" not in line}
    modules = {"scikit-learn": "sklearn", "markdown-it-py": "markdown_it"}
    text = "\n".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    for name in names:
        module = modules.get(name, name.replace("-", "_"))
        assert re.search(rf"^\s*(?:from|import) {module}\b", text, re.MULTILINE), name
