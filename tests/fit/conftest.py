"""What the tests of `fit` share."""

from __future__ import annotations

import pytest

from memohop.fit.candidates import _network as network


@pytest.fixture(scope="module")
def few_epochs():
    """Networks of three epochs."""
    whole = network.train
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(network, "train", lambda *args, **more: whole(*args, **more | {"epochs": 3}))
        yield
