"""The result of ``memohop train``, as a table for people and as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from rich.table import Table
from rich.text import Text

from memohop.networks.registry import entry
from memohop.report.terminal import plain_table
from memohop.training import NUMBERS, Job, Result, Rules, Selection
from memohop.training.member import best, selections_of
from memohop.training.metrics import Metric
from memohop.version import __version__


@dataclass(frozen=True)
class TrainingReport:
    """The choice between settings, and everything needed to repeat it."""

    jobs: Sequence[Job]  # of one model on one dataset
    results: Sequence[Result]  # in the same order
    metric: Metric
    protocol: str | None
    how: Mapping[str, Any]  # what else was asked for, such as the device
    seconds: float

    @cached_property
    def selections(self) -> list[Selection]:
        """Each setting with its scores, in the order of training.

        A dropout rate that is not given is the model's own.
        """
        settings = [job.numbers | {**job.setting} for job in self.jobs]
        return selections_of(zip(settings, self.results, strict=True))

    @cached_property
    def chosen(self) -> Selection:
        """The setting with the best mean validation score."""
        return best(self.selections)

    @property
    def _options(self) -> dict[str, Any]:
        """Options of the model that are the same in every setting, its defaults included."""
        options = entry(str(self.jobs[0].model)).options() | {**self.jobs[0].options}
        return {name: value for name, value in options.items() if name not in self.chosen.setting}

    @property
    def _std(self) -> float | None:
        """Sample standard deviation of the test score; a single run has none."""
        return self.chosen.std if len(self.chosen.results) > 1 else None

    def _ids(self, name: str) -> list[int]:
        """The splits, or the seeds, that were trained on."""
        return sorted({getattr(result.member, name) for result in self.chosen.results})

    def score(self) -> str:
        """The test score of the chosen setting."""
        mean = self.metric.text(self.chosen.mean)
        return mean if self._std is None else f"{mean} ± {self.metric.gap_text(self._std)}"

    def legend(self) -> str:
        """How to read the scores."""
        splits, seeds = len(self._ids("split")), len(self._ids("seed"))
        over = f"{splits} split{'s' * (splits > 1)}"
        if seeds > 1:
            over = f"{splits * seeds} runs ({over} x {seeds} seeds)"
        words = f"{self.metric.words} in {self.metric.unit}"
        if self._std is None:
            return f"{words}, of one run"
        return (
            f"{words}; validation: mean, test: mean ± sample standard deviation, ddof=1, over "
            f"{over}"
        )

    def title(self) -> Text:
        """What was trained on what."""
        job = self.jobs[0]
        return Text(f"{job.model} on {job.data.name}", style="bold")

    def table(self) -> Table:
        """A row for each setting; only the one that validation chose shows its test score."""
        names = list(self.chosen.setting)
        titles = [NUMBERS.get(name, name) for name in names]
        table = plain_table("", numbers=[*titles, "validation", "test"])
        for selection in self.selections:
            chosen = selection is self.chosen
            validation = self.metric.text(selection.val)
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
        options, rules = self._options, self.jobs[0].rules
        first = [name for name in ("direction", "self_loops", "norm") if name in options]
        lines = [_listed("options", {name: options[name] for name in [*first, *options]})]
        ours = asdict(Rules())
        unlike = {name: value for name, value in asdict(rules).items() if value != ours[name]}
        if unlike:
            lines.append(_listed("rules", unlike))
        if rules.leaks:
            lines.append("beware: test scores take part in the choice of the epoch")
        return "\n".join(lines)

    def row(self) -> dict[str, Any]:
        """A flat object for JSON, scores in the unit of the metric."""
        metric, job = self.metric, self.jobs[0]
        splits, seeds = self._ids("split"), self._ids("seed")
        return {
            "dataset": job.data.name,
            "model": job.model,
            "metric": metric.id,
            "unit": metric.unit,
            "splits": len(splits),
            "split_ids": splits,
            "seeds": len(seeds),
            "seed_ids": seeds,
            "val": metric.in_unit(self.chosen.val),
            "mean": metric.in_unit(self.chosen.mean),
            "std": None if self._std is None else metric.gap_in_unit(self._std),
            "ddof": 1,
            "settings_tried": len(self.selections),
            "diverged": sum(selection.diverged for selection in self.selections),
            "protocol": self.protocol,
            "epochs": job.epochs,
            "patience": job.patience,
            "features": job.data.features,
            **self.how,
            **{f"data_{name}": value for name, value in job.data.data.items()},
            **({} if job.data.split == "published" else {"data_split": job.data.split}),
            **asdict(job.rules),
            **self._options,
            **self.chosen.setting,
            "seconds": round(self.seconds, 3),
            "version": __version__,
        }


def _listed(title: str, values: Mapping[str, Any]) -> str:
    return f"{title}: " + ", ".join(f"{name}={value}" for name, value in values.items())


def _value(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:g}" if isinstance(value, float) else str(value)
