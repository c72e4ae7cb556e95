"""Horizontal bar chart of the largest items, with name and number above each bar."""

from __future__ import annotations

from collections.abc import Sequence

from nutch2py.charts.chart import Chart, ChartTable, render_shape, render_svg, render_text, svg_percent
from nutch2py.charts.stacked_bars import Bar
from nutch2py.support.formatting import format_compact, format_number, format_percent, shorten

_ROW_HEIGHT = 31
_MAX_BARS = 12
_TALL_FROM = 7


def draw_bars(
    title: str,
    names: Sequence[str],
    rows: Sequence[Bar],
    empty_message: str,
    max_bars: int = _MAX_BARS,
    colours: Sequence[int] = (1, 2, 3, 4),
) -> Chart:
    """Return a stacked horizontal bar for each of the largest rows; the rest after ``max_bars`` is summed up."""
    ordered = sorted((row for row in rows if sum(row.values) > 0), key=lambda row: (-sum(row.values), row.name))
    if not ordered:
        return Chart(title, empty_message)
    drawn, rest = ordered[:max_bars], ordered[max_bars:]
    total = sum(sum(row.values) for row in ordered)
    greatest = sum(drawn[0].values)
    share = format_percent(greatest, total)
    description = f"Largest: {shorten(drawn[0].name, 60)} with {format_number(greatest)} ({share} of the total)."
    inner = []
    for number, row in enumerate(drawn):
        top, amount = number * _ROW_HEIGHT, sum(row.values)
        inner.append(render_text("0", top + 14, shorten(row.name, 34), "name"))
        inner.append(render_text("100%", top + 14, format_compact(amount), anchor="end"))
        inner.append(f'<rect class="track" x="0" width="100%" y="{top + 19}" height="5" rx="2.5"/>')
        at = 0.0
        for place, part in enumerate(row.values):
            if part > 0:
                length = part / greatest
                where = f'x="{svg_percent(at)}" width="{svg_percent(length)}" y="{top + 19}" height="5" rx="2.5"'
                inner.append(
                    render_shape(
                        "rect", where, f"{row.name}: {format_number(part)} {names[place]}", f"c{colours[place]}"
                    )
                )
                at += length
    height = len(drawn) * _ROW_HEIGHT
    if rest:
        inner.append(
            render_text(
                "0", height + 12, f"and {len(rest):,} more with {format_compact(sum(sum(r.values) for r in rest))}"
            )
        )
        height += 18
    table = ChartTable.from_items(["", *names], ordered, lambda row: [row.name, *map(format_number, row.values)])
    used = [number for number in range(len(names)) if any(row.values[number] for row in ordered)]
    legend = [(colours[number], names[number]) for number in used] if len(names) > 1 else []
    drawing = render_svg(title, description, height, inner, "flush")
    return Chart(title, description, drawing, table, legend, len(drawn) > _TALL_FROM)
