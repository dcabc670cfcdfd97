"""AutoGluon on two Parquet files; ``tables.py`` runs it in an environment of its own.

    python benchmarks/automl.py FOLDER METRIC SECONDS THREADS

FOLDER has ``train.parquet``, whose last column is what is to be predicted, and ``hidden.parquet``;
``outputs.parquet`` is written beside them. It is what AutoGluon calls best, without CatBoost and
fastai: LightGBM, XGBoost, forests, extra trees and networks, bagged and stacked.
"""

from __future__ import annotations

import sys
from pathlib import Path


def main() -> None:
    """Fit, and predict the hidden rows."""
    # the other benchmarks do without them, and without their versions of pandas
    import pandas as pd
    from autogluon.tabular import TabularPredictor

    folder, metric, seconds, threads = sys.argv[1:]
    home = Path(folder)
    train = pd.read_parquet(home / "train.parquet")
    label = train.columns[-1]
    binary = train[label].nunique() == 2
    kind = "regression" if metric == "r2" else "binary" if binary else "multiclass"
    predictor = TabularPredictor(label, kind, eval_metric=metric, path=str(home / "model"))
    predictor.fit(
        train,
        presets="best_quality",
        dynamic_stacking=False,  # a trial of stacking takes a quarter of the seconds
        excluded_model_types=["CAT", "FASTAI"],
        time_limit=float(seconds),
        num_cpus=int(threads),
        num_gpus=0,
    )
    hidden = pd.read_parquet(home / "hidden.parquet")
    if metric == "r2":
        outputs = predictor.predict(hidden).to_frame("predicted")
    else:
        outputs = predictor.predict_proba(hidden)
    outputs.rename(columns=str).to_parquet(home / "outputs.parquet")
    print(predictor.leaderboard(silent=True).to_string())


if __name__ == "__main__":
    main()
