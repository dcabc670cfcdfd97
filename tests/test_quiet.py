"""Users see no warnings meant for the developers of other libraries."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import memohop

# PyTorch 2.11 warns when it builds its first sparse tensor, whatever the arguments.
_LIKE_TORCH_2_11 = """
import functools, warnings
import torch

@functools.cache
def warn():
    warnings.warn("Sparse invariant checks are implicitly disabled. Memory errors will occur ...")

def with_warning(build):
    def built(*arguments, **options):
        warn()
        return build(*arguments, **options)
    return built

torch.sparse_csr_tensor = with_warning(torch.sparse_csr_tensor)
"""
# Later versions use a category that is shown; 2.13's is hidden by default.
_LIKE_LATER_TORCH = """
import warnings
import torch

def script(obj, *_, **__):
    warnings.warn("`torch.jit.script` is deprecated. Please switch ...", FutureWarning)
    return obj

torch.jit.script = script
"""
_EVERY_NAME = """
import memohop
for name in memohop.__all__:
    getattr(memohop, name)
"""
_A_STEP = """
import memohop
memohop.train(memohop.load("csbm", nodes=60), "gcn", [memohop.Member()], epochs=1)
"""
_COMMANDS = """
from memohop.cli import main
for words in (["data", "list"], ["data", "show", "csbm"]):
    try:
        main(words)
    except SystemExit as end:
        assert not end.code
"""
_OWN_USE = """
torch.jit.script(len)
"""


def shown(program):
    """The standard error of a program with all warnings on."""
    done = subprocess.run(
        [sys.executable, "-W", "always", "-c", program],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stderr


@pytest.mark.parametrize(
    "program",
    [
        _EVERY_NAME + _A_STEP,
        _LIKE_TORCH_2_11 + _LIKE_LATER_TORCH + _EVERY_NAME + _A_STEP,
        _LIKE_TORCH_2_11 + _LIKE_LATER_TORCH + _COMMANDS,
    ],
    ids=["the installed PyTorch", "other versions", "commands with other versions"],
)
def test_no_warning_is_shown(program):
    assert shown(program) == ""


def test_a_warning_of_the_users_own_use_is_shown():
    text = shown(_LIKE_LATER_TORCH + "import memohop.pyg" + _OWN_USE)
    assert text.count("FutureWarning: `torch.jit.script` is deprecated") == 1


def test_pyg_is_imported_in_one_module():
    package = Path(memohop.__file__).parent
    importing = [
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if re.search(r"^\s*(from|import) torch_geometric", path.read_text(), re.MULTILINE)
        and ">>> " not in path.read_text()
    ]
    assert importing == ["pyg.py"]
