"""Masks that are a function of seed, epoch and position, against the hash in plain Python."""

import pytest
import torch
from torch.func import vmap

from memohop import UsageError
from memohop.nn import Dropout, epoch_key, randomness
from memohop.nn._randomness import next_draw
from numerics import mask_of, seeded

WORD = 0xFFFFFFFF


def mix(value, middle):
    value ^= value >> 16
    value = value * 0x7FEB352D & WORD
    value ^= value >> 15
    value ^= middle
    value = value * 0x846CA68B & WORD
    return value ^ value >> 16


def slow_key(seed, epoch):
    low, high = seed & WORD, seed >> 32
    first = mix(mix(low, high), epoch)
    return first, mix(first ^ 0x3C6EF372, epoch ^ low)


def slow_mask(seed, epoch, place, count, rate):
    first, second = slow_key(seed, epoch)
    first ^= place * 0x9E3779B9 & WORD
    second ^= place * 0x85EBCA6B & WORD
    mask = []
    for element in range(count):
        bits = mix(element // 2 ^ first, second)
        half = bits & 0xFFFF if element % 2 == 0 else bits >> 16
        signed = half - 65536 if half >= 32768 else half
        mask.append(1 / (1 - rate) if signed >= round(rate * 65536) - 32768 else 0.0)
    return mask


@pytest.mark.parametrize("seed", [0, 1, 2**31 + 5, 2**45 + 77])
@pytest.mark.parametrize("rate", [0.0, 0.3, 0.5, 0.9])
def test_masks_equal_the_hash_in_plain_python(seed, rate):
    with randomness(epoch_key(torch.tensor(seed), torch.tensor(17))):
        for place in (1, 2, 3):
            mask = mask_of(next_draw(), (5, 3), torch.tensor(rate), torch.float64)
            expected = slow_mask(seed, 17, place, 15, rate)
            torch.testing.assert_close(mask.flatten().tolist(), expected, rtol=1e-6, atol=0)


def test_a_member_sees_its_masks_whoever_is_beside_it():
    def draw(key, rate):
        with randomness(key):
            return [mask_of(next_draw(), (41,), rate, torch.float32) for _ in range(2)]

    seeds, rates = torch.tensor([5, 9, 5, 2**40]), torch.tensor([0.5, 0.2, 0.5, 0.7])
    keys = epoch_key(seeds, torch.tensor(3))
    together = vmap(draw)(keys, rates)
    for i in range(4):
        alone = draw(keys[i], rates[i])
        assert torch.equal(together[0][i], alone[0])
        assert torch.equal(together[1][i], alone[1])
    assert torch.equal(together[0][0], together[0][2])
    assert not torch.equal(together[0][0], together[1][0])


def test_the_share_of_zeros_is_the_rate_and_elements_are_independent():
    keys = epoch_key(torch.arange(400), torch.tensor(1))

    def draw(key):
        with randomness(key):
            return mask_of(next_draw(), (2000,), torch.tensor(0.3), torch.float32) == 0

    dropped = vmap(draw)(keys).double()
    tolerance = (0.3 * 0.7 / dropped.numel()) ** 0.5
    assert abs(float(dropped.mean()) - 0.3) < 4 * tolerance
    # Means over elements, over seeds, and products of neighbours, as independence has them.
    assert float(dropped.mean(0).std()) == pytest.approx((0.21 / 400) ** 0.5, rel=0.1)
    assert float(dropped.mean(1).std()) == pytest.approx((0.21 / 2000) ** 0.5, rel=0.15)
    centred = dropped - dropped.mean()
    for shift in (1, 2, 16):
        product = (centred[:, shift:] * centred[:, :-shift]).mean()
        assert abs(float(product)) < 5 * 0.21 / centred.numel() ** 0.5
    across = (centred[1:] * centred[:-1]).mean()
    assert abs(float(across)) < 5 * 0.21 / centred.numel() ** 0.5


def test_dropout_on_its_own_follows_torch():
    dropout = Dropout(0.5)
    torch.manual_seed(seeded(1))
    first = dropout(torch.ones(100))
    torch.manual_seed(seeded(1))
    assert torch.equal(first, dropout(torch.ones(100)))
    assert set(first.tolist()) == {0.0, 2.0}
    assert torch.equal(dropout.eval()(torch.ones(100)), torch.ones(100))


def test_an_inactive_dropout_still_takes_its_place():
    def second_mask(first_rate):
        first, second = Dropout(first_rate), Dropout(0.5)
        with randomness(epoch_key(torch.tensor(1), torch.tensor(1))):
            first(torch.ones(9))
            return second(torch.ones(9))

    assert torch.equal(second_mask(0.0), second_mask(0.7))


def test_bad_rates():
    for rate in (-0.1, 1.0, 2.0):
        with pytest.raises(UsageError, match=f"below 1, not {rate}"):
            Dropout(rate)
