"""Which labels are classes."""

import numpy as np
import pyarrow as pa
import pytest

from memohop.data.tables.labels import encode_labels, why_no_classes
from memohop.errors import DataError


def judged(labels):
    values, sizes = np.unique(np.array(labels), return_counts=True)
    return why_no_classes(values, sizes)


@pytest.mark.parametrize(
    "labels",
    [
        [n % 20 for n in range(25)],  # few enough, however small
        [n % 95 for n in range(950)],  # ten nodes each
        [str(n % 42) for n in range(809)],  # codes, spelled
        ["1.0", "2.0", "1.0"],  # whole, as tables with gaps have them
        [f"p{n % 100}" for n in range(200)],  # two nodes each
        ["x", "y", "z", "z"],
        [True, False, True],
    ],
)
def test_classes(labels):
    assert judged(labels) is None


@pytest.mark.parametrize(
    "labels",
    [
        [n % 95 for n in range(949)],
        [str(n % 21) for n in range(60)],
        [1950 + n % 71 for n in range(160)],
        ["0.5", "1", "0.5", "1"],
        [-0.25, 0.5, -0.25],
    ],
)
def test_measurements(labels):
    different = len(set(labels))
    assert f"holds {different} different numbers on {len(labels)} nodes" in judged(labels)
    assert "group them into classes" in judged(labels)


@pytest.mark.parametrize("labels", [["a", "b", "c"], [f"p{n % 101}" for n in range(200)]])
def test_ids(labels):
    assert "as an id would" in judged(labels)


def test_the_remedy_works():
    numbers = [n % 95 for n in range(300)]
    with pytest.raises(DataError, match=r"column 'age' holds 95 .* such as class 0"):
        encode_labels(pa.chunked_array([[str(number) for number in numbers]]), "age")
    words = pa.chunked_array([[f"class {number}" for number in numbers]])
    assert len(encode_labels(words, "age").classes) == 95
