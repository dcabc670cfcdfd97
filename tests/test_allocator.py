"""Freed RAM is kept for the next tensor."""

import os
import platform
import subprocess
import sys

import pytest

CHILD = """
import resource, sys
import numpy as np
from memohop.allocator import keep_freed_ram

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
