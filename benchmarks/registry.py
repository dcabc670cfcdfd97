"""``GraphClassifier`` on published graphs and their splits, beside the MMP family by itself.

    python -m benchmarks.registry minesweeper texas --splits 0-2 --seconds 600 --device cuda

Everything is chosen on the validation nodes of the split; the test nodes are scored once, by the
models that are kept, which have learned from training and validation nodes. Models with labels in
the memory, and trees and linear models on neighbours, see the labels of training nodes. A search
begins with settings that the other datasets of the fair table have taught.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path
from unittest import mock

import msgspec
import numpy as np

import memohop
from memohop.fit.candidates import spaces
from memohop.fit.candidates.catalogue import names
from memohop.training.metrics import METRICS
from study import RESULTS
from study.statistics.first_settings import FirstSettings


def main() -> None:
    """Print a line for each dataset, split and choice of models."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("datasets", nargs="+")
    parser.add_argument("--data", type=Path, help="folder with the dataset files")
    parser.add_argument("--splits", default="0", help="such as 0-2")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--only", choices=("all", "mmp"), help="both by default")
    parser.add_argument("-o", "--output", type=Path, help="JSON file for the scores")
    arguments = parser.parse_args()
    first, _, last = arguments.splits.partition("-")
    scores = []
    for name in arguments.datasets:
        data = memohop.load(name, root=arguments.data)
        for split in range(int(first), int(last or first) + 1):
            for models in ("all", "mmp"):
                if arguments.only in (None, models):
                    scores.append(run(name, data, split, models, arguments))
                    print(json.dumps(scores[-1]), flush=True)
    if arguments.output:
        arguments.output.write_text(json.dumps(scores, indent=1))


def run(
    name: str, data: object, split: int, models: str, arguments: argparse.Namespace
) -> dict[str, object]:
    """One fit."""
    begin = time.monotonic()
    metric = METRICS[data.metric]  # type: ignore[attr-defined]
    classifier = memohop.GraphClassifier(
        models=None if models == "all" else [name for name in names() if name.endswith("+mmp")],
        time=arguments.seconds,
        metric=metric.id,
        device=arguments.device,
    )
    path = RESULTS / "first-settings.json"
    learned = msgspec.json.decode(path.read_bytes(), type=FirstSettings)
    first = learned.without.get(name, learned.every)
    of_others = mock.patch.object(spaces, "taught", return_value=first)
    with warnings.catch_warnings(), of_others:
        warnings.simplefilter("ignore")
        classifier.fit(data, split=split)
    mask = data.test_mask[:, split].numpy()  # type: ignore[attr-defined]
    truth = data.y.numpy()[mask]  # type: ignore[attr-defined]
    outputs = classifier.predict_proba()[mask]
    said = outputs[:, 1] if metric.is_ranking else outputs.argmax(axis=1)
    record = classifier.report_
    return {
        "dataset": name,
        "split": split,
        "models": models,
        "metric": metric.id,
        "val": round(100 * record.val, 2),
        "test": round(100 * metric.weighted(truth, said, np.ones(len(truth))), 2),
        "kept": [[part.family, round(part.weight, 2)] for part in record.kept],
        "tried": record.candidates,
        "kinds": {kind.family: [kind.tried, round(kind.seconds)] for kind in record.families},
        "seconds": round(time.monotonic() - begin),
    }


if __name__ == "__main__":
    main()
