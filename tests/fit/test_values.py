"""What labels say of the values of columns, against loops over small tables."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file
from scipy import sparse

import memohop
from memohop import DataError, GraphClassifier, GraphRegressor
from memohop.explain import explain_fit
from memohop.fit._curve import Curve
from memohop.fit._graph import Inputs
from memohop.fit._values import ValueLabels, codes_of, many_valued, value_shares
from memohop.fit._views import View
from memohop.fit.candidates._on_curve import with_heights
from memohop.folders import named, sha256_of
from memohop.report.fit_page import fit_page
from saved_models import changed
from tiny_problem import QUICK, tiny_problem

X = np.array([[1, 0, 0], [1, 0, 0], [0, 1, 1], [0, 1, 1], [0, 0, 1], [0, 0, 0]], dtype=np.float32)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_rows_with_the_same_features_have_the_same_number(form):
    whole, last = codes_of(form(X), [(0, 3), (2, 3)]).T
    assert whole[0] == whole[1]
    assert whole[2] == whole[3]
    assert len({*whole}) == 4
    assert whole[5] == 0  # no feature says what it is
    assert last[:2].tolist() == [0, 0]
    assert last[2] == last[3] == last[4] > 0


def test_numbers_of_values_stay_the_same():
    """Saved models know values by them."""
    assert codes_of(X, [(0, 1)])[0, 0] == 11749869230777074271


COLUMNS = {"club": (0, 8), "player": (8, 16)}


def indicators(values):
    """A feature for each value of two columns; 0 is none."""
    return np.hstack([np.eye(9, dtype=np.float32)[column, 1:] for column in values.T])


def _slow(codes, y, classes, overall, node, times):
    """The labels of others with the value, of other folds if the node has a label itself."""
    numbers = np.random.PCG64(1).random_raw(len(y)) % 5
    known = y >= 0 if classes else ~np.isnan(y)
    shares = []
    for column in codes.T:
        labels = [
            y[other]
            for other in np.flatnonzero(known)
            if column[other] == column[node] != 0
            and not (known[node] and numbers[other] == numbers[node])
            and (np.isnan(times[other]) or times[other] < times[node])
        ]
        if classes:
            sums = np.array([labels.count(number) for number in range(classes)])
        else:
            sums = np.array([sum(labels)])
        shares += [*((sums + overall) / (len(labels) + 1)), np.log1p(len(labels))]
    return shares


@st.composite
def tables(draw):
    """Values of two columns, some missing, and classes or numbers, some unknown."""
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    nodes = draw(st.integers(2, 40))
    values = generator.integers(0, draw(st.integers(1, 9)), (nodes, 2))
    y = generator.integers(-1, 3, nodes)
    if draw(st.booleans()):
        y = np.where(y < 0, np.nan, 10.0 ** generator.uniform(-3, 9, nodes) * (1 - y))
    times = None if draw(st.booleans()) else generator.choice([1.0, 2.0, 2.5, 1e9, np.nan], nodes)
    return values, y, times


@pytest.mark.fuzz
@given(tables())
def test_the_labels_of_a_node_are_those_of_others_with_its_value(table):
    codes, y, times = table
    classes, overall = (0, np.array([0.5])) if y.dtype == float else (3, np.array([0.2, 0.3, 0.5]))
    x, told = indicators(codes), {"overall": overall, "times": times}
    shares = value_shares(x, y, classes, COLUMNS, **told)
    moments = np.full(len(y), np.nan) if times is None else times
    for node in range(len(y)):
        slow = _slow(codes, y, classes, overall, node, moments)
        size = np.nan_to_num(np.abs(y)).sum() * np.finfo(np.float32).eps
        assert shares[node] == pytest.approx(np.array(slow), rel=1e-6, abs=4 * size)


@pytest.mark.fuzz
@given(tables())
def test_its_own_label_changes_nothing_for_a_node(table):
    codes, y, times = table
    classes, overall = (0, np.array([0.5])) if y.dtype == float else (3, np.array([0.2, 0.3, 0.5]))
    x, told = indicators(codes), {"overall": overall, "times": times}
    shares = value_shares(x, y, classes, COLUMNS, **told)
    for node in np.flatnonzero(y >= 0 if classes else ~np.isnan(y)):
        other = y.copy()
        other[node] = (y[node] + 1) % 3 if classes else 1e6 * y[node] - 7
        assert (value_shares(x, other, classes, COLUMNS, **told)[node] == shares[node]).all()
        alone = value_shares(x, y, classes, COLUMNS, **told, rows=np.array([node]))
        assert (alone == shares[node]).all()


@pytest.mark.fuzz
@given(tables(), st.integers(0, 2**32 - 1))
def test_in_time_no_later_label_changes_anything_for_a_node(table, seed):
    """Nor do later values; also for nodes of another graph, which hear what fit has learned."""
    codes, y, _ = table
    generator, nodes = np.random.default_rng(seed), len(y)
    classes, overall = (0, np.array([0.5])) if y.dtype == float else (3, np.array([0.2, 0.3, 0.5]))
    times, cut = generator.permutation(nodes).astype(float), nodes // 2
    times[generator.random(nodes) < 0.1] = np.nan
    late = times >= cut
    others, scrambled = codes.copy(), y.copy()
    others[late] = generator.integers(0, 9, (late.sum(), 2))
    scrambled[late] = generator.permutation(y)[late]
    told = {"overall": overall, "times": times}
    for of_fit in (False, True):
        said = []
        for values, labels in ((codes, y), (others, scrambled)):
            x, nothing = indicators(values), {}
            if of_fit:
                learned = ValueLabels.of(x, COLUMNS, labels, classes, times)
                nothing = {"of_fit": learned}
                labels = np.full_like(labels, -1 if classes else np.nan)
            said.append(value_shares(x, labels, classes, COLUMNS, **told, **nothing)[~late])
        assert (said[0] == said[1]).all()


def test_values_that_no_other_node_has_say_what_holds_overall():
    shares = value_shares(np.eye(40), np.arange(40) % 2, 2, {"code": (0, 40)})
    assert shares.tolist() == [[0.5, 0.5, 0.0]] * 40


FIRST = ["Ann", "Bob", "Charlotte", "Dieudonne", "Eve", "Fitzgerald", "Gwendolyn", "Hans"]
LAST = ["Ames", "Bo", "Carrington", "Dee", "Esposito", "Fox", "Grimm", "Hollingsworth"]


def people(rows=400, seed=0):
    """Names that come several times and decide, beside texts that do not repeat."""
    generator = np.random.default_rng(seed)
    who = generator.integers(64, size=rows)
    return {
        "id": [f"n{row}" for row in range(rows)],
        "remark": [f"word{a} and word{b}" for a, b in generator.integers(99, size=(rows, 2))],
        "name": [f"{FIRST[number % 8]} {LAST[number // 8]}" for number in who],
        "team": [f"t{number}" for number in who],
        "kind": [f"k{number % 3}" for number in who],
        "size": generator.normal(size=rows),
        "y": [("yes", "no")[hash_ % 2] if row % 7 else None for row, hash_ in enumerate(who * 31)],
    }


def arcs(table):
    names = table["id"]
    return {"source": names, "target": names[1:] + names[:1]}


def test_names_in_columns_are_found_whatever_they_are_read_as():
    table = people()
    read = memohop.read_graph(table, arcs(table), label="y")
    ends = read.encoder.of_values
    assert [*ends] == ["name", "team", "kind"]  # remarks are words, of which few are repeated
    names = read.encoder.feature_names
    assert {names[number] for number in range(*ends["kind"])} == {f"kind=k{n}" for n in range(3)}
    assert all(names[number].startswith("name: ") for number in range(*ends["name"]))
    assert [*many_valued(read.x, ends, 2)] == ["name", "team"]  # three kinds say it themselves
    assert [*many_valued(read.x, ends, 200)] == ["name"]  # with so many classes, one column
    assert many_valued(read.x, ends, 300) == {}


def test_rare_values_and_missing_ones_are_no_value():
    table = people() | {"team": ["once"] + ["ab"[row % 2] for row in range(398)] + [None]}
    read = memohop.read_graph(table, arcs(table), label="y")
    team = codes_of(read.x, [read.encoder.of_values["team"]])[:, 0]
    assert team[0] == team[-1] == 0
    assert len({*team[1:-1].tolist()} - {0}) == 2


@pytest.fixture(scope="module", params=["lightgbm", "linear+neighbours", "extra-trees"])
def fitted(request):
    """A model that uses the labels of values, on a table where they decide."""
    table = people()
    read = memohop.read_graph(table, arcs(table), label="y")
    model = GraphClassifier(models=[request.param], **QUICK).fit(read)
    (component,) = model.model_.components
    assert component.setting.options["same_values"]
    assert [*component.models[0].view.values] == ["name", "team"]
    return model


def test_later_nodes_hear_what_labels_say_of_their_values(fitted):
    """Appended, or in a table of their own, where nothing is known of neighbours."""
    later = {
        name: values[:40] for name, values in people(seed=1).items() if name not in ("id", "y")
    }
    later["id"] = [f"later{row}" for row in range(40)]
    for more in ({"append": True}, {}):
        inputs, _ = memohop.fit._inputs.to_predict(fitted, later, arcs(later), **more)
        view = fitted.model_.components[0].models[0].view
        at = [
            each == ("values", "team") for each in view.names(inputs, fitted.encoder_.feature_names)
        ]
        features = view.features(inputs, inputs.y)
        features = features.toarray() if sparse.issparse(features) else features
        graph = fitted.graph_
        known = [name for name, y in zip(people()["team"], graph.y, strict=True) if y >= 0]
        for row, team in zip(features[-40:, at], later["team"], strict=True):
            assert row[-1] == pytest.approx(np.log1p(known.count(team)))
    strange = later | {"name": ["No One"] * 40, "team": ["none"] * 40}
    assert np.isfinite(fitted.predict_proba(strange, arcs(later))).all()


def test_a_saved_model_says_the_same_with_and_without_its_graph(fitted, tmp_path):
    later = {name: values[:40] for name, values in people(seed=1).items() if name != "y"}
    said = fitted.predict_proba(later, arcs(later), as_another_graph=True)
    fitted.save(tmp_path / "model")
    loaded = GraphClassifier.load(tmp_path / "model")
    assert (loaded.predict_proba() == fitted.predict_proba()).all()
    assert (loaded.predict_proba(later, arcs(later), as_another_graph=True) == said).all()
    (graph,) = (tmp_path / "model").glob("graph-*")
    graph.unlink()
    loaded = GraphClassifier.load(tmp_path / "model")
    assert (loaded.predict_proba(later, arcs(later)) == said).all()
    assert np.ptp(said) > 0.2


FORGERIES = [
    ({"name": [0, 5], "team": [3, 9]}, "not the features of columns"),
    ({"name": [0, 10**9]}, "not the features of columns"),
    ({"name": [5, 5]}, "not the features of columns"),
    ({"name": [0]}, "length 2"),
    ({"name": "all"}, "Expected"),
    ({}, "which its view does not make"),
]


@pytest.mark.parametrize(("values", "words"), FORGERIES)
def test_forged_columns_are_refused(fitted, tmp_path, values, words):
    fitted.save(tmp_path / "model")
    changed(tmp_path / "model", "views", 0, "values", value=values)
    with pytest.raises(DataError, match=words):
        memohop.load_model(tmp_path / "model")


DAMAGE = {
    "no value": ("values.values", lambda values: 0 * values),
    "another type": ("values.values", lambda values: values.astype(np.int64)),
    "fewer": ("values.labels", lambda labels: labels[:3].copy()),
    "no class": ("values.labels", lambda labels: labels - 1),
    "never": ("values.counts", lambda counts: 0 * counts),
    "too often": ("values.counts", lambda counts: counts + 400),
    "no moment": ("values.moments", lambda moments: moments * -np.inf),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_forged_sums_are_refused(fitted, tmp_path, damage):
    fitted.save(folder := tmp_path / "model")
    (path,) = folder.glob("weights-*")
    arrays, (name, make) = load_file(path), DAMAGE[damage]
    arrays[name] = make(arrays[name])
    save_file(arrays, path)
    digest = sha256_of(path)
    path.rename(folder / named("weights", digest, ".safetensors"))
    changed(folder, "weights", value=digest)
    with pytest.raises(DataError, match=r"damaged|a part has"):
        memohop.load_model(folder)


def test_numbers_to_predict_have_means():
    table = people()
    table["y"] = [
        None if row % 7 == 0 else 3.0 * int(team[1:]) for row, team in enumerate(table["team"])
    ]
    read = memohop.read_graph(table, arcs(table), label="y", task="numbers")
    model = GraphRegressor(models=["lightgbm", "nearest"], **QUICK).fit(read)
    assert model.report_.families[0].options["same_values"]
    assert model.report_.families[0].val > 0.5
    later = {name: values[:40] for name, values in people(seed=1).items() if name != "y"}
    truth = [3.0 * int(team[1:]) for team in later["team"]]
    assert np.corrcoef(model.predict(later, arcs(later)), truth)[0, 1] > 0.9


def test_on_a_curve_the_labels_of_values_are_heights():
    x, columns = np.array([[1], [1], [1], [0]], dtype=np.float32), {"card": (0, 1)}
    told = ValueLabels.of(x, columns, np.array([2.0, 2.0, 8.0, 9.0]), 0)
    graph = Inputs(x, np.empty((2, 0), dtype=np.int64), np.full(4, np.nan), overall=np.array([5.0]))
    curve = Curve.fit("log", np.array([2.0, 8.0]))
    heights = with_heights(replace(graph, value_labels=told), curve)
    view = View("columns", 0, 0, values=columns)
    expected = (2 * np.log(2) + np.log(8) + curve.mean) / 4
    assert view.features(heights, heights.y)[:, 1] == pytest.approx([expected] * 3 + [curve.mean])


def test_a_table_without_such_columns_has_no_choice():
    problem = tiny_problem()
    assert problem.values == {}
    assert ValueLabels.of(problem.x, problem.values, problem.y, 2) is None


def test_they_are_explained(fitted):
    if fitted.models == ["extra-trees"]:
        return
    explained = explain_fit(fitted, node="n3")
    assert explained.sources["values"] > 0
    page = fit_page(explained)
    assert "the labels of nodes with the same values" in page
    assert "labels of nodes with the same team" in page
