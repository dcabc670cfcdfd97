"""`memohop demo`."""

from __future__ import annotations

from pathlib import Path

from memohop.cli.app import app, print_json, recommend_extras, remark
from memohop.cli.options import Json
from memohop.outputs import check_output, write_whole

_DEMO_EXAMPLES = """Examples:
  memohop demo
  memohop demo --output curve.svg"""


@app.command(help_epilogue=_DEMO_EXAMPLES)
def demo(*, output: Path = Path("memohop-demo.html"), json: Json = False) -> None:
    """Show what memory does for message passing, on random graphs.

    Trains mlp, gcn, gcn+mmp and gat+mmp on random graphs in which neighbours agree
    less or more, prints a table and writes a page with the curves. Needs no files,
    and takes under two minutes on two cores.

    Args:
        output: The page to write, or the curve alone if the name ends in .svg.
    """
    from memohop.demo import run_demo
    from memohop.report.demo_page import curve_svg, demo_page
    from memohop.report.terminal import demo_table, output_console, progress_bar

    forms = {".html": demo_page, ".svg": curve_svg}
    check_output(output, *forms)
    recommend_extras("cpu")
    with progress_bar("Training on csbm") as progress:
        result = run_demo(progress=progress)
    write_whole(output, forms[output.suffix](result))
    if json:
        print_json(result.rows())
    else:
        console = output_console()
        console.print(demo_table(result))
        console.print(
            f"\nTest accuracy in percent, mean ± sample standard deviation (ddof=1) over "
            f"{result.settings.splits} splits. With {result.classes} classes, neighbours say "
            f"nothing at homophily {1 / result.classes:g}."
        )
    remark(f"wrote {output} in {result.seconds:.0f} seconds; open it in a browser")
