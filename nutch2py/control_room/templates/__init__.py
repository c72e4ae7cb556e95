"""The templates of the pages. Whatever comes from a crawl is escaped, and its hidden characters are shown."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from nutch2py.charts.chart import Chart
from nutch2py.support import formatting


@cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("nutch2py.control_room"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_escape_value,
    )
    made.filters |= {
        "full": formatting.format_number,
        "short": formatting.format_compact,
        "size": formatting.format_bytes,
        "span": formatting.format_duration,
        "moment": formatting.format_time,
        "share": formatting.format_percent,
        "cut": formatting.shorten,
        "named": _link_text,
        "picture": _chart_html,
    }
    made.globals["link"] = page_url
    return made


def _escape_value(value: Any) -> Any:
    """Return what is put into a page: all characters of text can be seen."""
    return formatting.escape_invisible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _link_text(text: str, width: int) -> str:
    """Return what a link is called: something, even of a name that is empty."""
    return formatting.shorten(text, width) if text.strip() else "(no name)"


def _chart_html(picture: Chart) -> Markup:
    return Markup(picture.html())


def page_url(path: str, **arguments: str | int) -> str:
    """Return the address of a page of the control room."""
    named = {name: value for name, value in arguments.items() if value != ""}
    return f"/crawl{path}" + (f"?{urlencode(named)}" if named else "")


def render_template(name: str, /, **values: Any) -> str:
    """Return a page."""
    return _environment().get_template(name).render(values)


def read_asset(name: str) -> str:
    """Return a file of this folder: a style sheet or the script."""
    return files("nutch2py.control_room").joinpath("templates", name).read_text("utf-8")
