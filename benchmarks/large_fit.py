"""``memohop fit`` on a graph with a million nodes: seconds, RAM and score.

    python benchmarks/large_fit.py --nodes 1000000 --edges 10000000 --seconds 600
    python benchmarks/large_fit.py --nodes 7600 --edges 30000 --words 12000 --seconds 300

Draws a graph whose labels are in its columns and in its edges, writes it as two CSV files, runs
``memohop fit`` on them as a process of its own, and prints the seconds that it took, reading and
saving included, the most RAM that it held, and its accuracy on its test nodes beside two others:
always the most frequent class, and logistic regression on the columns. To measure it on two cores
of a larger machine: ``taskset -c 0,1 python benchmarks/large_fit.py ...``.

Each node has a class :math:`y` and, drawn around the mean of its class, number columns; or, with
``--words``, a few words, of which some are more frequent in its class. A share ``--homophily`` of
the edges joins nodes of one class, the others join any two.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
from numpy.typing import NDArray
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

_SIGNAL = 0.35  # distance of class means from 0, in standard deviations of a column
_WORDS_EACH = 20  # words of a node
_OF_CLASS = 0.3  # share of them that are drawn from the words of its class


def main() -> None:
    """Print how a fit went."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--edges", type=int, default=10_000_000)
    parser.add_argument("--columns", type=int, default=20, help="of numbers")
    parser.add_argument("--words", type=int, default=0, help="a column for each, instead")
    parser.add_argument("--classes", type=int, default=5)
    parser.add_argument("--homophily", type=float, default=0.3)
    parser.add_argument("--labelled", type=float, default=0.1, help="share of the nodes")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("rest", nargs="*", help="more arguments of fit, after --")
    arguments = parser.parse_args()

    random = np.random.default_rng(arguments.seed)
    y = random.integers(arguments.classes, size=arguments.nodes)
    draw = _words if arguments.words else _numbers
    x = draw(y, arguments.words or arguments.columns, random)
    labelled = random.random(arguments.nodes) < arguments.labelled
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write(folder, x, y, labelled, _edges(y, arguments.edges, arguments.homophily, random))
        columns_alone = _linear(x, y, labelled)
        majority = np.bincount(y[labelled]).max() / labelled.sum()
        command = [sys.executable, "-m", "memohop", "fit", "--label", "label", "--json"]
        command += ["--nodes", f"{folder / 'nodes.csv'}", "--edges", f"{folder / 'edges.csv'}"]
        command += ["--time", f"{arguments.seconds}", "-o", f"{folder / 'model'}", *arguments.rest]
        begin = time.perf_counter()
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            said = process.stdout.read()
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        wall = time.perf_counter() - begin
    if process.returncode:
        sys.exit(f"memohop fit ended with {process.returncode}")
    kept, *kinds = json.loads(said)
    print(f"{'model':20} {'val':>6} {'test':>6} {'tried':>5} {'seconds':>7}")
    for row in [kept, *kinds]:
        print(_line(row))
    print(f"most frequent class  {100 * majority:6.2f}")
    print(f"linear, columns      {100 * columns_alone:6.2f}")
    print(
        f"{sum(kind['tried'] for kind in kinds)} settings in {wall:.0f} s wall, of "
        f"{arguments.seconds:.0f} allowed; {used.ru_utime + used.ru_stime:.0f} s of CPU time; "
        f"{used.ru_maxrss / 2**20:.2f} GiB at the peak"
    )


def _numbers(
    y: NDArray[np.int64], columns: int, random: np.random.Generator
) -> NDArray[np.float32]:
    means = random.choice([-_SIGNAL, _SIGNAL], size=(y.max() + 1, columns)).astype(np.float32)
    return means[y] + random.standard_normal((len(y), columns), dtype=np.float32)


def _words(y: NDArray[np.int64], words: int, random: np.random.Generator) -> sparse.csr_array:
    nodes, of_class = len(y), words // (y.max() + 1)
    chosen = random.integers(words, size=(nodes, _WORDS_EACH))
    typical = random.integers(of_class, size=chosen.shape) + of_class * y[:, None]
    chosen = np.where(random.random(chosen.shape) < _OF_CLASS, typical, chosen)
    rows = np.repeat(np.arange(nodes), _WORDS_EACH)
    matrix = sparse.csr_array((np.ones(rows.size), (rows, chosen.ravel())), shape=(nodes, words))
    matrix.data[:] = 1
    return matrix


def _edges(
    y: NDArray[np.int64], edges: int, homophily: float, random: np.random.Generator
) -> NDArray[np.int64]:
    begin, end = random.integers(len(y), size=(2, edges))
    alike = random.random(edges) < homophily
    by_class = np.argsort(y, kind="stable")
    sizes = np.bincount(y)
    starts = np.cumsum(sizes) - sizes
    of_begin = y[begin[alike]]
    drawn = (random.random(alike.sum()) * sizes[of_begin]).astype(np.int64)
    end[alike] = by_class[starts[of_begin] + drawn]
    return np.stack([begin, end])[:, begin != end]


def _write(
    folder: Path,
    x: Any,
    y: NDArray[np.int64],
    labelled: NDArray[np.bool_],
    edges: NDArray[np.int64],
) -> None:
    ids = pa.array([f"node-{number}" for number in range(len(y))])
    table = {"id": ids, "label": pa.array(y, mask=~labelled).cast(pa.string())}
    values = x.astype(np.int8).toarray() if sparse.issparse(x) else x
    table |= {f"c{number}": column for number, column in enumerate(values.T.copy())}
    pa.csv.write_csv(pa.table(table), folder / "nodes.csv")
    source, target = (ids.take(pa.array(end)) for end in edges)
    pa.csv.write_csv(pa.table({"source": source, "target": target}), folder / "edges.csv")


def _linear(x: Any, y: NDArray[np.int64], labelled: NDArray[np.bool_]) -> float:
    """The accuracy on a fifth of the labelled nodes, after learning from the others."""
    train, test = train_test_split(np.flatnonzero(labelled), test_size=0.2, random_state=0)
    model = LogisticRegression(max_iter=300).fit(x[train], y[train])
    return float(model.score(x[test], y[test]))


def _line(row: dict[str, Any]) -> str:
    test = "" if row["test"] is None else f"{row['test']:.2f}"
    rest = f"{row['tried']:5} {row['seconds']:7.1f}" if "tried" in row else ""
    return f"{row['model']:20} {row['val']:6.2f} {test:>6} {rest}"


if __name__ == "__main__":
    main()
