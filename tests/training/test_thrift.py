"""Fewer bytes on one device: recomputation changes nothing, bfloat16 little."""

import numpy as np
import pytest
import torch

import memohop
from memohop import Member, UsageError, train
from memohop.training import Job
from memohop.training.device import peak_bytes
from memohop.training.population import Population
from numerics import in_float64, seeded
from plain_loop import assert_alike

EPOCHS = 6
EVERYTHING = {
    "labels": "memory",
    "address": "rows",
    "memory_dropout": True,
    "classifier_dropout": True,
    "gate_sharing": "layer",
    "readout": "jumping",
}


@pytest.mark.parametrize("options", [{}, EVERYTHING], ids=["plain", "everything"])
@pytest.mark.parametrize("name", ["gcn+mmp", "gat+mmp", "gcnii+mmp"])
@pytest.mark.parametrize("kind", ["data", "words"])
def test_recomputation_changes_nothing(kind, name, options, request):
    data = request.getfixturevalue(kind)
    members = [Member(seed=seeded(i), lam=0.1 * i) for i in range(2)]
    call = {"epochs": EPOCHS, "options": options, "keep_models": True}
    with in_float64():
        again = train(data, name, members, recompute=True, **call)
        plain = [train(data, name, [member], **call)[0] for member in members]
        assert_alike(again, plain, rtol=1e-12, atol=1e-9)


@pytest.mark.parametrize("options", [{}, EVERYTHING], ids=["plain", "everything"])
def test_recomputation_leaves_nothing_behind(options, data):
    job = Job(data=data, model="gcn+mmp", options=options, recompute=True)
    population = Population.of(job)
    own = {name: id(value) for name, value in population.model.named_parameters()}
    loss, logits = population._losses_and_logits(population.keys[:, 0])
    for leaf in population._leaves.values():
        accumulator(leaf).metadata["step"] = "the first"
    population._gradient(loss)
    del loss, logits
    assert own == {name: id(value) for name, value in population.model.named_parameters()}
    # A node that outlives its step keeps the step's stream of a GPU, and PyTorch warns of it when
    # a step on another stream follows.
    assert not any(accumulator(leaf).metadata for leaf in population._leaves.values())


def accumulator(leaf):
    """The node at which gradients of a leaf arrive; there is one as long as anything holds it."""
    return torch.autograd.graph.get_gradient_edge(leaf).node


def test_states_of_bfloat16_change_little(data):
    members = [Member(seed=seeded(i), lam=0.1 * i) for i in range(2)]
    for name in ("gcn+mmp", "gat", "gcn-res"):
        plain = train(data, name, members, epochs=EPOCHS)
        half = train(data, name, members, epochs=EPOCHS, states="bfloat16", keep_models=True)
        for exact, rounded in zip(plain, half, strict=True):
            assert all(value.dtype == torch.float32 for value in rounded.state.values())
            assert not np.array_equal(exact.loss_curve, rounded.loss_curve)
            # eight bits: each state is off by up to 1/256, and losses are of the order of 1
            np.testing.assert_allclose(exact.loss_curve, rounded.loss_curve, atol=0.05)


def test_both_together_and_with_sparse_features(words):
    call = {"epochs": EPOCHS, "states": "bfloat16"}
    members = [Member(seed=seeded(1))]
    (half,) = train(words, "gcn+mmp", members, **call)
    (both,) = train(words, "gcn+mmp", members, recompute=True, **call)
    np.testing.assert_array_equal(half.loss_curve, both.loss_curve)


def test_both_take_fewer_bytes():
    data = memohop.load("csbm", nodes=1500, channels=64, degree=4)

    def peak(**given):
        job = Job(data=data, model="gcn+mmp", options={"num_layers": 6}, features="dense", **given)
        population = Population.of(job)
        population.step()
        return peak_bytes(population.step)

    assert peak(recompute=True) < 0.75 * peak()


def test_what_cannot_be_asked_for(data):
    with pytest.raises(UsageError, match=r"networks with memory, such as gcn\+mmp, not for gcn;"):
        train(data, "gcn", [Member()], epochs=1, recompute=True)
    with pytest.raises(UsageError, match="states must be"):
        train(data, "gcn+mmp", [Member()], epochs=1, states="float16")
    with pytest.raises(UsageError, match="networks of this library"):
        train(data, lambda: torch.nn.Linear(12, 5), [Member()], epochs=1, states="bfloat16")
