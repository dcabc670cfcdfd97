"""Experiment files: which models on which datasets, and how a protocol trains each of them.

A file is TOML. Those of the package lie in `memohop/experiments`, and `table1.toml` is an example
of everything. The settings of one model on one dataset are put together from

1. `protocols.P.rows.MODEL`. A row that is `like` another one starts from that, a protocol that is
   `like` another one from that, and a file with a `base` from the protocols of that experiment,
2. the parts `on.GROUP` and then `on.DATASET` of that row which fit the dataset,
3. `protocols.P.every`, which goes for all rows.

What stands under `search` is chosen on validation: all combinations are trained, and an empty
list takes a name out. What stands under `axes` is varied by the experiment: each combination is a
cell of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from importlib import resources
from itertools import chain, product
from pathlib import Path
from typing import Any

import msgspec

from memohop.bench.cell import Cell, combinations
from memohop.bench.experiment_file import Rows, Search, blamed, read_experiment
from memohop.bench.settings import Settings
from memohop.data.datasets.registry import describe
from memohop.errors import UsageError, check_distinct, unknown_name

_MOST_RUNS = 1_000_000  # of one model on one dataset
_LARGEST = 100_000  # layers, channels or heads


class Experiment:
    """What a file asks for.

    Args:
        name: The id of an experiment of the package, or the path of a file that ends in `.toml`.

    Attributes:
        id: The name of the file without its ending.
        title: What it is, in a line.
        expected: What should come out.
        time: How long it takes.
        datasets: Their ids.
        models: Their ids.
        protocols: Their names.
    """

    def __init__(self, name: str, *, _above: tuple[Path, ...] = ()) -> None:
        self._path = Path(name) if name.endswith(".toml") else _packaged(name)
        found = self._file = read_experiment(self._path)
        files = (*_above, self._path.resolve())
        if files[-1] in _above:
            raise UsageError(f"{name} builds on itself; name another experiment")
        self.id, self.title, self.expected = self._path.stem, found.title, found.expected
        self.time, self.datasets, self.models = found.time, found.datasets, found.models
        with blamed(self._path, "base"):
            base = None if found.base is None else Experiment(found.base, _above=files)
        self._groups: dict[str, list[str]] = (base._groups if base else {}) | found.groups
        with blamed(self._path, "datasets or groups"):
            for dataset in chain(self.datasets, *self._groups.values()):
                describe(dataset)
        self._protocols: dict[str, dict[str, Any]] = {}
        for protocol, part in found.protocols.items():
            whole: dict[str, Any] = {}
            if part.like is not None:
                with blamed(self._path, f"protocols.{protocol}.like"):
                    whole = _known("protocol above it", part.like, self._protocols)
            whole = _merged(whole, base._protocols.get(protocol, {}) if base else {})
            self._protocols[protocol] = _merged(whole, {"rows": part.rows, "every": part.every})
        self.protocols = list(self._protocols)

    def row(self, protocol: str, model: str, dataset: str) -> tuple[Settings, Search]:
        """How a protocol trains a model on a dataset, and what it chooses on validation."""
        found = _known(f"protocol of {self.id}", protocol, self._protocols)
        with blamed(self._path, f"protocols.{protocol}.rows.{model}"):
            raw = _complete(found["rows"], model)
            parts = raw.pop("on", {})
            for name in parts:
                if name not in self._groups:
                    describe(name)
            fitting = [
                part for name, part in parts.items() if dataset in self._groups.get(name, ())
            ]
            for part in (*fitting, parts.get(dataset, {}), found["every"]):
                raw = _merged(raw, part)
            search = msgspec.convert(raw.pop("search", {}), Search)
            search = {name: values for name, values in search.items() if values}
            for name, values in search.items():
                check_distinct(f"search.{name}", values)
            raw.pop("about", None)
            settings = Settings.of(raw)
            _check(model, settings, search)
            return settings, search

    def cells(self, protocols: Iterable[str] | None = None) -> Iterator[Cell]:
        """All cells, one protocol and one dataset after the other."""
        axes = self._file.axes
        for protocol in self.protocols if protocols is None else protocols:
            seeds = self._file.protocols[protocol].seeds or self._file.seeds
            for dataset, model in product(self.datasets, self.models):
                settings, search = self.row(protocol, model, dataset)
                with blamed(self._path, "axes"):
                    _check(model, settings, axes)
                with blamed(self._path, "seeds"):
                    for seed in seeds:
                        settings.member(split=0, seed=seed)
                chosen = {name: search[name] for name in search if name not in axes}
                with blamed(self._path):
                    _check_size(
                        f"{model} on {dataset}",
                        len(seeds) * settings.splits(dataset),
                        *map(len, (axes | chosen).values()),
                    )
                for point in combinations(axes):
                    yield Cell(
                        experiment=self.id,
                        protocol=protocol,
                        dataset=dataset,
                        model=model,
                        axes=point,
                        settings=settings.having(point),
                        search=chosen,
                        seeds=seeds,
                    )


def experiments() -> list[str]:
    """The ids of the experiments of the package."""
    return sorted(path.stem for path in _folder().glob("*.toml"))


def _folder() -> Path:
    return Path(str(resources.files("memohop"))) / "experiments"


def _packaged(name: str) -> Path:
    _known("experiment", name, dict.fromkeys(experiments()))
    return _folder() / f"{name}.toml"


def _known(kind: str, name: str, table: Mapping[str, Any]) -> Any:
    if name not in table:
        raise unknown_name(kind, name, table)
    return table[name]


def _complete(rows: Rows, model: str) -> dict[str, Any]:
    """A row with what it is like, which is like something itself."""
    chain_of_rows: list[str] = []
    name: str | None = model
    while name is not None:
        if name in chain_of_rows:
            raise UsageError(f"like goes round in a circle: {' -> '.join((*chain_of_rows, name))}")
        chain_of_rows.append(name)
        name = _known("row", name, rows).get("like")
    raw: dict[str, Any] = {}
    for name in reversed(chain_of_rows):
        raw = _merged(raw, rows[name])
    raw.pop("like", None)
    return raw


def _merged(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """Both tables, with the tables in them; of two values the second counts."""
    both = {**first, **second}
    for name in first.keys() & second.keys():
        if isinstance(first[name], dict) and isinstance(second[name], dict):
            both[name] = _merged(first[name], second[name])
    return both


def _check(model: str, settings: Settings, varied: Search) -> None:
    """Refuse options that the model does not have, and values that a setting cannot have."""
    from memohop.networks.registry import entry

    known = entry(model).options()
    settings.member(split=0, seed=0)
    for name, value in settings.options.items():
        _check_option(name, value, _known(f"option of {model}", name, known))
    for name, values in varied.items():
        of_settings = name in Settings.names()
        default = (
            None
            if of_settings
            else _known(
                f"setting, or option of {model},", name, known | dict.fromkeys(Settings.names())
            )
        )
        for value in values:
            settings.having({name: value}).member(split=0, seed=0)
            if not of_settings:
                _check_option(name, value, default)


def _check_option(name: str, value: Any, default: Any) -> None:
    """An option of a model is of the type of its default, and no number is absurd."""
    try:
        msgspec.convert(value, type(default))
    except msgspec.ValidationError as error:
        raise UsageError(f"{name} = {value!r}: {error}") from error
    if type(default) is int and not 0 <= value <= _LARGEST:
        raise UsageError(f"{name} = {value}: give a number from 0 to {_LARGEST}")


def _check_size(what: str, *counts: int) -> None:
    """Refuse more networks than anybody can train."""
    if math.prod(counts) > _MOST_RUNS:
        raise UsageError(
            f"{what} would be {math.prod(counts):,} networks, and {_MOST_RUNS:,} are the most; "
            "shorten a list"
        )
