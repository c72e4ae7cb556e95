"""Configuration of Sphinx for the documentation site; build.py prepares the pages that it reads."""

from __future__ import annotations

from nutch2py.version import __version__

project = "nutch2py"
author = "the nutch2py developers"
project_copyright = "the nutch2py developers, Apache License 2.0"
version = release = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
myst_heading_anchors = 5
# "```console" blocks hold commands and their output, which no lexer reads without errors
highlight_language = "none"
suppress_warnings = ["misc.highlighting_failure"]

default_role = "code"
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
napoleon_google_docstring = True

html_theme = "furo"
html_title = f"nutch2py {__version__}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_theme_options = {"navigation_with_keys": True}
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"
