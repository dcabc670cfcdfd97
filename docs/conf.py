"""How the site is built: `make docs`. Nothing is fetched, neither now nor when it is read."""

from __future__ import annotations

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "_extensions"), str(HERE.parent)]  # the latter for study

import memohop.pyg  # noqa: E402, F401  # first: PyG's own import warns
from memohop.version import __version__  # noqa: E402

project, author, copyright = "Memohop", "the Memohop contributors", "the Memohop contributors"
version = release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "commands",
    "mathml",
]
_examples = {path.stem for path in HERE.parent.glob("examples/*.py")}
exclude_patterns = [
    "_extensions",
    # Pages of examples that were renamed since the last build here.
    *(
        f"gallery/{page.name}"
        for page in HERE.glob("gallery/plot_*.rst")
        if page.stem not in _examples
    ),
]
suppress_warnings = [
    "config.cache",  # the gallery is configured with functions, which are not cached
]

myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3
html_math_renderer = "mathml"

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 80
napoleon_use_rtype = False
napoleon_custom_sections = ["Shapes"]
add_module_names = False
toc_object_entries_show_parents = "hide"

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_theme = "pydata_sphinx_theme"
html_title = "Memohop"
html_static_path = ["_static"]
html_css_files = ["memohop.css"]
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "logo": {"text": "Memohop"},
    "header_links_before_dropdown": 6,
    "navbar_end": ["theme-switcher"],
    "navbar_align": "left",
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_prev_next": True,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"changelog": [], "larger-graphs": [], "start": []}


def picture_style(gallery_conf: object, script: str) -> None:
    """Draw the pictures of the gallery for any background, in the colours of the package."""
    import matplotlib as mpl

    from memohop.report.palette import HUES, INK_FOR_ANY_BACKGROUND

    ink = INK_FOR_ANY_BACKGROUND
    mpl.rcParams.update(
        {
            "figure.figsize": (7.2, 4.0),
            "figure.constrained_layout.use": True,
            "savefig.transparent": True,
            "font.size": 12,
            "axes.prop_cycle": mpl.cycler(color=[HUES["blue"], HUES["orange"], HUES["green"]]),
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.grid": True,
            "grid.alpha": 0.25,
            "legend.frameon": False,
            "lines.linewidth": 2.2,
            "lines.markersize": 7,
        }
        | dict.fromkeys(
            ["text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color"], ink
        )
        | {"axes.titlecolor": ink, "grid.color": ink}
    )


sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "plot_gallery": os.environ.get("MEMOHOP_GALLERY", "1") != "0",
    "abort_on_example_error": True,
    "reset_modules": ("matplotlib", picture_style),
    "image_srcset": ["2x"],
    "min_reported_time": 1e9,
    "show_memory": False,
    "write_computation_times": False,
    "download_all_examples": False,
    "show_signature": False,
    "remove_config_comments": True,
    "within_subsection_order": "FileNameSortKey",
    "backreferences_dir": None,
}
