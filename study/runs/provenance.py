"""Which code on which machine made a score."""

from __future__ import annotations

import os
import platform
import subprocess
from functools import cache
from importlib.metadata import version
from pathlib import Path

import torch

from memohop.version import __version__
from study import ROOT
from study.runs.results import Source

COMMIT = "MEMOHOP_COMMIT"
_PACKAGES = ("torch", "torch_geometric", "numpy", "scipy")


@cache
def source(device: str) -> Source:
    """The code and machine of this process, training on a device."""
    versions = {"memohop": __version__, "python": platform.python_version()}
    versions |= {name: version(name) for name in _PACKAGES}
    name = torch.cuda.get_device_name() if device == "cuda" else _processor()
    return Source(versions=versions, device=name, commit=commit())


def commit() -> str | None:
    """The commit of the checkout, marked if files were changed.

    The environment variable ``MEMOHOP_COMMIT`` names it for a copy without its history.
    """
    if os.environ.get(COMMIT):
        return os.environ[COMMIT]
    if not (ROOT / ".git").exists():  # a copy, perhaps below someone else's checkout
        return None
    command = ["git", "describe", "--always", "--abbrev=40", "--dirty", "--exclude=*"]
    try:
        done = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, timeout=20, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())
