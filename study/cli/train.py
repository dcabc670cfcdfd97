"""`python -m study train`: `memohop train`, by a protocol of Table 1."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from memohop.cli.app import app as memohop_app
from memohop.errors import unknown_name
from study.cli.app import app

_EXAMPLES = """Examples:
  python -m study train texas --model gcn+mmp --protocol official
  python -m study train texas --model gcn+mmp --protocol official --lam 1 --splits 0-4"""


@app.command(help_epilogue=_EXAMPLES)
def train(
    dataset: str,
    *options: Annotated[str, Parameter(allow_leading_hyphen=True)],
    model: str,
    protocol: str,
) -> None:
    """Train a model as a protocol of Table 1 does, outside of any store.

    Args:
        dataset: The id of a dataset.
        options: Those of memohop train, which override the protocol.
        model: The id of a model of Table 1.
        protocol: One of the protocols of table1, paper or official.
    """
    from study.runs.experiment import Experiment

    table = Experiment("table1")
    if model not in table.models:
        raise unknown_name("model of table1", model, table.models)
    settings, search = table.row(protocol, model, dataset)
    command, bound, _ = memohop_app.parse_args(
        ["train", dataset, "--model", model, *options], exit_on_error=False, print_error=False
    )
    command(*bound.args, **bound.kwargs, base=(protocol, settings, search))
