"""Chart: an SVG drawing with title, description, legend and a table of its values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from html import escape
from importlib.resources import files
from typing import TypeVar

from nutch2py.support.formatting import escape_invisible, shorten

T = TypeVar("T")
MAX_TABLE_ROWS = 50
"""Rows of the table of a chart; of more rows, an evenly spaced sample is shown."""
MAX_LABEL_WIDTH = 300
"""Display columns of a name and of a tooltip; longer ones are shortened in the middle."""


@dataclass(frozen=True)
class ChartTable:
    """Column headers and rows of text. ``total_rows``: number of all rows if only a sample is included, else 0."""

    headers: Sequence[str]
    rows: Sequence[Sequence[str]]
    total_rows: int = 0

    @classmethod
    def from_items(cls, headers: Sequence[str], items: Sequence[T], cells: Callable[[T], Sequence[str]]) -> ChartTable:
        """Return a table of at most :data:`MAX_TABLE_ROWS` items. ``cells``: returns the row of an item."""
        if len(items) <= MAX_TABLE_ROWS:
            return cls(headers, [*map(cells, items)])
        chosen = (items[round(number * (len(items) - 1) / (MAX_TABLE_ROWS - 1))] for number in range(MAX_TABLE_ROWS))
        return cls(headers, [*map(cells, chosen)], len(items))

    def html(self, caption: str) -> str:
        """Return the HTML table. ``caption``: its name for screen readers."""
        sample = f" ({len(self.rows)} of {self.total_rows:,} rows)" if self.total_rows else ""
        heads = "".join(f'<th scope="col">{escape(head)}</th>' for head in self.headers)
        lines = "".join(f"<tr>{_render_cells(row)}</tr>" for row in self.rows)
        return (
            f"<table><caption>{escape(caption)}{sample}</caption><thead><tr>{heads}</tr></thead>"
            f"<tbody>{lines}</tbody></table>"
        )


def _render_cells(row: Sequence[str]) -> str:
    first, *others = (escape(shorten(cell, MAX_LABEL_WIDTH)) for cell in row)
    return f'<th scope="row">{first}</th>' + "".join(f"<td>{cell}</td>" for cell in others)


@dataclass(frozen=True)
class Chart:
    """A chart.

    Attributes:
        title: the caption.
        description: the main result in a sentence; without data, the reason.
        svg: the drawing, "" without data.
        table: the values.
        legend: names by colour class, ``c1`` to ``c4``: accent, light accent, grey, and the colour of problems;
            ``c5`` to ``c7``: for parts without such a meaning.
        is_tall: it needs twice the height of most charts.
        y_title, x_title: titles of the axes, with their units; "" for an axis without one.
    """

    title: str
    description: str
    svg: str = ""
    table: ChartTable = field(default_factory=lambda: ChartTable((), ()))
    legend: Sequence[tuple[int, str]] = ()
    is_tall: bool = False
    y_title: str = ""
    x_title: str = ""

    def html(self) -> str:
        """Return the HTML figure: caption, legend, drawing, and the table of values, collapsed."""
        caption = f"<figcaption>{escape(self.title)}</figcaption>"
        if not self.svg:
            reason = escape(escape_invisible(self.description))
            return f'<figure class="chart">{caption}<p class="none">{reason}</p></figure>'
        legend = "".join(f'<li><i class="c{colour}"></i>{escape(name)}</li>' for colour, name in self.legend)
        listed = f'<ul class="legend">{legend}</ul>' if legend else ""
        table = (
            f'<details><summary>Values<span class="visually-hidden"> of: {escape(self.title)}</span></summary>'
            f'<div class="scroll" tabindex="0" role="region" aria-label="Values of: {escape(self.title)}">'
            f"{self.table.html(self.title)}</div></details>"
        )
        y_title, x_title = (
            f'<p class="axis {axis}">{escape(title)}</p>' if title else ""
            for axis, title in (("y", self.y_title), ("x", self.x_title))
        )
        return f'<figure class="chart">{caption}{listed}{y_title}{self.svg}{x_title}{table}</figure>'


def render_svg(title: str, description: str, height: float, inner: Iterable[str], kind: str = "") -> str:
    """Return an SVG element with the width of its container and a height in pixels."""
    return (
        f'<svg class="drawing {kind}" role="img" height="{height:g}" xmlns="http://www.w3.org/2000/svg">'
        f"<title>{escape(title)}</title><desc>{escape(escape_invisible(description))}</desc>{''.join(inner)}</svg>"
    )


def render_shape(shape: str, attributes: str, tooltip: str, kind: str) -> str:
    """Return a shape with a tooltip."""
    return f'<{shape} class="{kind}" {attributes}><title>{escape(shorten(tooltip, MAX_LABEL_WIDTH))}</title></{shape}>'


def render_text(x: str, y: float, text: str, kind: str = "", anchor: str = "") -> str:
    """Return a text element. ``x``: with its unit. ``y``: baseline in pixels."""
    name = f' class="{kind}"' if kind else ""
    end = f' text-anchor="{anchor}"' if anchor else ""
    return f'<text x="{x}" y="{y:g}"{name}{end}>{escape(escape_invisible(text))}</text>'


def svg_percent(share: float) -> str:
    """Return a fraction as ``12.34%``."""
    return f"{round(100 * share, 3):g}%"


def read_stylesheet() -> str:
    """Return the style sheet of charts."""
    return files("nutch2py.charts").joinpath("style.css").read_text("utf-8")
