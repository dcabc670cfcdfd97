"""Ctrl-C: noted where it would leave something half-done, raised where something takes long."""

import signal
import threading

import pytest

from memohop.interrupts import interrupted, interrupts_raised, interrupts_wait

pytestmark = pytest.mark.usefixtures("interruptible")


def ctrl_c():
    signal.raise_signal(signal.SIGINT)


@interrupts_wait()
def waiting(*steps):
    for step in steps:
        step()


@interrupts_raised()
def taking_long(*steps):
    for step in steps:
        step()


def test_it_waits_for_the_end_of_the_outermost_block():
    done = []
    with pytest.raises(KeyboardInterrupt):
        waiting(lambda: waiting(ctrl_c), lambda: done.append(True))
    assert done
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert not interrupted()


def test_noticed_it_is_not_raised():
    noticed = []

    def notice():
        noticed.append(interrupted())

    waiting(notice, ctrl_c, notice, notice)
    assert noticed == [False, True, True]


@pytest.mark.parametrize("before", [False, True])
def test_where_something_takes_long_it_is_raised_at_once(before):
    done = []

    def step():
        done.append(True)

    with interrupts_wait():
        if before:
            ctrl_c()
        with pytest.raises(KeyboardInterrupt):
            taking_long(step, ctrl_c, step)
        assert interrupted()
    assert len(done) == (0 if before else 1)


def test_it_waits_inside_something_long_too():
    done = []
    with interrupts_wait(), pytest.raises(KeyboardInterrupt):
        taking_long(lambda: waiting(ctrl_c, lambda: done.append(1)), lambda: done.append(2))
    assert done == [1]


def in_something_long():
    with pytest.raises(KeyboardInterrupt):
        taking_long(ctrl_c)


@pytest.mark.parametrize("first", [ctrl_c, in_something_long])
def test_a_second_one_is_raised_at_once(first):
    done = []
    with pytest.raises(KeyboardInterrupt):
        waiting(first, lambda: done.append(1), ctrl_c, lambda: done.append(2))
    assert done == [1]


def test_one_that_a_function_raises_counts():
    def raises():
        raise KeyboardInterrupt

    with interrupts_wait():
        with pytest.raises(KeyboardInterrupt):
            taking_long(raises)
        assert interrupted()


def test_where_it_is_ignored_it_stays_ignored():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    waiting(ctrl_c, lambda: taking_long(ctrl_c))
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_another_thread_has_no_part_in_it():
    answers = []

    def in_a_thread():
        work = threading.Thread(
            target=lambda: waiting(lambda: taking_long(lambda: answers.append(interrupted())))
        )
        work.start()
        work.join()

    with interrupts_wait():
        ctrl_c()
        in_a_thread()
        assert interrupted()
    assert answers == [False]
