r"""``memohop fit`` of two versions on the same hidden labels, alternating in one run.

    python benchmarks/versions.py BEFORE/bin/python AFTER/bin/python -o outputs \
        --draws ../shared/tables/reed98~1,2,3 --draws folder/cora~1,2 --seconds 60 --jobs 2

BEFORE and AFTER are environments with one version each. Folders are those of ``tables.py`` or of
``registry_tables.py``, and the numbers behind ``~`` are draws of what is hidden. Each version fits
and predicts each draw on one thread, the two one after the other, as many draws at once as there
are jobs. The last lines are the mean lead of the second version, as ``lead.py`` tells.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np

from contenders import run_fit
from lead import Lead, average, is_judged, lead
from table_case import hide_others, read


def main() -> None:
    """Run both versions on every draw, and print a line for each draw, and the means."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pythons", nargs=2, metavar="PYTHON")
    parser.add_argument("--draws", action="append", required=True, help="FOLDER~1,2,3")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument(
        "-o", "--output", type=Path, required=True, help="folder; what is there is not run again"
    )
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as home:
        folders = [
            hide_others(Path(folder), int(number), Path(home))
            for folder, _, numbers in (text.partition("~") for text in arguments.draws)
            for number in numbers.split(",")
        ]
        print(f"{'draw':22} {'metric':9} {'before':>7} {'after':>7} {'s':>11}  after is ahead by")
        compare_draw = partial(compare, arguments.pythons, arguments.seconds, arguments.output)
        with ThreadPoolExecutor(arguments.jobs) as pool:
            leads = list(pool.map(compare_draw, folders))
    of_graphs: dict[str, list[Lead]] = {}
    for folder, ahead in zip(folders, leads, strict=True):
        if ahead is not None:
            of_graphs.setdefault(folder.name.partition("~")[0], []).append(ahead)
    for line in average(of_graphs, "the version before"):
        print(line)


def compare(pythons: list[str], seconds: float, output: Path, folder: Path) -> Lead | None:
    """Both versions on one draw; the lead of the second, None if too little is hidden to judge."""
    case = read(folder)
    outputs, took = [], []
    for name, python in zip(("before", "after"), pythons, strict=True):
        path = output / f"{case.name}.{name}.npz"
        if not path.exists():
            begin = time.monotonic()
            said = run_fit(python, case, folder, seconds, threads=1)
            np.savez(path, outputs=said, seconds=time.monotonic() - begin)
        with np.load(path) as stored:
            outputs.append(stored["outputs"])
            took.append(float(stored["seconds"]))
    scores = [100 * case.score(of_version, case.truth) for of_version in outputs]
    ahead = lead(case.score, case.truth, outputs[1], outputs[0])
    line = f"{case.name:22} {case.metric:9} {scores[0]:7.2f} {scores[1]:7.2f}"
    text = ahead.text(is_judged(case.truth))
    print(f"{line} {took[0]:5.0f} {took[1]:5.0f}  {text}", flush=True)
    return ahead if is_judged(case.truth) else None


if __name__ == "__main__":
    main()
