"""Training on a GPU: captured, eager, alone, twice. Skipped where there is none."""

import warnings

import numpy as np
import pytest
import torch

import memohop
from memohop import Member, train
from memohop.training.device import EagerWarning, captured
from numerics import generator, seeded

if not torch.cuda.is_available():
    pytest.skip("there is no GPU here", allow_module_level=True)


EPOCHS = 6  # one to warm up, one that is captured, and four replays


@pytest.fixture(scope="module")
def data():
    data = memohop.load("csbm", nodes=200, homophily=0.3, seed=seeded())
    data.x = (data.x > 0.15).float()
    return data


@pytest.fixture
def unplanned(monkeypatch):
    """Without the steps that measure how much memory a member takes: half of a test's time."""
    monkeypatch.setattr(
        "memohop.training.trainer.members_at_once", lambda _, job, *__, **___: len(job.members)
    )


@pytest.mark.usefixtures("unplanned")
@pytest.mark.parametrize(("index", "name"), list(enumerate(memohop.models())))
def test_capture_changes_nothing_and_a_member_alone_equals_itself_in_company(index, name, data):
    members = [
        Member(split=i, seed=seeded(i), lam=0.2 * i, dropout=0.2 + 0.2 * i) for i in range(3)
    ]
    call = {"epochs": EPOCHS, "device": "cuda", "features": "sparse"}
    captured = train(data, name, members, **call)
    again = train(data, name, members, **call)
    eager = train(data, name, members, capture=False, **call)
    for result, repeated, uncaptured in zip(captured, again, eager, strict=True):
        assert np.array_equal(result.loss_curve, repeated.loss_curve)
        np.testing.assert_allclose(result.loss_curve, uncaptured.loss_curve, atol=1e-4)
        np.testing.assert_allclose(result.val_curve, uncaptured.val_curve, atol=1e-4)
    # Each model with one of the members, in turn. Sums over nodes (gradients of biases, of norms,
    # of attention) differ in the last bit with the size of the batch, and deep networks make ten
    # times as much of it every few epochs.
    member, in_company = list(zip(members, captured, strict=True))[index % 3]
    (alone,) = train(data, name, [member], **call)
    np.testing.assert_allclose(in_company.loss_curve, alone.loss_curve, atol=1e-4)


@pytest.mark.usefixtures("unplanned")
@pytest.mark.parametrize("name", ["gcn+mmp", "gat+mmp", "sage+mmp", "dir-gcn+mmp"])
def test_known_labels_and_addresses(name, data):
    members = [Member(split=i, seed=seeded(i), lam=0.2 * i) for i in range(3)]
    call = {"epochs": EPOCHS, "options": {"labels": "memory", "address": "rows"}}
    captured = train(data, name, members, device="cuda", **call)
    eager = train(data, name, members, device="cuda", capture=False, **call)
    on_cpu = train(data, name, members, **call)
    (alone,) = train(data, name, members[1:2], device="cuda", **call)
    np.testing.assert_allclose(captured[1].loss_curve, alone.loss_curve, atol=1e-4)
    for result, uncaptured, reference in zip(captured, eager, on_cpu, strict=True):
        np.testing.assert_allclose(result.loss_curve, uncaptured.loss_curve, atol=1e-4)
        np.testing.assert_allclose(result.loss_curve, reference.loss_curve, atol=1e-3)


def test_early_stopping_with_capture():
    data = memohop.load("csbm", nodes=200, homophily=0.6, seed=seeded())
    members = memohop.grid(split=range(10), seed=seeded(), lr=(0.001, 0.1))
    full = train(data, "gcn+mmp", members, epochs=100, device="cuda")
    cut = train(data, "gcn+mmp", members, epochs=100, patience=10, device="cuda")
    assert min(result.epochs for result in cut) < 100
    for whole, part in zip(full, cut, strict=True):
        np.testing.assert_array_equal(part.loss_curve, whole.loss_curve[: part.epochs])


def test_a_step_that_cannot_be_captured_runs_eagerly_and_says_why():
    counter, host = torch.zeros((), device="cuda"), []

    def step():
        counter.add_(1)
        host.append(float(counter))  # reading back is what a capture does not allow

    go = captured(step, torch.device("cuda"))
    go()  # warming up
    with pytest.warns(EagerWarning, match="could not be captured"):
        go()
    for _ in range(2):
        go()
    assert float(counter) == 4
    assert host[-1] == 4


@pytest.mark.usefixtures("unplanned")
def test_numbers_from_sparse_columns(data):
    numbers = data.clone()
    del numbers.metric
    numbers.y = torch.randn(len(data.y), generator=generator())
    members, call = [Member(seed=seeded(i), lam=0.1) for i in range(2)], {"epochs": EPOCHS}
    expected = train(numbers, "gcn+mmp", members, features="sparse", device="cuda", **call)
    numbers.x = data.x.to_sparse_csr()
    results = train(numbers, "gcn+mmp", members, device="cuda", **call)
    on_cpu = train(numbers, "gcn+mmp", members, **call)
    for result, same, reference in zip(results, expected, on_cpu, strict=True):
        assert result.loss_curve.tolist() == same.loss_curve.tolist()
        np.testing.assert_allclose(result.loss_curve, reference.loss_curve, rtol=1e-3)
        np.testing.assert_allclose(result.val_curve, reference.val_curve, atol=1e-2)


@pytest.mark.usefixtures("unplanned")
@pytest.mark.parametrize("features", ["dense", "sparse"])
def test_fewer_bytes(features, data):
    members = [Member(seed=seeded(1), lam=0.2)]
    call = {"epochs": EPOCHS, "device": "cuda", "features": features}
    (plain,) = train(data, "gcn+mmp", members, **call)
    (again,) = train(data, "gcn+mmp", members, recompute=True, **call)
    np.testing.assert_allclose(plain.loss_curve, again.loss_curve, atol=1e-4)
    (half,) = train(data, "gcn+mmp", members, states="bfloat16", **call)
    np.testing.assert_allclose(plain.loss_curve, half.loss_curve, atol=2e-2)
    (both,) = train(data, "gcn+mmp", members, states="bfloat16", recompute=True, **call)
    np.testing.assert_allclose(half.loss_curve, both.loss_curve, atol=2e-2)


@pytest.fixture
def every_warning():
    """Warnings that PyTorch would give only once in a process."""
    before = torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    yield
    torch.set_warn_always(before)


@pytest.mark.usefixtures("every_warning")
@pytest.mark.parametrize("capture", [True, False])
@pytest.mark.parametrize("states", [None, "bfloat16"])
def test_recomputation_gives_no_warning(states, capture, data):
    members = [Member(seed=seeded(i), lam=0.2 * i) for i in range(2)]
    call = {"epochs": EPOCHS, "device": "cuda", "capture": capture, "features": "dense"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message="Sparse ")  # given at import, once
        train(data, "gcn+mmp", members, recompute=True, states=states, **call)


@pytest.mark.usefixtures("unplanned")
@pytest.mark.parametrize("name", ["gat+mmp", "gcn-res", "gatv2", "h2gcn"])
def test_states_of_bfloat16_in_other_networks(name, data):
    members = [Member(split=i, seed=seeded(i)) for i in range(2)]
    call = {"epochs": EPOCHS, "device": "cuda"}
    plain = train(data, name, members, **call)
    half = train(data, name, members, states="bfloat16", **call)
    for exact, rounded in zip(plain, half, strict=True):
        np.testing.assert_allclose(exact.loss_curve, rounded.loss_curve, atol=0.1)
