"""Freed RAM is kept; a failed allocation names the task, the amount it wanted, what to lower."""

import os
import platform
import re
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
import torch
from cyclopts import App

import memohop
from memohop import Member, train
from memohop import cli as command
from memohop.errors import DataError
from memohop.ram import OutOfMemoryError, in_units, reporting_out_of_memory

CHILD = """
import resource, sys
import numpy as np
from memohop.ram import keep_freed_ram

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

if sys.argv[1] == "keep":
    keep_freed_ram()
np.ones(1 << 23)  # 64 MiB, allocated and freed
before = faults()
np.ones(1 << 23)
print(faults() - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the C library is not glibc")
def test_the_second_array_reuses_the_pages_of_the_first():
    def faults(mode):
        command = [sys.executable, "-c", CHILD, mode]
        small_pages = {**os.environ, "NUMPY_MADVISE_HUGEPAGE": "0"}  # not 2 MiB each
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=small_pages)
        return int(done.stdout)

    assert faults("keep") < 100 < faults("default")


@pytest.mark.parametrize(
    ("greedy", "wanted"),
    [
        (lambda: torch.empty(10**15), "4 PB"),
        (lambda: np.empty(10**16), "71.1 PiB"),
        (lambda: torch.empty(10**12, 10**12), "more than there can be"),
        (lambda: pa.allocate_buffer(2**50), "1.13 PB"),
        (lambda: bytearray(2**60), "more than there is"),
    ],
)
def test_every_library_is_understood(greedy, wanted):
    with (
        pytest.raises(DataError, match=f"while counting: it wanted {wanted}.*; lower the count"),
        reporting_out_of_memory("counting", lower="the count"),
    ):
        greedy()


@pytest.mark.parametrize("error", [RuntimeError("another"), ImportError("no such module")])
def test_other_errors_go_through(error):
    with pytest.raises(type(error), match=str(error)), reporting_out_of_memory("x", lower="y"):
        raise error


def test_a_network_that_is_too_wide_is_told(capsys):
    data = memohop.load("csbm", nodes=60, channels=6)
    with pytest.raises(OutOfMemoryError, match=r"building gcn: .*; lower hidden_channels"):
        train(data, "gcn", [Member()], epochs=1, options={"hidden_channels": 10**14})
    words = ["train", "csbm", "--model", "gcn", "--option", "hidden_channels=100000000000000"]
    assert command.main(words) == 1
    assert "out of memory while building gcn" in capsys.readouterr().err


def test_the_command_line_catches_every_other_failed_allocation(monkeypatch, capsys):
    monkeypatch.setattr(App, "__call__", lambda *_, **__: np.empty(10**16))
    assert command.main(["audit", "--nodes", "x"]) == 1
    told = capsys.readouterr().err
    assert "out of memory while running memohop audit: it wanted 71.1 PiB more; lower" in told


def test_a_library_that_does_not_fit_into_the_address_space_is_one_line():
    resource = pytest.importorskip("resource", reason="this system has no limits for a process")
    limit = 500_000 * 1024  # too little for PyTorch's libraries, enough for Python
    process = subprocess.run(
        [sys.executable, "-m", "memohop", "train", "csbm", "--model", "gcn"],
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
    )
    assert process.returncode == 1
    assert re.fullmatch(
        r"memohop: out of memory while running memohop train: no address space is left for \S+; "
        r"raise the limit, as by ulimit -v unlimited\n",
        process.stderr,
    )


def test_units():
    assert [in_units(n) for n in (10, 1000, 2.5e9, 4e15)] == ["10 bytes", "1 KB", "2.5 GB", "4 PB"]
