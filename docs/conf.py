"""How the documentation becomes a site: `make docs` builds it from README and docs/, and any broken link fails."""

from __future__ import annotations

from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

project = "semistream"
author = "the semistream authors"
extensions = ["myst_parser"]
root_doc = "docs/index"
include_patterns = ["*.md", "docs/**.md", "benchmarks/*.md"]
exclude_patterns = ["**/.*", "docs/_*"]

myst_heading_anchors = 4
highlight_language = "none"
html_theme = "alabaster"
html_theme_options = {"description": "lookup joins within a byte budget", "page_width": "1100px"}
html_sidebars = {"**": ["about.html", "navigation.html", "searchbox.html"]}
html_copy_source = False


def keep_names_of_folders(app: Sphinx, page: nodes.document) -> None:
    """A link to a folder of the repository leads somewhere only on a code host: here its text stays, if the folder exists."""
    for link in list(page.findall(addnodes.pending_xref)):
        if (Path(page["source"]).parent / link["reftarget"]).is_dir():
            link.replace_self(link.children)


def setup(app: Sphinx) -> None:
    """Register the one thing that Sphinx does not do by itself."""
    app.connect("doctree-read", keep_names_of_folders)
