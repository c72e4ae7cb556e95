"""Picture: a drawing with its title, what it shows in a sentence, its legend and the table of its values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from html import escape
from importlib.resources import files
from typing import TypeVar

from nutch2py.pictures.words import cut, legible

T = TypeVar("T")
ROWS = 50
"""Rows of a table beside a drawing; of more, so many are shown that lie evenly."""
LONGEST = 300
"""Columns of a name in a table, and of what a mark says; of a longer one the middle is left out."""


@dataclass(frozen=True)
class Table:
    """Values: names of columns, and rows of text. ``of``: how many rows there would be, when not all are there."""

    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    of: int = 0

    @classmethod
    def thinned(cls, heads: Sequence[str], things: Sequence[T], cells: Callable[[T], Sequence[str]]) -> Table:
        """Return a table of at most :data:`ROWS` things, the last one among them; ``cells``: the row of one."""
        if len(things) <= ROWS:
            return cls(heads, [*map(cells, things)])
        chosen = (things[round(number * (len(things) - 1) / (ROWS - 1))] for number in range(ROWS))
        return cls(heads, [*map(cells, chosen)], len(things))

    def html(self, caption: str) -> str:
        """Return the table; ``caption`` names it for who does not see it."""
        left_out = f" ({len(self.rows)} of {self.of:,} rows)" if self.of else ""
        heads = "".join(f'<th scope="col">{escape(head)}</th>' for head in self.heads)
        lines = "".join(f"<tr>{_cells(row)}</tr>" for row in self.rows)
        return (
            f"<table><caption>{escape(caption)}{left_out}</caption><thead><tr>{heads}</tr></thead>"
            f"<tbody>{lines}</tbody></table>"
        )


def _cells(row: Sequence[str]) -> str:
    first, *others = (escape(cut(cell, LONGEST)) for cell in row)
    return f'<th scope="row">{first}</th>' + "".join(f"<td>{cell}</td>" for cell in others)


@dataclass(frozen=True)
class Picture:
    """``drawing``: SVG, "" when there is nothing to draw: then ``told`` says why. ``legend``: names by colour.

    ``tall``: it needs twice the height of most.

    Colours are classes ``c1`` to ``c4``: the accent, a lighter one, grey, and that of trouble.
    """

    title: str
    told: str
    drawing: str = ""
    table: Table = field(default_factory=lambda: Table((), ()))
    legend: Sequence[tuple[int, str]] = ()
    tall: bool = False

    def html(self) -> str:
        """Return the figure: caption, legend, drawing, and the table of the values, folded."""
        caption = f"<figcaption>{escape(self.title)}</figcaption>"
        if not self.drawing:
            return f'<figure class="picture">{caption}<p class="none">{escape(legible(self.told))}</p></figure>'
        legend = "".join(f'<li><i class="c{colour}"></i>{escape(name)}</li>' for colour, name in self.legend)
        listed = f'<ul class="legend">{legend}</ul>' if legend else ""
        table = (
            f'<details><summary>Values<span class="away"> of: {escape(self.title)}</span></summary>'
            f'<div class="scroll" tabindex="0" role="region" aria-label="Values of: {escape(self.title)}">'
            f"{self.table.html(self.title)}</div></details>"
        )
        return f'<figure class="picture">{caption}{listed}{self.drawing}{table}</figure>'


def canvas(title: str, told: str, height: float, inner: Iterable[str], kind: str = "") -> str:
    """Return the SVG of a drawing: as wide as its place, ``height`` pixels high."""
    return (
        f'<svg class="drawing {kind}" role="img" height="{height:g}" xmlns="http://www.w3.org/2000/svg">'
        f"<title>{escape(title)}</title><desc>{escape(legible(told))}</desc>{''.join(inner)}</svg>"
    )


def mark(shape: str, attributes: str, told: str, kind: str) -> str:
    """Return a shape that says ``told`` when it is pointed at."""
    return f'<{shape} class="{kind}" {attributes}><title>{escape(cut(told, LONGEST))}</title></{shape}>'


def label(x: str, y: float, text: str, kind: str = "", anchor: str = "") -> str:
    """Return letters; ``x`` with its unit, ``y`` in pixels, that of the line on which they stand."""
    name = f' class="{kind}"' if kind else ""
    end = f' text-anchor="{anchor}"' if anchor else ""
    return f'<text x="{x}" y="{y:g}"{name}{end}>{escape(legible(text))}</text>'


def percent(share: float) -> str:
    """Return a share of 1 as ``12.34%``."""
    return f"{round(100 * share, 3):g}%"


def style() -> str:
    """Return the style sheet that drawings need."""
    return files("nutch2py.pictures").joinpath("style.css").read_text("utf-8")
