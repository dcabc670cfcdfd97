"""What the tests of `fit` share."""

from __future__ import annotations

import pytest

from memohop.fit.candidates import networks


@pytest.fixture(scope="module")
def few_epochs():
    """Networks of three epochs."""
    whole = networks.train
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(networks, "train", lambda *args, **more: whole(*args, **more | {"epochs": 3}))
        yield
