"""Longitude and latitude: found by names and values, and points on a sphere for every model."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file
from scipy import sparse

import memohop
from memohop import DataError, GraphClassifier
from memohop.explain import explain_fit
from memohop.fit._places import points
from memohop.folders import named, sha256_of
from saved_models import changed
from tiny_problem import QUICK

ALONE = np.array([[[0, 0, 1, -1], [1, 0, 1, -1]]], dtype=np.float64)
"""Degrees as they are."""


def _haversine(one, other):
    """The angle between two places."""
    (east, north), (east_too, north_too) = np.deg2rad(one), np.deg2rad(other)
    half = np.sin((north - north_too) / 2) ** 2
    half += np.cos(north) * np.cos(north_too) * np.sin((east - east_too) / 2) ** 2
    return 2 * np.arcsin(np.sqrt(min(half, 1.0)))


@pytest.mark.fuzz
@given(st.integers(0, 2**32 - 1))
def test_the_straight_way_between_points_grows_with_the_way_on_the_sphere(seed):
    generator = np.random.default_rng(seed)
    x = np.column_stack([generator.uniform(-180, 180, 9), generator.uniform(-90, 90, 9)])
    placed = points(x.astype(np.float32), ALONE)
    for node in range(9):
        angles = np.array([_haversine(x[node], other) for other in x])
        straight = np.linalg.norm(placed - placed[node], axis=1)
        assert straight == pytest.approx(2 * np.sin(angles / 2), abs=1e-5)


def cities(seed=0, rows=300):
    """Four kinds on the globe, one of them on both sides of the date line."""
    generator = np.random.default_rng(seed)
    east = (generator.choice([180, 90, 0, -90], rows) + generator.normal(scale=20, size=rows)) % 360
    kind = np.array(["d", "c", "b", "a"])[np.round(east / 90).astype(int) % 4]
    return {
        "id": [f"n{row}" for row in range(rows)],
        "home_lng": np.where(east >= 180, east - 360, east),
        "home_lat": generator.uniform(-60, 60, rows),
        "size": generator.normal(size=rows),
        "kind": [name if row % 9 else None for row, name in enumerate(kind)],
    }


def arcs(table):
    return {"source": table["id"], "target": [*table["id"][1:], table["id"][0]]}


def read(table):
    return memohop.read_graph(table, arcs(table), label="kind")


def test_places_are_found_and_told():
    graph = read(cities())
    assert graph.encoder.places == (("home_lng", "home_lat"),)
    (line,) = [line for line in graph.warnings if "latitude" in line]
    assert line.startswith("columns 'home_lng' and 'home_lat' are taken for longitude and lat")


@pytest.mark.parametrize(
    ("names", "are_places"),
    [
        (("lon", "lat"), True),
        (("Longitude", "Latitude"), True),
        (("startLng", "startLat"), True),
        (("geo.long (deg)", "geo.lat (deg)"), True),
        (("home_lon", "work_lat"), False),
        (("along", "flat"), False),
        (("x", "y"), False),
        (("lon", "y"), False),
    ],
)
def test_names_decide(names, are_places):
    table = cities()
    lng, lat = names
    table |= {lng: table.pop("home_lng"), lat: table.pop("home_lat")}
    assert read(table).encoder.places == ((names,) if are_places else ())


@pytest.mark.parametrize("values", ["metres", "words", "swapped"])
def test_and_so_do_values(values):
    table = cities()
    if values == "metres":
        table["home_lat"] = table["home_lat"] * 1000
    elif values == "words":
        table["home_lat"] = [f"{north:.0f} north or so" for north in table["home_lat"]]
    else:
        table["home_lng"], table["home_lat"] = table["home_lat"], table["home_lng"]
    graph = read(table)
    assert graph.encoder.places == ()
    assert not any("latitude" in line for line in graph.warnings)


@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_points_of_a_table_with_gaps(form):
    table = cities()
    north = [None if row == 5 else value for row, value in enumerate(table["home_lat"].tolist())]
    table["home_lat"] = north
    if form == "sparse":
        table |= {f"z{n}": (np.arange(300) % 70 == n).astype(int) for n in range(60)}
    graph = read(table)
    assert sparse.issparse(graph.x) == (form == "sparse")
    placed = points(graph.x, graph.encoder.coordinates)
    degrees = np.column_stack([table["home_lng"], np.array(north, dtype=float)])
    expected = points(degrees, ALONE)
    expected[5] = 0
    assert placed == pytest.approx(expected, abs=1e-5)


@pytest.fixture(scope="module", params=["nearest", "linear", "lightgbm+neighbours"])
def fitted(request):
    return GraphClassifier(models=[request.param], **QUICK).fit(read(cities()))


def test_every_model_of_features_has_the_points(fitted):
    view = fitted.model_.components[0].models[0].view
    features, names = view.features(fitted.graph_, fitted.graph_.y), fitted.encoder_.feature_names
    table, named = cities(), view.names(fitted.graph_, names)
    assert len(named) == features.shape[1]
    degrees = np.column_stack([table["home_lng"], table["home_lat"]])
    assert features[:, 3:6] == pytest.approx(points(degrees, ALONE), abs=1e-5)
    assert [each.name for each in named[3:6]] == ["home_lng", "home_lng", "home_lat"]
    shares = {column.name: column.share for column in explain_fit(fitted).columns}
    if shares:
        assert max(shares, key=shares.get) == "home_lng"


def test_the_date_line_is_no_border(fitted):
    """A place at 179 degrees west is like one at 179 degrees east."""
    later = cities(seed=1, rows=60)
    kinds = later.pop("kind")
    said = fitted.predict(later, arcs(later))
    near = np.abs(later["home_lng"]) > 165
    assert near.sum() > 5
    assert all(said[row] in (kinds[row], "b") for row in np.flatnonzero(near) if kinds[row])
    right = [said[row] == kinds[row] for row in range(60) if kinds[row]]
    assert np.mean(right) > 0.8


def test_a_saved_model_says_the_same(fitted, tmp_path):
    later = cities(seed=1, rows=60)
    del later["kind"]
    fitted.save(tmp_path / "model")
    loaded = GraphClassifier.load(tmp_path / "model")
    assert (loaded.predict_proba() == fitted.predict_proba()).all()
    said = fitted.predict_proba(later, arcs(later))
    assert (loaded.predict_proba(later, arcs(later)) == said).all()


def test_distances_are_those_on_the_sphere():
    """Also beside another number: all directions in space have one scale."""
    model = GraphClassifier(models=["nearest"], **QUICK).fit(read(cities()))
    nearest = model.model_.components[0].models[0]
    assert len(nearest.columns) == 4
    assert len({*nearest.spread[-3:].tolist()}) == 1
    assert model.report_.families[0].val > 0.9


@pytest.mark.parametrize(
    "forged", [[[9, 0, 1, -1]] * 2, [[0, 0, 0, -1]] * 2, [[0, 0, 1, 9]] * 2, [[-1, 0, 1, -1]] * 2]
)
def test_forged_places_are_refused(fitted, tmp_path, forged):
    fitted.save(folder := tmp_path / "model")
    (path,) = folder.glob("weights-*")
    arrays = load_file(path)
    arrays["view 0.places"] = np.array([forged], dtype=np.float64)
    save_file(arrays, path)
    digest = sha256_of(path)
    path.rename(folder / named("weights", digest, ".safetensors"))
    changed(folder, "weights", value=digest)
    with pytest.raises(DataError, match="places are not those"):
        memohop.load_model(folder)
