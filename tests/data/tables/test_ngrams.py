"""Names that are mostly different are read by their n-grams of characters, in any script."""
# ruff: noqa: RUF001 - letters of other scripts are meant

from __future__ import annotations

import random
import unicodedata

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import memohop
from memohop.data.tables import _text_columns, read_graph
from memohop.data.tables.columns import fit_columns
from memohop.fit.estimators import GraphClassifier

# How names begin, go on and end.
SCRIPTS = {
    "Latin": ("Bad Neu Ober Sankt", "aa ee ii oo uu", "stadt burg ville"),
    "accents": ("Éa Çe Ñi", "é ü ã ø ß æ œ å ł đ", "ço ção ñas"),
    "Cyrillic": ("Ново Старо Красно", "а е и о у", "горск град поль"),
    "Greek": ("Νέα Άνω Κάτω", "ά έ ή ί ό", "πολη χώρι ούς"),
    "Arabic": ("الق بني تل", "َ ِ ُ ا و ي", "ية ان ون"),
    "Hebrew": ("קרית בית תל", "א ה ו י ע", "ים ות יה"),
    "Devanagari": ("राम देव शिव", "ा ि ी ु ू", "पुर नगर गढ़"),
    "Chinese": ("北 南 东 西", "京 海 山 江 河", "市 县 区"),
    "Korean": ("서 부 대", "울 산 구 전 주", "시 군 읍"),
    "beyond 16 bits": ("𐐀 𐐁 𐐂", "𐐨 𐐩 𐐪 𐐫 𐐬", "𐐭 𐐮 𐐯"),
}
ROWS = 120


def names(script, seed=0):
    """All different, and of different lengths."""
    draw, made = random.Random(seed), {}
    begin, middle, end = (part.split() for part in SCRIPTS[script])
    while len(made) < ROWS:
        inner = "".join(draw.choices(middle, k=draw.randint(2, 5)))
        made[draw.choice(begin) + inner + draw.choice(end)] = None
    return list(made)


def fitted(values):
    encoder, told = fit_columns([("v", pa.chunked_array([values], pa.string()))])
    return encoder, told


def ngrams_of(text):
    """The same, one name at a time."""
    text = f" {unicodedata.normalize('NFKC', text).lower().strip()} "
    return {text[at : at + size] for size in (1, 2, 3) for at in range(len(text) - size + 1)}


@pytest.mark.parametrize("script", SCRIPTS)
def test_are_those_of_each_name_by_itself_in_any_script(script, saved):
    values = names(script)
    encoder, (told,) = fitted([*values, None])
    (column,) = encoder.columns
    assert type(column).__name__ == "Ngrams"
    assert "'v' is read as n-grams of characters" in told
    assert "--drop v leaves it out" in told
    x, notes = saved(encoder).transform(pa.table({"v": values}))
    assert notes == []
    x = np.asarray(x.todense()) if hasattr(x, "todense") else x
    times = {gram: sum(gram in ngrams_of(name) for name in values) for gram in column.vocabulary}
    assert min(times.values()) >= 2
    assert max(times.values()) < ROWS
    for row, name in zip(x, values, strict=True):
        there = {column.vocabulary[at] for at in np.flatnonzero(row[: len(column.vocabulary)])}
        assert there == ngrams_of(name).intersection(column.vocabulary)
    assert len(column.vocabulary) == ROWS // 5
    assert encoder.feature_names[0] == f"v has {column.vocabulary[0]!r}"
    assert encoder.words.tolist() == [True] * len(column.vocabulary) + [False]  # is missing


@settings(max_examples=30)
@given(st.lists(st.text(max_size=300), max_size=5), st.sampled_from([1, 7, 1 << 16]))
def test_any_strings_that_come_later_are_read_in_slices_of_any_size(some, rows):
    encoder, _ = fitted(names("Latin"))
    (column,) = encoder.columns
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_text_columns, "_ROWS", rows)
        x, _ = encoder.transform(pa.table({"v": pa.array([*some, None], pa.string())}))
    known = set(column.vocabulary)
    for row, text in zip(x, some, strict=False):
        first = unicodedata.normalize("NFKC", text).lower()[:256]
        expected = set() if text in {"", "NA", "N/A"} else ngrams_of(first) & known
        assert {column.vocabulary[at] for at in np.flatnonzero(row)} == expected


@pytest.mark.parametrize("script", ["accents", "Greek", "Korean"])
def test_accents_may_follow_their_letters(script):
    values = names(script)
    apart = [unicodedata.normalize("NFD", name) for name in values]
    assert apart != values
    (encoder, _), (other, _) = fitted(values), fitted(apart)
    assert encoder == other
    x, y = (encoder.transform(pa.table({"v": each}))[0] for each in (values, apart))
    np.testing.assert_array_equal(x, y)


def test_texts_without_spaces_may_be_long():
    draw = random.Random(0)
    words = ["我们", "今天", "北京", "喜欢", "东西", "朋友"]
    texts = ["".join(draw.choices(words, k=draw.randint(50, 90))) for _ in range(ROWS)]
    assert [type(column).__name__ for column in fitted(texts)[0].columns] == ["Ngrams"]
    latin = ["".join(draw.choices(["ab", "cd", "efg"], k=60)) for _ in range(ROWS)]
    assert fitted(latin)[0].columns == ()


@pytest.mark.parametrize(
    "words",
    [
        "красный большой дом река",
        "το μεγάλο σπίτι ποτάμι",
        "البيت الكبير نهر أحمر",
        "नदी घर बड़ा लाल",
    ],
)
def test_texts_with_spaces_are_words_in_any_script(words):
    draw, words = random.Random(0), words.split()
    texts = [" ".join(draw.choices(words, k=6)) + f" {n}" for n in range(ROWS)]
    (column,) = fitted(texts)[0].columns
    assert type(column).__name__ == "Words"
    assert {*column.vocabulary} >= {unicodedata.normalize("NFKC", word) for word in words}


def test_repeated_names_are_a_category_and_few_are_nothing():
    values = names("Latin")
    assert [type(column).__name__ for column in fitted(values * 2)[0].columns] == ["Category"]
    assert fitted(values[:50])[0].columns == ()


def graph(tmp_path=None):
    ids = list(range(ROWS))
    values = names("Cyrillic")
    nodes = {"id": ids, "name": values, "kind": [name[0] for name in values]}
    return nodes, {"source": ids, "target": ids[1:] + ids[:1], "by": names("Greek")}


def test_columns_of_edges_are_none():
    read = read_graph(*graph(), label="kind")
    assert read.encoder.edges.columns == ()
    assert read.encoder.words.all()


def test_prepared_graphs_have_the_same(tmp_path, files):
    nodes, edges = graph()
    write = lambda table: "\n".join(  # noqa: E731
        [
            ",".join(table),
            *(",".join(map(str, row)) for row in zip(*table.values(), strict=True)),
            "",
        ]
    )
    paths = files(write(nodes), write(edges))
    read = read_graph(*paths, label="kind", drop=["by"])
    prepared = memohop.prepare(*paths, tmp_path / "graph", label="kind", drop=["by"])
    assert prepared.encoder == read.encoder
    np.testing.assert_array_equal(prepared.x, read.x)


def test_a_model_learns_from_them_and_knows_new_names(tmp_path):
    nodes, edges = graph()
    given = read_graph(nodes, edges, label="kind", drop=["by"])
    model = GraphClassifier(models=["linear"], trials=1, time=None, splits=2).fit(given)
    model.save(tmp_path / "model")
    new = {**nodes, "name": names("Cyrillic", seed=1), "kind": [None] * ROWS}
    said = memohop.load_model(tmp_path / "model").predict(new, edges)
    assert np.mean(said == [name[0] for name in new["name"]]) > 0.9
