"""Skewed numbers: learned on a curve, said in their own unit, with intervals that grow."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import memohop
from memohop import DataError, GraphRegressor
from memohop.explain import explain_fit
from memohop.fit._candidate import Setting
from memohop.fit._curve import Curve, curves_for
from memohop.fit._portfolio import Portfolio
from memohop.fit._residual import Residual, residual_of
from memohop.fit._workers import FitJob, _Fitter
from memohop.fit.candidates import _network as network
from memohop.fit.candidates._linear import LinearFamily
from memohop.fit.candidates._network import NetworkFamily
from memohop.fit.candidates._on_curve import OnCurve, fit_on_curve
from memohop.fit.candidates._trees import TreeFamily
from memohop.training.metrics import METRICS
from memohop.training.objective import Regression
from saved_models import changed
from tiny_problem import ring, tiny_problem

RANDOM = np.random.default_rng(0)
SKEWED = np.exp(RANDOM.normal(size=200))
R2 = Regression(METRICS["r2"])


def prices(nodes, *, noise=0.5, seed=0):
    """Columns, and numbers whose logarithms are linear in the first of them, with some noise."""
    generator = np.random.default_rng(seed)
    x = generator.normal(size=(nodes, 3)).astype(np.float32)
    return x, 100 * np.exp(x[:, 0] + noise * generator.normal(size=nodes)).astype(float)


@pytest.mark.parametrize(
    ("y", "curves"),
    [
        (np.sort(RANDOM.normal(size=200)), ()),
        (RANDOM.random(200), ()),
        (SKEWED, ("rank", "log")),
        (7e6 * SKEWED, ("rank", "log")),
        (np.floor(SKEWED), ("rank", "log")),  # with zeros
        (-SKEWED, ("rank",)),
        (SKEWED - 1, ("rank",)),
        (SKEWED + 1e6, ("rank", "log")),  # of hardly other shape, but no worse
        (SKEWED[:10], ()),  # too few to tell
        (np.arange(200.0) < 3, ()),  # two values are no distribution
    ],
)
def test_curves_are_for_numbers_that_are_skewed_beyond_chance(y, curves):
    assert curves_for(np.asarray(y, dtype=float)) == curves


numbers = st.lists(st.floats(-1e6, 1e6), min_size=3, max_size=40, unique=True)


@given(numbers, st.sampled_from(["log", "rank"]), st.booleans())
def test_what_is_learned_goes_back_to_the_number(values, kind, positive):
    y = np.array(values)
    if positive:
        y = np.abs(y) + 1e-3
    if np.ptp(y) < 1e-3 * np.abs(y).max():
        return
    curve = Curve.fit(kind, y)
    curve.check()
    heights = curve.heights_of(np.append(y, np.nan))
    assert np.isnan(heights[-1])
    back = curve.numbers(heights[:-1])
    assert back == pytest.approx(y, rel=1e-6, abs=1e-6 * np.abs(y).max())
    order = np.argsort(y, kind="stable")
    assert (np.diff(heights[order]) >= 0).all()
    far = curve.numbers(np.array([-1e9, 1e9]))
    assert far == pytest.approx([y.min(), y.max()], rel=1e-9, abs=1e-9 * np.abs(y).max())


@pytest.mark.parametrize("kind", ["log", "rank"])
def test_a_mean_over_errors_is_not_below_the_mean(kind):
    generator = np.random.default_rng(0)
    heights, errors = generator.normal(size=20_000), generator.normal(size=20_000)
    y = np.exp(heights + errors)
    curve = Curve.fit(kind, y)
    told = curve.heights_of(np.exp(heights))
    smeared = curve.smeared(curve.heights_of(y) - told)
    assert smeared.numbers(told).mean() == pytest.approx(y.mean(), rel=0.1)  # e in all
    assert curve.numbers(told).mean() < 0.75 * y.mean()
    assert curve.smeared(np.empty(0)) is curve


def test_logarithms_do_not_depend_on_the_unit():
    y = np.floor(SKEWED)  # of those with zeros, something is added to all
    heights = [Curve.fit("log", unit * y).heights_of(unit * y) for unit in (1.0, 1000.0)]
    assert heights[1] - heights[0] == pytest.approx(np.full(200, np.log(1000)))


@pytest.fixture(scope="module")
def priced():
    """A regressor of skewed numbers, some of them unknown, which chose a curve."""
    x, y = prices(300)
    known = np.where(np.arange(300) % 10, y, np.nan)
    model = GraphRegressor(models=["linear+neighbours"], trials=4, time=None, splits=2)
    return model.fit(x, known, ring(300)), x, y


def test_numbers_are_in_their_unit_wherever_nodes_are(priced, tmp_path):
    model, x, y = priced
    assert {part.options["target"] for part in model.report_.kept} & {"log", "rank"}
    assert "The numbers are skewed, so their logarithms" in model.report_.verdict()
    hidden = np.isnan(model.graph_.y)
    said = model.predict()
    assert np.corrcoef(np.log(said[hidden]), np.log(y[hidden]))[0, 1] > 0.8
    model.save(tmp_path / "model")
    again = GraphRegressor.load(tmp_path / "model")
    assert (again.predict() == said).all()
    new = np.array([[1.0, 0, 0], [-1.0, 0, 0]], dtype=np.float32)
    arcs = np.array([[0, 300], [300, 0]])
    for regressor in (model, again):
        appended = regressor.predict(new, arcs, append=True)
        assert appended[0] > 2 * appended[1] > 0
    elsewhere = again.predict(x, ring(300), as_another_graph=True)
    assert elsewhere == pytest.approx(model.predict(x, ring(300), as_another_graph=True))
    assert np.corrcoef(np.log(elsewhere), np.log(y))[0, 1] > 0.8
    assert model.report_.later.elsewhere is None or model.report_.later.elsewhere.mean > -0.5


def test_a_curve_beats_numbers_as_they_are():
    x, y = prices(400)
    of_problem = {"x": x, "arcs": ring(400), "objective": R2}
    problem = tiny_problem(y=y, **of_problem)
    setting = LinearFamily("linear", "columns").first(problem)[0]
    scores = {}
    for target in ("plain", "log", "rank"):
        tried = replace(setting, options={"target": target})
        fits = fit_on_curve(LinearFamily("linear", "columns"), problem, [tried], [0, 1])[0]
        scores[target] = np.mean(
            [problem.score(fit.val, problem.masks.val[:, split]) for split, fit in fits.items()]
        )
    assert min(scores["log"], scores["rank"]) > scores["plain"] + 0.05


def test_the_own_number_of_a_node_is_no_feature_of_it(priced):
    """Its labels of neighbours are heights: a changed number changes those of others alone."""
    model, _, _ = priced
    part = model.model_.components[0].models[0]
    graph = replace(model.own_graph(), overall=np.zeros(1))  # a mean that the own number is in
    node = int(np.flatnonzero(~np.isnan(graph.y))[5])
    y = graph.y.copy()
    y[node] *= 100
    moved = replace(graph, y=y)
    before, after = (part.outputs(each)[:, 0] for each in (graph, moved))
    assert after[node] == before[node]
    assert after[node + 1] != before[node + 1]


def test_symmetric_numbers_are_learned_as_before():
    y = np.random.default_rng(0).normal(size=60)
    problem = tiny_problem(y=y, objective=R2)
    family = TreeFamily("lightgbm", "columns")
    openers = Portfolio(problem, {family.id: family}, 1.0, None, np.random.default_rng(0)).openers
    assert [opener.setting.options for opener in openers] == [{}]
    assert not problem.curves


def test_skewed_numbers_have_one_opener_more_of_each_kind():
    x, y = prices(60)
    problem = tiny_problem(x=x, y=y, objective=R2)
    families = {
        family.id: family
        for family in (TreeFamily("lightgbm", "columns"), LinearFamily("linear", "columns"))
    }
    running = Portfolio(problem, families, 1.0, None, np.random.default_rng(0))
    targets = [
        (opener.setting.family, opener.setting.options["target"]) for opener in running.openers
    ]
    assert targets == [
        ("lightgbm", "rank"),
        ("linear", "rank"),
        ("lightgbm", "plain"),
        ("linear", "plain"),
    ]
    assert running.waiting["linear"][0].options["target"] == "log"


def test_a_network_learns_heights_and_is_told_those_of_others(monkeypatch):
    """The targets of the trainer, and what is in the memory, are standardised heights."""
    seen = []

    def train(data, model, members, **more):
        seen.append(data.y.numpy())
        return []

    monkeypatch.setattr(network, "train", train)
    x, y = prices(60)
    problem = tiny_problem(x=x, y=y, objective=R2)
    family = NetworkFamily("gcn+mmp")
    setting = family.first(problem)[0]
    setting = replace(setting, options={**setting.options, "target": "log"})
    assert fit_on_curve(family, problem, [setting], [0]) == [{}]
    train_nodes = problem.masks.train.any(axis=1)
    heights = np.log(y)
    expected = (heights - heights[train_nodes].mean()) / heights[train_nodes].std()
    lowest = y >= y[train_nodes].min()
    assert seen[0][lowest] == pytest.approx(expected[lowest], rel=1e-4, abs=1e-4)


def test_workers_send_models_on_curves_without_their_views():
    x, y = prices(60)
    problem = tiny_problem(x=x, y=y, objective=R2)
    family = LinearFamily("linear+neighbours", "neighbours")
    setting = family.first(problem)[0]
    setting = Setting(setting.family, {**setting.options, "target": "rank"}, setting.numbers)
    fitter = _Fitter(problem, {family.id: family})
    job = FitJob(family.id, [setting], [0], 9.0)
    fits, _ = fitter.received(job, fitter(job))
    part = fits[0][0].part
    assert isinstance(part, OnCurve)
    assert part.model.view is family.view(problem, setting.without_target)
    rows = np.flatnonzero(problem.masks.test)
    shown = replace(problem.with_all_labels(), y=problem.known(0))
    assert part.outputs(shown, rows) == pytest.approx(fits[0][0].test, rel=1e-4)


FORGED = [
    (("components", 0, "models", 0, "curve", "kind"), "spiral", "kind"),
    (("components", 0, "models", 0, "curve", "mean"), "much", "mean"),
    (("components", 0, "models", 0, "curve"), None, "curve"),
    (("components", 0, "options", "target"), "rank", "target"),
    (("report_", "residual", "distance"), -1.0, "residual"),
    (("report_", "residual", "grows"), "much", "Invalid enum"),
    (("report_", "residual", "least"), -5.0, "residual"),
]


@pytest.fixture(scope="module")
def saved(priced, tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "model"
    priced[0].save(path)
    described = json.loads((path / "model.json").read_text())
    assert described["components"][0]["options"]["target"] == "log"
    return path


@pytest.mark.parametrize(("keys", "value", "words"), FORGED)
def test_forged_curves_are_refused(saved, tmp_path, keys, value, words):
    model = shutil.copytree(saved, tmp_path / "model")
    changed(model, *keys, value=value)
    with pytest.raises(DataError, match=words):
        memohop.load_model(model)


def test_explanations_are_in_the_unit_of_the_numbers(priced):
    """The sizes of a linear model's contributions, on a logarithm, by the slope: the numbers."""
    x, y = prices(200, noise=0.01)
    problem = tiny_problem(x=x, y=y, objective=R2)
    family = LinearFamily("linear", "columns")
    first = family.first(problem)[0]
    setting = Setting("linear", {"target": "log"}, {**first.numbers, "freedom": 100.0})
    part = fit_on_curve(family, problem, [setting], [0])[0][0].part
    rows = np.arange(50)
    slopes = part.slopes(problem, rows)[:, 0]
    inside = (y[rows] > np.quantile(y, 0.1)) & (y[rows] < np.quantile(y, 0.9))
    assert slopes[inside] == pytest.approx(y[rows][inside], rel=0.1)  # of the exponential
    model = priced[0]
    explained = explain_fit(model, 5)
    assert explained.columns[0].name == "column 0"
    assert explained.node.predicted == pytest.approx(model.predict()[5], rel=1e-5)


@pytest.mark.parametrize(("grows", "least"), [("root", 0.0), ("root", 0.5), ("log", 0.5)])
@given(predicted=st.lists(st.floats(-100, 1e6, width=32), min_size=2, max_size=20))
def test_intervals_of_skewed_numbers_are_positive_and_grow(grows, least, predicted):
    numbers = np.sort(np.array(predicted, dtype=np.float32))
    low, high = Residual(0.7, grows, least, 1.0).ends(numbers)
    assert (low >= np.float32(least)).all()
    assert (low <= np.maximum(numbers, least)).all()
    assert (np.maximum(numbers, least) <= high * (1 + 1e-6)).all()
    assert (np.diff(low) >= 0).all()
    assert (np.diff(high) >= 0).all()
    assert (np.diff(high - low) >= -1e-6 * high[1:]).all()


def test_an_interval_is_told_in_plain_numbers():
    told = Residual(1.0, "log", 1.0, 168_432.0).text()
    assert told.startswith(
        "where 168000 is predicted, nine of ten numbers are from 62000 to 458000"
    )
    assert Residual(1.0, "root", 0.0, 4.0).text().count(" from 1 to 9,") == 1
    assert not Residual(np.inf, "log", 1.0, 4.0).text()


@pytest.mark.parametrize("zeros", [False, True])
def test_nine_of_ten_new_numbers_are_in_their_interval(zeros):
    """Honest coverage: nodes that nobody has seen, with high predictions and with low ones."""
    covered, wide = [], []
    for seed in range(5):
        x, y = prices(1200, seed=seed)
        y = np.where(np.random.default_rng(seed).random(1200) < 0.1 * zeros, 0, y)
        known = np.where(np.arange(1200) < 600, y, np.nan)
        model = GraphRegressor(models=["linear"], trials=2, time=None, splits=2)
        low, high = model.fit(x, known).predict_interval().T
        inside, predicted = ((low <= y) & (y <= high))[600:], model.predict()[600:]
        above = predicted > np.median(predicted)
        covered += [inside.mean(), inside[above].mean(), inside[~above].mean()]
        wide.append((high - low)[600:][above].mean() / (high - low)[600:][~above].mean())
        assert (low >= np.float32(known[:600].min())).all()
        assert model.report_.residual.grows == "root" if zeros else model.report_.residual != "no"
        assert "the interval grows with the prediction" in model.report_.verdict()
    whole, above, below = np.array(covered).reshape(5, 3).mean(axis=0)
    assert 0.88 < whole < 0.93  # of 3,000 and as many validation nodes: a deviation of 0.8 %
    assert min(above, below) > 0.8  # a width for all would have 0.75 above
    assert min(wide) > 1.5


def test_a_width_for_all_where_numbers_are_symmetric():
    y = np.random.default_rng(0).normal(size=60)
    problem = tiny_problem(y=y, objective=R2)
    said = np.zeros((30, 1), dtype=np.float32)
    residual = residual_of(problem, said, y[:30], None)
    assert residual.grows == "no"
    assert residual.distance == np.sort(np.abs(y[:30]))[27]
