"""With times, nothing that comes after a node changes what is said of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file

import memohop
from memohop import DataError, GraphClassifier, UsageError
from memohop.fit import _values
from memohop.fit._candidate import Setting
from memohop.fit._given import as_given, given_to_fit
from memohop.fit._graph import Inputs
from memohop.fit._neighbourhood import Neighbourhood
from memohop.fit.candidates._fitted_network import Network
from memohop.fit.candidates._network import NetworkFamily
from memohop.fit.candidates._network_data import as_data
from memohop.fit.candidates.catalogue import families, names
from memohop.fit.candidates.spaces import listed
from memohop.folders import named, sha256_of
from memohop.jobs.space import draw
from memohop.networks import build
from memohop.training import DEFAULT_RULES
from saved_models import changed
from tiny_problem import QUICK, tiny_problem

UNTIMELY = ("lightgbm+positions", "dir-gcn")
"""Kinds that cannot tell earlier from later."""
NODES, CUT = 60, 35.0
TIMES = np.random.default_rng(5).permutation(NODES).astype(float)
TIMES[:4] = np.nan
ALL = families(None, rules=DEFAULT_RULES, seed=0, device="cpu", memory=None)
LATE = TIMES > CUT  # those without a time may be known to all


def tables():
    """Nodes with numbers, categories and times; edges with numbers, categories and times."""
    generator = np.random.default_rng(7)
    size, kinds = generator.normal(size=NODES), np.array(["ham", "spam"])
    nodes = {
        "id": [f"n{node}" for node in range(NODES)],
        "size": size,
        "age": generator.normal(size=NODES),
        "colour": generator.choice(["red", "green", "blue"], NODES),
        "club": generator.permutation([f"club {number % 24}" for number in range(NODES)]),
        "day": TIMES,
        "kind": kinds[(size + generator.normal(size=NODES) > 0).astype(int)],
    }
    return nodes, edges(generator, 200)


def edges(generator, count, since=None):
    """Edges between any nodes, some of them later than both ends, or of one time."""
    ends = generator.integers(0, NODES, (2, count))
    latest = np.fmax(*TIMES[ends]) + generator.integers(-3, 2, count)
    return {
        "source": [f"n{node}" for node in ends[0]],
        "target": [f"n{node}" for node in ends[1]],
        "amount": generator.exponential(size=count),
        "how": generator.choice(["cash", "card"], count),
        "since": latest if since is None else np.full(count, since),
    }


def scrambled(nodes, some_edges):
    """The same until the cut: later nodes and edges are others, and more."""
    generator, late = np.random.default_rng(11), LATE
    nodes = {name: np.array(column) for name, column in nodes.items() if name != "kind"}
    nodes["size"][late] = 100 * generator.normal(size=late.sum())
    nodes["age"][late] = np.nan
    nodes["colour"][late] = generator.choice(["red", "grey"], late.sum())
    nodes["club"][late] = generator.choice(nodes["club"], late.sum())
    nodes["day"][late] = generator.uniform(CUT + 0.1, 99, late.sum())
    number = [int(node[1:]) for node in (*some_edges["source"], *some_edges["target"])]
    ends = np.array(number).reshape(2, -1)
    later = late[ends].any(axis=0) | (some_edges["since"] > CUT)
    kept = ~later | (generator.random(len(later)) < 0.5)
    changed_edges = {name: np.array(column)[kept] for name, column in some_edges.items()}
    changed_edges["amount"][later[kept]] *= 50
    changed_edges["since"][later[kept]] = generator.uniform(CUT + 0.1, 99, later[kept].sum())
    more = edges(generator, 80, since=CUT + 5)
    return nodes, {name: np.append(column, more[name]) for name, column in changed_edges.items()}


def read(**options):
    how = {"label": "kind", "time_column": "day", "edge_time": "since"} | options
    return memohop.read_graph(*tables(), **how)


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("kind", [name for name in names() if name not in UNTIMELY])
def test_what_comes_later_changes_nothing(kind, directed, few_epochs):
    """Columns, edges and times, in every kind of model."""
    graph = read(directed=directed, weight="amount" if kind == "fsgnn" else None)
    model = GraphClassifier(models=[kind], **QUICK).fit(graph)
    nodes, some_edges = tables()
    before = model.outputs(nodes, some_edges, as_another_graph=True)
    after = model.outputs(*scrambled(nodes, some_edges))
    assert after[~LATE] == pytest.approx(before[~LATE], abs=1e-5)
    assert np.abs(after - before)[LATE].max() > 1e-3


@pytest.mark.parametrize("kind", UNTIMELY)
def test_kinds_that_cannot_tell_earlier_from_later_are_left_out(kind):
    with pytest.raises(UsageError, match="none of them can be fitted to this graph"):
        GraphClassifier(models=[kind], **QUICK).fit(read(directed=True))


def problem_and_graphs(directed):
    """A problem of tables, its graph with the labels of a split, and one that is alike until the
    cut, with other labels after it.
    """
    estimator = GraphClassifier(splits=2)
    estimator.mean_weight_ = None
    read_first = read(directed=directed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_values, "_MANY", 9)  # clubs, of which a small table has few
        problem = estimator._problem(given_to_fit(read_first, None, None), 0)
    assert "club" in problem.values
    known = problem.masks.train[:, 0] | problem.masks.val[:, 0]
    kept = replace(problem._showing(known), overall=np.array([0.5, 0.5]))
    how = {**read_first.reading, "encoder": read_first.encoder, "classes": read_first.classes}
    other = as_given(memohop.read_graph(*scrambled(*tables()), **how), None, None)
    labels = np.random.default_rng(13).integers(-1, 2, NODES)
    changed_graph = replace(
        kept,
        x=other.x,
        arcs=other.arcs(NODES),
        y=np.where(LATE, labels, kept.y),
        times=other.times,
        attributes=other.attributes,
    )
    return problem, kept, changed_graph


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("family", ALL, ids=lambda family: family.id)
def test_no_setting_sees_what_comes_later(family, directed):
    """Neither columns nor edges, times or labels; networks have random weights."""
    problem, kept, other = problem_and_graphs(directed)
    settings = family.first(problem)
    if family.id in UNTIMELY:
        assert not settings
        return
    numbers = {name for table in listed().numbers.values() for name in table}
    for drawn in draw(family.space(problem), structures=8, each=1, seed=0):
        options = {name: value for name, value in drawn.items() if name not in numbers}
        settings.append(Setting(family.id, options, {}))
    tried = {repr(sorted(setting.options.items())): setting for setting in settings}
    for setting in tried.values():
        if isinstance(family, NetworkFamily):
            data = as_data(problem, family.id, 1.0)
            sizes = (data.x.shape[1], 2, NODES)
            network = build(family.id, *sizes[:2], num_nodes=NODES, **setting.options)
            part = Network(family.id, setting.options, sizes, 1.0, network.state_dict())
            before, after = part.outputs(kept), part.outputs(other)
        else:
            view = family.view(problem, setting)
            before, after = (_dense(view.features(graph, graph.y)) for graph in (kept, other))
        assert after[~LATE] == pytest.approx(before[~LATE], abs=1e-5), setting
        assert np.abs(after - before)[LATE].max() > 1e-3


def _dense(matrix):
    return matrix if isinstance(matrix, np.ndarray) else matrix.toarray()


@st.composite
def timed_graphs(draw):
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    nodes = draw(st.integers(2, 8))
    arcs = np.argwhere(generator.random((nodes, nodes)) < draw(st.floats(0.2, 0.9))).T
    if draw(st.booleans()):
        arcs = np.unique(np.hstack([arcs, arcs[::-1]]), axis=1)
    times = generator.integers(0, 4, nodes).astype(float)
    times[generator.random(nodes) < 0.2] = np.nan
    y = generator.integers(-1, 3, nodes)
    return arcs, times, y, generator.normal(size=(nodes, 2)).astype(np.float32)


@given(timed_graphs())
def test_neighbours_are_those_that_were_there_before(graph):
    """Against walks over a literal graph."""
    arcs, times, y, x = graph
    nodes = len(y)
    pairs = {(u, v) for u, v in arcs.T.tolist() if u != v}

    def may(own, other):
        return np.isnan(times[other]) or times[other] < times[own]

    near = Neighbourhood(arcs, nodes, times=times)
    assert near.directed == any((v, u) not in pairs for u, v in pairs)
    ends = {
        "out ": pairs,
        "in ": {(v, u) for u, v in pairs},
        "": pairs | {(v, u) for u, v in pairs},
    }
    overall = np.array([0.2, 0.3, 0.5])
    shares = np.hsplit(near.label_shares(y, 3, overall), len(near.ways))
    means = near.mean(x)
    named = {way.named(()): near.matrix(way) for way in near.ways}
    for (name, way), of_way in zip(named.items(), shares, strict=True):
        for i in range(nodes):
            mine = [j for j in range(nodes) if (i, j) in ends[name] and may(i, j)]
            assert np.flatnonzero(way.toarray()[i]).tolist() == mine
            walks = [
                k
                for j in mine
                for k in range(nodes)
                if (j, k) in ends[name] and may(j, k) and k != i
            ]
            for reached, told in ((mine, of_way[i, :4]), (walks, of_way[i, 4:])):
                counts = np.bincount([y[j] for j in reached if y[j] >= 0], minlength=3)
                expected = (counts + overall) / (counts.sum() + 1)
                assert told == pytest.approx([*expected, np.log1p(counts.sum())], abs=1e-6)
            if name == "":
                mean = x[mine].mean(axis=0) if mine else np.zeros(2)
                assert means[i] == pytest.approx(mean, abs=1e-6)


@pytest.fixture(scope="module")
def fitted():
    models = ["lightgbm+neighbours", "linear+rows"]
    return GraphClassifier(models=models, **QUICK).fit(read())


def test_a_saved_model_has_the_times(fitted, tmp_path):
    fitted.save(tmp_path / "model")
    loaded = memohop.load_model(tmp_path / "model")
    assert np.array_equal(loaded.graph_.times, TIMES, equal_nan=True)
    nodes, some_edges = tables()
    assert loaded.is_graph_of_fit(memohop.fit.read_alike(loaded, nodes, some_edges))
    assert (loaded.outputs() == fitted.outputs()).all()
    later = nodes | {"day": TIMES + 1}
    assert not loaded.is_graph_of_fit(memohop.fit.read_alike(loaded, later, some_edges))
    del nodes["day"]
    with pytest.raises(UsageError, match="no column of nodes for time_column named 'day'"):
        loaded.outputs(nodes, some_edges)
    arcs = loaded.graph_.arcs
    with pytest.raises(UsageError, match="fitted with times, column 'day', and these nodes have"):
        loaded.outputs(loaded.graph_.x, arcs)


@pytest.mark.parametrize("times", [np.zeros(59), np.zeros(60, dtype=np.float32), None])
def test_forged_times_are_refused(fitted, tmp_path, times):
    folder = tmp_path / "model"
    fitted.save(folder)
    (path,) = folder.glob("graph-*.safetensors")
    arrays = {**load_file(path), "times": times}
    path.unlink()
    save_file({name: array for name, array in arrays.items() if array is not None}, path)
    digest = sha256_of(path)
    path.rename(folder / named("graph", digest, ".safetensors"))
    changed(folder, "graph", value=digest)
    with pytest.raises(DataError, match="times"):
        memohop.load_model(folder)


def test_new_nodes_learn_from_what_was_before_them(fitted):
    nodes, _ = tables()
    new = {name: column[:2] for name, column in nodes.items() if name != "kind"}
    new |= {"id": ["new", "newer"], "day": [CUT, 99.0]}
    old = [f"n{node}" for node in np.flatnonzero(TIMES > CUT)[:6]]
    links = {"source": ["new"] * 6 + ["newer"] * 6, "target": old * 2}
    links |= {"amount": [1.0] * 12, "how": ["cash"] * 12, "since": [98.0] * 12}
    loose = links | {"target": ["new"] * 6 + ["newer"] * 6}
    linked, alone = (fitted.outputs(new, each, append=True) for each in (links, loose))
    assert linked[0] == pytest.approx(alone[0], abs=1e-7)  # its neighbours come later
    assert np.abs(linked[1] - alone[1]).max() > 1e-4


def test_times_of_nodes_that_come_one_by_one_make_the_same_graph():
    """The models of the search have seen no more than they would have then."""
    arcs = np.unique(np.random.default_rng(0).integers(0, NODES, (2, 300)), axis=1)
    problem = tiny_problem(arcs=arcs, times=TIMES)
    order = np.argsort(np.where(np.isnan(TIMES), -1, TIMES))
    rank = np.argsort(order)
    arcs, x, times = rank[problem.arcs], problem.x[order], TIMES[order]
    y = problem.known(0)[order]
    whole = Inputs(x, arcs, y, of_fit=NODES, directed=True, times=times)
    first = (arcs < 50).all(axis=0)
    grown = Inputs(x[:50], arcs[:, first], y[:50], of_fit=50, directed=True, times=times[:50])
    grown = grown.with_new_nodes(x[50:], arcs[:, ~first], y[50:], None, times=times[50:])
    overall = np.array([0.5, 0.5])
    shares = [graph.neighbourhood.label_shares(y, 2, overall) for graph in (whole, grown)]
    assert (shares[0] == shares[1]).all()
    alone = Neighbourhood(arcs[:, first], 50, directed=True, times=times[:50])
    assert (alone.label_shares(y[:50], 2, overall) == shares[0][:50]).all()
