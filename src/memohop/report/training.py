"""The result of ``memohop train``, as a table for people and as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.table import Table

from memohop.jobs.run import Run
from memohop.report.terminal import plain_table
from memohop.training import Result, Rules, Selection
from memohop.training.choice import best, selections_of
from memohop.training.metrics import METRICS
from memohop.training.numbers import NUMBERS
from memohop.version import __version__


@dataclass(frozen=True)
class TrainingReport:
    """The choice between settings, in the order of training, and everything needed to repeat it.

    The options are those of the model, its defaults included.
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
        several = len(self.chosen.results) > 1
        return METRICS[self.metric].gap_in_unit(self.chosen.std) if several else None

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

    def table(self) -> Table:
        """A row for each setting; only the one that validation chose shows its test score."""
        names = list(self.chosen.setting)
        titles = [NUMBERS.get(name, name) for name in names]
        table = plain_table("", numbers=[*titles, "validation", "test"])
        for selection in self.settings:
            chosen = selection is self.chosen
            validation = METRICS[self.metric].text(selection.val)
            if selection.diverged:
                validation = f"{selection.diverged} of {len(selection.results)} diverged"
            table.add_row(
                "chosen" if chosen else "",
                *(_value(selection.setting[name]) for name in names),
                validation,
                self.score() if chosen else "",
                style="bold" if chosen else None,
            )
        return table

    def in_force(self) -> str:
        """The options of the model, those of the graph first, and the rules that are not ours."""
        options = self._fixed_options()
        first = [name for name in ("direction", "self_loops", "norm") if name in options]
        lines = [_settings("options", {name: options[name] for name in [*first, *options]})]
        ours = asdict(Rules())
        unlike = {name: value for name, value in asdict(self.rules).items() if value != ours[name]}
        if unlike:
            lines.append(_settings("rules", unlike))
        if self.rules.leaks:
            lines.append("beware: test scores take part in the choice of the epoch")
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


def by_setting(
    runs: Sequence[Run], results: Sequence[Result]
) -> tuple[tuple[Selection, ...], Selection]:
    """The scores of each setting, and the setting with the best mean validation score."""

    def setting(run: Run) -> dict[str, Any]:
        """The numbers of a run; a dropout rate that is not given is the model's own."""
        return {name: run.recipe.content[name] for name in NUMBERS} | run.setting

    pairs = zip(map(setting, runs), results, strict=True)
    settings = tuple(selections_of(pairs))
    return settings, best(settings)


def _settings(title: str, values: Mapping[str, Any]) -> str:
    return f"{title}: " + ", ".join(f"{name}={value}" for name, value in values.items())


def _value(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:g}" if isinstance(value, float) else str(value)
