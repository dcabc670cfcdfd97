"""Every public name is in the reference and has an example that does what it shows."""

import doctest
import re
from importlib import import_module
from pathlib import Path

import pytest

from memohop.data.audit import Audit

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
PUBLIC = (
    "memohop",
    "memohop.nn",
    "memohop.networks",
    "memohop.training",
    "memohop.explain",
    "memohop.data.tables",
)


def public_names():
    """Every public function and class once, by its shortest name."""
    by_value = {id(Audit): ("memohop.data.audit.Audit", Audit)}  # what memohop.audit returns
    for module in map(import_module, PUBLIC):
        every = [*getattr(module, "_HOME", ()), *vars(module)]
        for name in dict.fromkeys(getattr(module, "__all__", every)):
            value = getattr(module, name)
            home = getattr(value, "__module__", None) or ""
            if not name.startswith("_") and callable(value) and home.startswith("memohop."):
                by_value.setdefault(id(value), (f"{module.__name__}.{name}", value))
    return dict(sorted(by_value.values()))


NAMES = public_names()


def test_names_that_are_imported_late_are_found():
    assert {"memohop.MMP", "memohop.training.Scale", "memohop.nn.Dropout"} <= NAMES.keys()


@pytest.mark.parametrize("name", NAMES)
def test_the_example_does_what_it_shows(name, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    value = NAMES[name]
    example = doctest.DocTestParser().get_doctest(value.__doc__, {}, name, None, 0)
    assert example.examples, f"{name} has no example; add one that runs in a moment"
    shown = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS, verbose=False)
    runner.run(example, out=shown.append)
    assert not runner.failures, "".join(shown)


def test_the_reference_has_every_public_name_once():
    told = [
        name
        for page in sorted(REFERENCE.glob("*.md"))
        for name in re.findall(
            r"^\.\. auto(?:function|class|exception):: (\S+)$", page.read_text(), re.MULTILINE
        )
    ]
    assert sorted(told) == sorted(NAMES)
