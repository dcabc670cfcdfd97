"""The measured peak of a step."""

import signal

import pytest
import torch

from memohop.training.device import peak_bytes


def test_what_lives_together_adds_up_and_what_was_freed_does_not():
    def hold_two():
        one = torch.zeros(1000)
        return one, one + 1

    def one_after_the_other():
        torch.zeros(1000)
        torch.zeros(1000)

    assert peak_bytes(hold_two) == 8000
    assert peak_bytes(one_after_the_other) == 4000


def test_views_count_once():
    assert peak_bytes(lambda: torch.zeros(1000).view(10, 100).t()[:5]) == 4000


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_waits_for_the_end_of_a_measurement():
    done = []

    def interrupted():
        signal.raise_signal(signal.SIGINT)
        done.append(True)

    with pytest.raises(KeyboardInterrupt):
        peak_bytes(interrupted)
    assert done
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
