"""Fixtures and settings for all tests.

Two environment variables change how the tests run; ``make matrix`` tries them:

``MEMOHOP_TEST_SEED``     shifts the seeds (see ``numerics.py``)
``MEMOHOP_TEST_THREADS``  the number of threads, 1 by default
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

import psutil
import pytest

# The test graphs are small: more threads would only wait, and several tests may run at once. The
# libraries read this when they are imported, those of processes that tests start as well.
os.environ["OMP_NUM_THREADS"] = os.environ.get("MEMOHOP_TEST_THREADS", "1")

import torch

import memohop.pyg  # noqa: F401  # first: PyG's own import warns, an error here
import numerics

torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))

try:
    from hypothesis import HealthCheck, settings
except ImportError:  # the GPU tests, among others, do not need it
    pass
else:
    # `make test` uses the same examples on every machine; `make fuzz` draws many new ones.
    _PROPERTIES = settings(
        deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
    )
    settings.register_profile("test", _PROPERTIES, max_examples=100, derandomize=True)
    settings.register_profile("fuzz", _PROPERTIES, max_examples=2000)
    settings.load_profile("test")


@pytest.hookimpl(optionalhook=True)  # without pytest-xdist the tests run one by one
def pytest_xdist_auto_num_workers():
    """As many workers as cores, but each needs RAM, and the time to import and collect it all."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    with_ram = psutil.virtual_memory().available // (2 << 30)
    workers = min(cores or 1, with_ram, 8)
    return workers if workers > 1 else 0  # a single one would do no more than this process


@pytest.fixture(autouse=True)
def _random_numbers_from_the_base_seed():
    torch.manual_seed(numerics.seeded())


@pytest.fixture
def float64():
    """Run the whole test in float64."""
    with numerics.in_float64():
        yield


@pytest.fixture
def interruptible():
    """Ctrl-C as in a terminal: a process in the background may have been told to ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session")
def data_root() -> Path:
    """The folder with the published files; tests that need it are skipped without one."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    root = Path(os.environ.get("MEMOHOP_DATA") or beside)
    if not root.is_dir():
        pytest.skip(
            f"there are no published data files in {root}; set MEMOHOP_DATA to their folder"
        )
    return root
