"""Picture: a drawing with its title, what it shows in a sentence, its legend and the table of its values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from html import escape
from importlib.resources import files
from typing import TypeVar

from nutch2py.support.formatting import escape_invisible, shorten

T = TypeVar("T")
MAX_TABLE_ROWS = 50
"""Rows of a table beside a drawing; of more, so many are shown that lie evenly."""
MAX_LABEL_WIDTH = 300
"""Columns of a name in a table, and of what a mark says; of a longer one the middle is left out."""


@dataclass(frozen=True)
class ChartTable:
    """Values: names of columns, and rows of text. ``total_rows``: how many rows there would be, when not all are there."""

    headers: Sequence[str]
    rows: Sequence[Sequence[str]]
    total_rows: int = 0

    @classmethod
    def from_items(cls, headers: Sequence[str], items: Sequence[T], cells: Callable[[T], Sequence[str]]) -> ChartTable:
        """Return a table of at most :data:`MAX_TABLE_ROWS` things, the last one among them; ``cells``: the row of one."""
        if len(items) <= MAX_TABLE_ROWS:
            return cls(headers, [*map(cells, items)])
        chosen = (items[round(number * (len(items) - 1) / (MAX_TABLE_ROWS - 1))] for number in range(MAX_TABLE_ROWS))
        return cls(headers, [*map(cells, chosen)], len(items))

    def html(self, caption: str) -> str:
        """Return the table; ``caption`` names it for who does not see it."""
        left_out = f" ({len(self.rows)} of {self.total_rows:,} rows)" if self.total_rows else ""
        heads = "".join(f'<th scope="col">{escape(head)}</th>' for head in self.headers)
        lines = "".join(f"<tr>{_render_cells(row)}</tr>" for row in self.rows)
        return (
            f"<table><caption>{escape(caption)}{left_out}</caption><thead><tr>{heads}</tr></thead>"
            f"<tbody>{lines}</tbody></table>"
        )


def _render_cells(row: Sequence[str]) -> str:
    first, *others = (escape(shorten(cell, MAX_LABEL_WIDTH)) for cell in row)
    return f'<th scope="row">{first}</th>' + "".join(f"<td>{cell}</td>" for cell in others)


@dataclass(frozen=True)
class Chart:
    """``svg``: SVG, "" when there is nothing to draw: then ``description`` says why. ``legend``: names by colour.

    ``is_tall``: it needs twice the height of most.

    Colours are classes ``c1`` to ``c4``: the accent, a lighter one, grey, and that of trouble.
    """

    title: str
    description: str
    svg: str = ""
    table: ChartTable = field(default_factory=lambda: ChartTable((), ()))
    legend: Sequence[tuple[int, str]] = ()
    is_tall: bool = False

    def html(self) -> str:
        """Return the figure: caption, legend, drawing, and the table of the values, folded."""
        caption = f"<figcaption>{escape(self.title)}</figcaption>"
        if not self.svg:
            return f'<figure class="picture">{caption}<p class="none">{escape(escape_invisible(self.description))}</p></figure>'
        legend = "".join(f'<li><i class="c{colour}"></i>{escape(name)}</li>' for colour, name in self.legend)
        listed = f'<ul class="legend">{legend}</ul>' if legend else ""
        table = (
            f'<details><summary>Values<span class="away"> of: {escape(self.title)}</span></summary>'
            f'<div class="scroll" tabindex="0" role="region" aria-label="Values of: {escape(self.title)}">'
            f"{self.table.html(self.title)}</div></details>"
        )
        return f'<figure class="picture">{caption}{listed}{self.svg}{table}</figure>'


def render_svg(title: str, told: str, height: float, inner: Iterable[str], kind: str = "") -> str:
    """Return the SVG of a drawing: as wide as its place, ``height`` pixels high."""
    return (
        f'<svg class="drawing {kind}" role="img" height="{height:g}" xmlns="http://www.w3.org/2000/svg">'
        f"<title>{escape(title)}</title><desc>{escape(escape_invisible(told))}</desc>{''.join(inner)}</svg>"
    )


def render_shape(shape: str, attributes: str, told: str, kind: str) -> str:
    """Return a shape that says ``told`` when it is pointed at."""
    return f'<{shape} class="{kind}" {attributes}><title>{escape(shorten(told, MAX_LABEL_WIDTH))}</title></{shape}>'


def render_text(x: str, y: float, text: str, kind: str = "", anchor: str = "") -> str:
    """Return letters; ``x`` with its unit, ``y`` in pixels, that of the line on which they stand."""
    name = f' class="{kind}"' if kind else ""
    end = f' text-anchor="{anchor}"' if anchor else ""
    return f'<text x="{x}" y="{y:g}"{name}{end}>{escape(escape_invisible(text))}</text>'


def svg_percent(share: float) -> str:
    """Return a share of 1 as ``12.34%``."""
    return f"{round(100 * share, 3):g}%"


def read_stylesheet() -> str:
    """Return the style sheet that drawings need."""
    return files("nutch2py.charts").joinpath("style.css").read_text("utf-8")
