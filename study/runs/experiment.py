"""Experiment files: which models on which datasets, and how a protocol trains each of them.

A file is TOML. Those of the study are in ``study/experiments``, and ``table1.toml`` is an
example of everything. The settings of one model on one dataset are put together from

1. ``protocols.P.rows.MODEL``. A row that is ``like`` another, or like several, starts from them, as
   does a protocol that is ``like`` another, and a file with a ``base`` starts from the protocols
   of that file,
2. the parts ``on.GROUP`` and then ``on.DATASET`` of that row which fit the dataset,
3. ``protocols.P.every``, which applies to all rows.

Validation chooses between all combinations of the values under ``search``; an empty list removes a
name. Each combination of the values under ``axes`` is a cell of its own, and so is each of the
``variants`` of a model (options of it) or of a dataset (options of :func:`memohop.load`). Models
under ``left_out`` are not trained on the datasets named there.

Under a protocol with a ladder (``halving``) the settings are drawn from the ``space`` of the row
instead, as :mod:`memohop.jobs.space` says, and each rung of the ladder is a cell of its own. The
file gives the cells of the first rung alone; the others follow from what these have brought, see
:mod:`study.runs.cell`. ``fair.toml`` is the example.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from itertools import chain, product
from pathlib import Path
from typing import Any

import msgspec

from memohop.data.datasets.registry import describe
from memohop.errors import DataError, UsageError, check_distinct, unknown_name
from memohop.jobs.named import Scalar, Settings, combinations
from memohop.jobs.space import Space, options_of
from memohop.training.job import digest
from study import EXPERIMENTS
from study.runs.cell import RUNG, Cell, Halving

Search = dict[str, list[Scalar]]
Rows = dict[str, dict[str, Any]]

_MOST_RUNS = 1_000_000  # of one model on one dataset
_LARGEST = 100_000  # layers, channels or heads


class Protocol(msgspec.Struct, forbid_unknown_fields=True):
    """A table ``protocols.NAME``."""

    about: str = ""
    like: str | None = None
    seeds: tuple[int, ...] | None = None
    halving: Halving | None = None
    every: dict[str, Any] = {}
    rows: Rows = {}


class File(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The whole file."""

    title: str
    expected: str
    time: str
    datasets: list[str]
    models: list[str]
    base: str | None = None
    seeds: tuple[int, ...] = (0,)
    groups: dict[str, list[str]] = {}
    axes: Search = {}
    variants: dict[str, list[dict[str, Scalar]]] = {}
    left_out: dict[str, list[str]] = {}
    protocols: dict[str, Protocol]


class _Row(msgspec.Struct):
    """The keys of a row beside its settings, which are checked when it is complete."""

    about: str = ""
    like: str | list[str] = []
    on: Rows = {}
    search: Search = {}
    space: Space = {}


class Experiment:
    """An experiment file with everything it builds on.

    Args:
        name: The id of an experiment of the study, or the path of a file that ends in ``.toml``.

    Attributes:
        id: The name of the file without its ending.
    """

    def __init__(self, name: str, *, _above: tuple[Path, ...] = ()) -> None:
        self._path = Path(name)
        if self._path.suffix != ".toml":
            _known("experiment", name, experiments())
            self._path = EXPERIMENTS / f"{name}.toml"
        file = self._file = _read(self._path)
        files = (*_above, self._path.resolve())
        if files[-1] in _above:
            raise UsageError(f"{name} builds on itself; name another experiment")
        self.id, self.datasets, self.models = self._path.stem, file.datasets, file.models
        with self._blamed("base"):
            base = None if file.base is None else Experiment(file.base, _above=files)
        self._groups: dict[str, list[str]] = (base._groups if base else {}) | file.groups
        with self._blamed("variants or left_out"):
            for name in chain(file.variants, file.left_out, *file.left_out.values()):
                _known("model or dataset", name, [*self.models, *self.datasets])
        with self._blamed("datasets or groups"):
            for dataset in chain(self.datasets, *self._groups.values()):
                describe(dataset)
        self._protocols: dict[str, dict[str, Any]] = {}
        for protocol, part in file.protocols.items():
            whole: dict[str, Any] = {}
            if part.like is not None:
                with self._blamed(f"protocols.{protocol}.like"):
                    _known("protocol above it", part.like, self._protocols)
                whole = self._protocols[part.like]
            whole = _merged(whole, base._protocols.get(protocol, {}) if base else {})
            self._protocols[protocol] = _merged(whole, {"rows": part.rows, "every": part.every})
        self.protocols = list(self._protocols)

    def row(self, protocol: str, model: str, dataset: str) -> tuple[Settings, Search, Space]:
        """How a protocol trains a model on a dataset, what validation chooses, and draws from."""
        _known(f"protocol of {self.id}", protocol, self._protocols)
        table = self._protocols[protocol]
        with self._blamed(f"protocols.{protocol}.rows.{model}"):
            raw = _complete(table["rows"], model)
            parts = raw.pop("on", {})
            for name, part in parts.items():
                if name not in self._groups:
                    describe(name)
                elif dataset in self._groups[name]:
                    raw = _merged(raw, part)
            raw = _merged(_merged(raw, parts.get(dataset, {})), table["every"])
            keys = msgspec.convert({key: raw.pop(key, {}) for key in ("search", "space")}, _Row)
            raw.pop("about", None)
            search = {name: values for name, values in keys.search.items() if values}
            for name, values in search.items():
                check_distinct(f"search.{name}", values)
            space = {name: values for name, values in keys.space.items() if values}
            if not describe(dataset).directed:
                space.pop("direction", None)
            settings = Settings.of(raw)
            _check(model, settings, search | options_of(space))
            return settings, search, space

    @property
    def is_search(self) -> bool:
        """Whether its settings are found by successive halving."""
        return any(map(self.halving, self.protocols))

    def halving(self, protocol: str) -> Halving | None:
        """The ladder of a protocol, if it has one."""
        return self._file.protocols[protocol].halving

    def cells(self, protocols: Iterable[str] | None = None) -> Iterator[Cell]:
        """All cells, one protocol and one dataset after the other."""
        axes = self._file.axes
        for protocol in self.protocols if protocols is None else protocols:
            seeds = self._file.protocols[protocol].seeds or self._file.seeds
            for dataset, model in product(self.datasets, self.models):
                if dataset in self._file.left_out.get(model, ()):
                    continue
                settings, search, space = self.row(protocol, model, dataset)
                with self._blamed("axes"):
                    _check(model, settings, axes)
                for seed in seeds:
                    with self._blamed("seeds"):
                        settings.member(seed=seed)
                chosen = {name: search[name] for name in search if name not in axes}
                with self._blamed():
                    networks = len(seeds) * settings.graph(dataset).splits
                    networks *= math.prod(map(len, (axes | chosen).values()))
                    if networks > _MOST_RUNS:
                        raise UsageError(
                            f"{model} on {dataset} would be {networks:,} networks, and "
                            f"{_MOST_RUNS:,} are the most; shorten a list"
                        )
                name, halving = (self.id, protocol, dataset, model), self.halving(protocol)
                with self._blamed(f"protocols.{protocol}.rows.{model}.space"):
                    drawn = halving.draw(space) if halving else tuple(combinations(chosen))
                rung: dict[str, Scalar] = {RUNG: 1} if halving else {}
                places = tuple(range(len(drawn)))
                for point, varied in self._points(settings, dataset, model):
                    yield Cell(*name, point | rung, varied, drawn, places, seeds, halving)

    def _points(
        self, settings: Settings, dataset: str, model: str
    ) -> Iterator[tuple[dict[str, Scalar], Settings]]:
        """The axes of each cell of a model on a dataset, and its settings."""
        of_data, of_model = (self._file.variants.get(name, [{}]) for name in (dataset, model))
        for data, options, point in product(of_data, of_model, combinations(self._file.axes)):
            with self._blamed("variants"):
                _check(model, settings, {name: [value] for name, value in options.items()})
                varied = settings.having(options | point)
            yield data | options | point, replace(varied, data=varied.data | data)

    def _blamed(self, key: str = "") -> AbstractContextManager[None]:
        return _blaming(self._path, key)


def experiments() -> list[str]:
    """The ids of the experiments of the study."""
    return sorted(path.stem for path in EXPERIMENTS.glob("*.toml"))


def _known(kind: str, name: str, known: Iterable[str]) -> None:
    if name not in known:
        raise unknown_name(kind, name, known)


def _complete(rows: Rows, model: str, above: tuple[str, ...] = ()) -> dict[str, Any]:
    """A row merged with the rows that it is ``like``; of these, later ones count more."""
    if model in above:
        raise UsageError(f"like goes round in a circle: {' -> '.join((*above, model))}")
    _known("row", model, rows)
    raw, row = dict[str, Any](), {**rows[model]}
    like = row.pop("like", [])
    for name in [like] if isinstance(like, str) else like:
        raw = _merged(raw, _complete(rows, name, (*above, model)))
    return _merged(raw, row)


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
    settings.member()
    for name in settings.options:
        _known(f"option of {model}", name, known)
    options = [*settings.options.items()]
    for name, values in varied.items():
        _known(f"setting, or option of {model},", name, [*known, *Settings.names()])
        for value in values:
            settings.having({name: value}).member()
        options += [(name, value) for value in values if name not in Settings.names()]
    for name, value in options:
        try:
            msgspec.convert(value, type(known[name]))
        except msgspec.ValidationError as error:
            raise UsageError(f"{name} = {value!r}: {error}") from error
        if type(known[name]) is int and not 0 <= value <= _LARGEST:
            raise UsageError(f"{name} = {value}: give a number from 0 to {_LARGEST}")


def _read(path: Path) -> File:
    """The file, or an error that names what is wrong with it."""
    try:
        content = path.read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a name that no file can have
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"cannot read the experiment {path}: {reason}") from error
    with _blaming(path):
        try:
            raw = tomllib.loads(content.decode())
            digest(raw)  # ids are made of the values
        except (ValueError, TypeError, RecursionError) as error:
            raise UsageError(
                f"{error}; give TOML in UTF-8, without dates and infinite numbers"
            ) from error
        file = msgspec.convert(raw, File)
        # They are multiplied out: a repeated value would double the cells or runs.
        lists: dict[str, Sequence[Scalar]]
        lists = {"datasets": file.datasets, "models": file.models, "seeds": file.seeds}
        lists |= {f"axes.{name}": values for name, values in file.axes.items()}
        for name, points in file.variants.items():
            lists[f"variants.{name}"] = [str(sorted(point.items())) for point in points]
        for name, protocol in file.protocols.items():
            if protocol.seeds is not None:
                lists[f"protocols.{name}.seeds"] = protocol.seeds
        for key, values in lists.items():
            if not values:
                raise UsageError(f"{key} is empty; give one value at least")
            check_distinct(key, values)
        if not file.protocols:
            raise UsageError("protocols is empty; add one")
    for name, protocol in file.protocols.items():
        for model, row in protocol.rows.items():
            with _blaming(path, f"protocols.{name}.rows.{model}"):
                msgspec.convert(row, _Row)
    return file


@contextmanager
def _blaming(path: Path, key: str = "") -> Iterator[None]:
    """Name the file and the key of a mistake, and for some mistakes a remedy."""
    start = f"{path.name}: {key}: " if key else f"{path.name}: "
    try:
        yield
    except (msgspec.MsgspecError, UsageError) as error:
        message = f"{start}{error}"
        if "unknown field" in message:
            message += "; correct it or take it out"
        elif "missing required field" in message:
            message += "; add it"
        raise DataError(message) from error
