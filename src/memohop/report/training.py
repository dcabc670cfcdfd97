"""The result of `memohop train`, ready to be printed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from memohop.bench.cell import Run
from memohop.bench.execute import Outcome
from memohop.training import Rules, Selection
from memohop.training.choice import best, selections_of
from memohop.training.metrics import METRICS
from memohop.training.numbers import NUMBERS
from memohop.version import __version__


@dataclass(frozen=True)
class TrainingReport:
    """A choice between settings, and how it was made.

    Attributes:
        dataset: Its id.
        model: Its id.
        metric: The id of the metric.
        settings: Each setting with its scores, in the order of training.
        chosen: The one with the best mean validation score.
        options: Options of the model in force, its defaults included.
        rules: Optimiser, schedule, stop, and which epoch counts.
        protocol: What else is needed to repeat the training.
        seconds: How long the training took.
    """

    dataset: str
    model: str
    metric: str
    settings: tuple[Selection, ...]
    chosen: Selection
    options: Mapping[str, Any]
    rules: Rules
    protocol: Mapping[str, Any]
    seconds: float

    @property
    def splits(self) -> list[int]:
        """The splits that were trained on."""
        return sorted({result.member.split for result in self.chosen.results})

    @property
    def seeds(self) -> list[int]:
        """The seeds of each split."""
        return sorted({result.member.seed for result in self.chosen.results})

    @property
    def std(self) -> float | None:
        """Sample standard deviation of the test score, in its unit; a single run has none."""
        return (
            METRICS[self.metric].gap_in_unit(self.chosen.std)
            if len(self.chosen.results) > 1
            else None
        )

    def score(self) -> str:
        """The test score of the chosen setting."""
        metric = METRICS[self.metric]
        mean = metric.text(self.chosen.mean)
        return mean if self.std is None else f"{mean} ± {metric.gap_text(self.chosen.std)}"

    def legend(self) -> str:
        """How to read the scores."""
        splits, seeds = len(self.splits), len(self.seeds)
        over = f"{splits} split{'s' * (splits > 1)}"
        if seeds > 1:
            over = f"{splits * seeds} runs ({over} x {seeds} seeds)"
        metric = METRICS[self.metric]
        if self.std is None:
            return f"{metric.words} in {metric.unit}, of one run"
        return (
            f"{metric.words} in {metric.unit}; validation: mean, test: mean ± sample standard "
            f"deviation, ddof=1, over {over}"
        )

    def in_force(self) -> str:
        """The options of the model, those of the graph first, and rules that are not ours."""
        options = self._fixed_options()
        first = [name for name in ("direction", "self_loops", "norm") if name in options]
        names = dict.fromkeys([*first, *options])
        lines = ["options: " + ", ".join(f"{name}={options[name]}" for name in names)]
        default = asdict(Rules())
        unlike = {name: v for name, v in asdict(self.rules).items() if v != default[name]}
        if unlike:
            lines.append("rules: " + ", ".join(f"{name}={v}" for name, v in unlike.items()))
        if self.rules.leaks:
            lines.append("beware: the test score takes part in the choice of the epoch")
        return "\n".join(lines)

    def _fixed_options(self) -> dict[str, Any]:
        """Options that are the same in every setting."""
        chosen = self.chosen.setting
        return {name: value for name, value in self.options.items() if name not in chosen}

    def row(self) -> dict[str, Any]:
        """A flat object for JSON, scores in the unit of the metric."""
        metric = METRICS[self.metric]
        return {
            "dataset": self.dataset,
            "model": self.model,
            "metric": self.metric,
            "unit": metric.unit,
            "splits": len(self.splits),
            "split_ids": self.splits,
            "seeds": len(self.seeds),
            "seed_ids": self.seeds,
            "val": metric.in_unit(self.chosen.val),
            "mean": metric.in_unit(self.chosen.mean),
            "std": self.std,
            "ddof": 1,
            "settings_tried": len(self.settings),
            "diverged": sum(selection.diverged for selection in self.settings),
            **self.protocol,
            **asdict(self.rules),
            **self._fixed_options(),
            **self.chosen.setting,
            "seconds": round(self.seconds, 3),
            "version": __version__,
        }


def by_setting(outcomes: Sequence[Outcome]) -> tuple[tuple[Selection, ...], Selection]:
    """The scores of each setting, and the setting with the best mean validation score."""

    def setting(run: Run) -> dict[str, Any]:
        """What is in force: a rate that is not given is the model's own."""
        return {name: run.recipe.content[name] for name in NUMBERS} | run.setting

    settings = tuple(selections_of((setting(one.run), one.result) for one in outcomes))
    return settings, best(settings)
