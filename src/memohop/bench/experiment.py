"""Experiment files: which models on which datasets, and how a protocol trains each of them.

A file is TOML. Those of the package are in ``memohop/experiments``, and ``table1.toml`` is an
example of everything. The settings of one model on one dataset are put together from

1. ``protocols.P.rows.MODEL``. A row that is ``like`` another starts from it, as does a protocol
   that is ``like`` another, and a file with a ``base`` starts from the protocols of that file,
2. the parts ``on.GROUP`` and then ``on.DATASET`` of that row which fit the dataset,
3. ``protocols.P.every``, which applies to all rows.

Validation chooses between all combinations of the values under ``search``; an empty list removes a
name. Each combination of the values under ``axes`` is a cell of its own.
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
    """An experiment file with everything it builds on.

    Args:
        name: The id of an experiment of the package, or the path of a file that ends in ``.toml``.

    Attributes:
        id: The name of the file without its ending.
        title, expected, time: The experiment in a line, its expected outcome, and its duration.
        datasets, models, protocols: Their ids and names.
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
        """How a protocol trains a model on a dataset, and what validation chooses."""
        found = _known(f"protocol of {self.id}", protocol, self._protocols)
        with blamed(self._path, f"protocols.{protocol}.rows.{model}"):
            raw = _complete(found["rows"], model)
            parts = raw.pop("on", {})
            for name, part in parts.items():
                if name not in self._groups:
                    describe(name)
                elif dataset in self._groups[name]:
                    raw = _merged(raw, part)
            for part in (parts.get(dataset, {}), found["every"]):
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
                    networks = len(seeds) * settings.splits(dataset)
                    networks *= math.prod(map(len, (axes | chosen).values()))
                    if networks > _MOST_RUNS:
                        raise UsageError(
                            f"{model} on {dataset} would be {networks:,} networks, and "
                            f"{_MOST_RUNS:,} are the most; shorten a list"
                        )
                name = (self.id, protocol, dataset, model)
                for point in combinations(axes):
                    yield Cell(*name, point, settings.having(point), chosen, seeds)


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
    """A row merged with the rows that it is ``like``, one after the other."""
    seen: list[str] = []
    raw: dict[str, Any] = {}
    name: str | None = model
    while name is not None:
        if name in seen:
            raise UsageError(f"like goes round in a circle: {' -> '.join((*seen, name))}")
        seen.append(name)
        row = _known("row", name, rows)
        raw, name = _merged(row, raw), row.get("like")
    raw.pop("like", None)
    return raw


def _merged(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """Both tables and the tables in them; of two values the second counts."""
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
    both = known | dict.fromkeys(Settings.names())
    for name, values in varied.items():
        default = _known(f"setting, or option of {model},", name, both)
        for value in values:
            settings.having({name: value}).member(split=0, seed=0)
            if name not in Settings.names():
                _check_option(name, value, default)


def _check_option(name: str, value: Any, default: Any) -> None:
    """Refuse an option of another type than its default, and numbers beyond all use."""
    try:
        msgspec.convert(value, type(default))
    except msgspec.ValidationError as error:
        raise UsageError(f"{name} = {value!r}: {error}") from error
    if type(default) is int and not 0 <= value <= _LARGEST:
        raise UsageError(f"{name} = {value}: give a number from 0 to {_LARGEST}")
