"""How the documentation is built."""

from __future__ import annotations


project = "JupyterHub Fleet"
author = "JupyterHub Fleet developers"
project_copyright = "2026, JupyterHub Fleet developers"
extensions = ["myst_parser", "sphinx_copybutton"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build", "README.md"]
html_theme = "furo"
html_title = "JupyterHub Fleet"
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
nitpicky = True
