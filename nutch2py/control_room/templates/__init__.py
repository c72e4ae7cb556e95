"""Jinja environment of the control room. Values from a crawl are escaped, and invisible characters are made visible.

Exports: ``render_template``, ``page_url``, ``read_asset``.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from urllib.parse import urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from nutch2py.charts.chart import Chart
from nutch2py.support import formatting
from nutch2py.url.display_url import display_host, display_url

_LIST_TABLE = re.compile(r'<table class="list.*?</table>', re.DOTALL)
_HEAD_CELL, _BODY_CELL, _TAG = (
    re.compile(r"<th\b[^>]*>(.*?)</th>"),
    re.compile(r"<t[hd]\b[^>]*"),
    re.compile(r"<[^>]*>"),
)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("nutch2py.control_room"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_escape_value,
    )
    environment.filters |= {
        "number": formatting.format_number,
        "compact": formatting.format_compact,
        "bytes": formatting.format_bytes,
        "duration": formatting.format_duration,
        "time": formatting.format_time,
        "percent": formatting.format_percent,
        "shorten": formatting.shorten,
        "link_text": _link_text,
        "display_host": display_host,
        "display_url": display_url,
        "chart": _chart_html,
    }
    environment.globals["page_url"] = page_url
    return environment


def _escape_value(value: object) -> object:
    """Escape invisible characters of text that is not markup."""
    return formatting.escape_invisible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _link_text(text: str, width: int) -> str:
    """Return the text of a link, a placeholder for an empty name."""
    return formatting.shorten(text, width) if text.strip() else "(no name)"


def _chart_html(chart: Chart) -> Markup:
    return Markup(chart.html())  # noqa: S704 - the chart escapes its texts


def page_url(path: str, **arguments: str | int) -> str:
    """Return the URL of a control room page; empty arguments are omitted."""
    query = {name: value for name, value in arguments.items() if value != ""}
    return f"/crawl{path}" + (f"?{urlencode(query)}" if query else "")


def render_template(name: str, /, **values: object) -> str:
    """Render a template."""
    return _label_cells(_environment().get_template(name).render(values))


def _label_cells(page: str) -> str:
    """Add the header of its column to each cell of the lists: a phone shows a row as a card without a header row."""
    return _LIST_TABLE.sub(_label_table_cells, page)


def _label_table_cells(table: re.Match[str]) -> str:
    head, separator, body = table[0].partition("</thead>")
    names = [_TAG.sub("", cell).strip() for cell in _HEAD_CELL.findall(head)]
    rows = body.split("<tr>")
    for number, row in enumerate(rows):
        labels = iter(names)
        rows[number] = _BODY_CELL.sub(lambda cell, labels=labels: f'{cell[0]} data-label="{next(labels, "")}"', row)  # type: ignore[misc]
    return head + separator + "<tr>".join(rows)


def read_asset(name: str) -> str:
    """Return the text of the style sheet or the script."""
    return files("nutch2py.control_room").joinpath("templates", name).read_text("utf-8")
