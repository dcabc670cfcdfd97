"""Kinds of model that learn from the features of a :class:`~memohop.fit._views.View`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Event, Lock
from typing import ClassVar, get_args

import numpy as np
import torch
from scipy import sparse

from memohop.errors import UsageError
from memohop.fit._candidate import Cost, Family, Fit, Fits, FittedModel, Look, Setting, kept_bytes
from memohop.fit._graph import Inputs
from memohop.fit._neighbourhood import APART, EVERY, Matrix, Rows
from memohop.fit._problem import Outputs, Problem
from memohop.fit._saved import Sizes
from memohop.fit._structure import structure_bytes
from memohop.fit._views import Extras, Means, OwnColumns, Sees, View
from memohop.fit.candidates.spaces import listed
from memohop.jobs.space import Space
from memohop.training import Enough

SMALL = 10_000
"""Rows of a table below which one thread is quicker than several."""

# Bytes of RAM, beside the features.
_PER_LINK = 150  # of the matrices of neighbours, and again of a model's files
_PER_LOGIT = 32
_OF_STRUCTURE = 12  # features


@dataclass(frozen=True, eq=False)
class ViewModel(FittedModel):
    """A fitted model of the features of a view.

    Attributes:
        view: How its features are made.
    """

    view: View

    @property
    def has_rows(self) -> bool:
        """Whether its features say who the neighbours of a node are."""
        return self.view.sees in ("rows", "positions")

    @property
    def needs_whole_graph(self) -> bool:
        """Whether its features are made of more than a block of the graph."""
        return self.view.needs_whole_graph

    @property
    def takes_labels(self) -> bool:
        """Whether its features have the labels of neighbours."""
        return self.view.sees != "columns" or bool(self.view.values)

    @property
    def takes_attributes(self) -> bool:
        """Whether it collects along relations."""
        return any(way.attribute is not None for way in self.view.ways)

    def outputs(self, inputs: Inputs, rows: Rows = EVERY) -> Outputs:
        """Probabilities of the classes, or the number."""
        return self.of_features(self.view.features(inputs, inputs.y)[rows])

    @abstractmethod
    def of_features(self, features: Matrix) -> Outputs:
        """The same from features that are already made."""


Learned = tuple[ViewModel, Callable[[Matrix], Outputs]]
"""A model, and its outputs for features."""


@dataclass(frozen=True)
class ViewFamily(Family):
    """Models with the same features.

    Attributes:
        sees: The features that the models use.
        balanced: Whether classes, rather than nodes, have equal weight.
    """

    sees: Sees
    balanced: bool = False
    learner: ClassVar[str]
    """What learns from the features: its settings are in ``spaces.toml``."""
    tables: ClassVar[tuple[tuple[OwnColumns, Means], ...]] = (("all", "numbers"), ("all", "all"))
    """A node's own columns, and those whose means over the neighbours are features."""

    @property
    def sees_graph(self) -> bool:
        """Whether the models use arcs."""
        return self.sees != "columns"

    def first(self, problem: Problem) -> list[Setting]:
        """The first settings; none for models of columns if there are no columns.

        Nor for positions if nodes have times: who their neighbours are is seen from the end.
        """
        if not (self.sees_graph or problem.has_columns):
            return []
        if self.sees == "positions" and problem.times is not None:
            return []
        tables, numbers = self._tables(problem), listed().first[self.learner]
        usual = {name: some[0] for name, some in self._of_graph(problem).items() if len(some) > 1}
        settings = [Setting(self.id, {**each, **usual}, row) for row in numbers for each in tables]
        at = self._openers(problem)
        for more in reversed(self._more_openers(problem)):
            place = 1 if "ways" in more else at  # ways change more than what is made of the table
            settings.insert(place, Setting(self.id, {**tables[0], **usual, **more}, numbers[0]))
        return settings

    def openers(self, problem: Problem) -> int:
        """The first numbers, with what is made of the table, and perhaps more of the graph."""
        return self._openers(problem) + len(self._more_openers(problem))

    def _openers(self, problem: Problem) -> int:
        """All that may be made of the table, and as little as possible of the graph."""
        return len(self._tables(problem))

    def _more_openers(self, problem: Problem) -> list[dict[str, str]]:
        """Options of the graph that a search begins with, beside the usual ones.

        Along many ways, means of columns would be hundreds of features, and labels one or two each.
        """
        if self.sees != "neighbours":
            return []
        choices = self._of_graph(problem)
        wanted = {"ways": {"ways": "apart", "means": "none"}, "extras": {"extras": "structure"}}
        return [more for name, more in wanted.items() if more[name] in choices[name][1:]]

    def space(self, problem: Problem) -> Space:
        """The numbers, and the options between which there is a choice."""
        tables = self._tables(problem)
        values = {name: [*dict.fromkeys(each[name] for each in tables)] for name in tables[0]}
        if self.sees_graph:
            values["means"].append("none")
        values |= {name: [*some] for name, some in self._of_graph(problem).items()}
        choices: Space = {name: [*some] for name, some in values.items() if len(some) > 1}
        return choices | listed().numbers[self.learner]

    def _of_graph(self, problem: Problem) -> dict[str, Sequence[str]]:
        """How neighbours may be told apart, and what else may be seen of the graph.

        Extremes and spread are only seen if there are numbers. If nodes have times, structure is
        not for them: all of it is seen from the end.
        """
        if not self.sees_graph:
            return {}
        there = {"spread": len(problem.all_numbers) > 0, "structure": problem.times is None}
        there["both"] = all(there.values())
        extras = [extras for extras in get_args(Extras) if there.get(extras, True)]
        return {"ways": problem.ways, "extras": extras}

    def _tables(self, problem: Problem) -> list[dict[str, bool | int | float | str]]:
        """The options, those of :attr:`tables` that mean something for the table.

        The first is also tried without the labels of nodes with the same values, if the others are
        with them.
        """
        there = {"all": True, "numbers": problem.has_words(self.sees)}
        there["low-rank"] = problem.has_many_words(self.sees)
        tables: list[dict[str, bool | int | float | str]] = []
        for columns, means in self.tables:
            of_neighbours = means if self.sees_graph and there[means] else "all"
            table = {"columns": columns, "means": of_neighbours}
            if there[columns] and table not in tables:
                tables.append({**table})
        said = ["columns"] if {table["columns"] for table in tables} != {"all"} else []
        said += ["means"] if self.sees_graph else []
        tables = [{name: table[name] for name in said} for table in tables]
        if problem.values:
            with_labels = [{**table, "same_values": True} for table in tables]
            tables = [with_labels[0], {**tables[0], "same_values": False}, *with_labels[1:]]
        return tables

    def view(self, problem: Problem, setting: Setting) -> View:
        """How the features of a setting are made."""
        return problem.view(self.sees, **setting.options)

    def cost(self, problem: Problem, setting: Setting) -> Cost:
        """The RAM; a fit is quick, or stops with a model that is of use.

        Label shares and logits are in double precision, and features are held three times.
        """
        outputs, rows, x = max(problem.classes, 1), len(problem.labelled), problem.x
        ways = 3 if problem.neighbourhood.directed else 1
        columns = setting.options.get("columns", "all")
        apart = 2 * APART if setting.options.get("ways") == "apart" else 0
        stored = x.data.nbytes + x.indices.nbytes if sparse.issparse(x) else x.nbytes
        if columns != "all":
            stored = 4 * problem.width(self.sees, columns) * problem.nodes
        width, held = (
            problem.width(self.sees, columns),
            3 * stored + _PER_LINK * problem.arcs.shape[1],
        )
        if self.sees_graph:
            held += held + 3 * stored  # means over one hop and over two hops
            shares = 2 * ways * (outputs + 1)
            held += 8 * (outputs + 1) * (2 * problem.nodes + (3 + 5 * ways) * rows)
            held += 3 * 4 * shares * rows + (8 + 3 * 4) * apart * rows
            width = 3 * width + shares + apart
        if setting.options.get("same_values"):
            shares = len(problem.values) * (outputs + 1)
            held += (8 * 2 + 3 * 4) * shares * rows
            width += shares
        extras = setting.options.get("extras", "none")
        if extras in ("structure", "both"):
            held += structure_bytes(problem.nodes, problem.arcs.shape[1])
            width += _OF_STRUCTURE
        if extras in ("spread", "both"):
            numbers = len(problem.all_numbers)
            held += 3 * 3 * 8 * numbers * problem.nodes + 24 * problem.arcs.shape[1]
            width += 3 * numbers
        held += self.bytes_of_feature(outputs) * width + _PER_LOGIT * outputs * rows
        return Cost(0.0, held + kept_bytes(problem)).within(self.memory)

    def fit(
        self,
        problem: Problem,
        settings: Sequence[Setting],
        splits: Sequence[int],
        *,
        look: Look = lambda: None,
    ) -> Fits:
        """Fit them, on several splits at the same time if the table is small.

        On a large one, each fit has all threads, and there is only one copy of its features.
        """
        fits: Fits = [{} for _ in settings]
        one_at_a_time, ended = Lock(), Event()

        def ask() -> None:
            with one_at_a_time:
                if ended.is_set():
                    raise Enough
                look()

        def fit_on(split: int) -> None:
            with one_at_a_time:  # what all splits have in common is made once
                view = self.view(problem, settings[0])
                features = problem.features(self.sees, split, **settings[0].options)
            masks = problem.masks.val[:, split], problem.masks.test
            val, test = (mask[problem.labelled] for mask in masks)
            for of_setting, setting in zip(fits, settings, strict=True):
                if any(fits):
                    ask()
                part, say = self.learn(problem, view, features, setting.numbers, split, ask)
                of_setting[split] = Fit(say(features[val]), say(features[test]), part)

        with ThreadPoolExecutor(splits_at_once(problem)) as pool:
            try:
                for done in [pool.submit(fit_on, split) for split in splits]:
                    done.result()
            except Enough:
                pass
            finally:
                ended.set()  # for threads that are still at work, after Ctrl-C for example
        return [dict(sorted(of_setting.items())) for of_setting in fits]

    @abstractmethod
    def learn(
        self,
        problem: Problem,
        view: View,
        features: Matrix,
        numbers: Mapping[str, float],
        split: int,
        look: Look,
    ) -> Learned:
        """Learn from the training nodes of a split, given the features of all labelled nodes."""

    @abstractmethod
    def bytes_of_feature(self, outputs: int) -> int:
        """The bytes of RAM that learning takes for each feature."""


def splits_at_once(problem: Problem) -> int:
    """How many splits are fitted at the same time."""
    return torch.get_num_threads() if len(problem.labelled) < SMALL else 1


def check_width(view: View, width: int, sizes: Sizes) -> None:
    """Refuse a model with another number of features than its view makes."""
    nothing = np.full(1, -1) if sizes.classes else np.full(1, np.nan)
    own = sizes.features - sizes.of_edges if view.columns is None else len(view.columns)
    if width >= own:  # otherwise the file could request any number of bytes
        node = Inputs(
            sparse.csr_array((1, sizes.features), dtype=np.float32),
            np.empty((2, 0), dtype=np.int64),
            nothing,
            directed=sizes.directed,
            overall=np.zeros(sizes.outputs),
            of_edges=sizes.of_edges,
            attributes=np.empty((0, len(sizes.described)), dtype=np.float32),
            described=sizes.described,
        )
        if width == view.features(node, nothing).shape[1]:
            return
    raise UsageError(f"a part has weights of {width} features, which its view does not make")
