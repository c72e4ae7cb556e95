"""Gantt chart: a lane per command and a bar per job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from nutch2py.charts.axes import TIME_AXIS_TITLE, render_x_labels, time_ticks
from nutch2py.charts.chart import Chart, ChartTable, render_shape, render_svg, render_text, svg_percent
from nutch2py.support.formatting import format_duration, format_time, shorten

_LANE_HEIGHT = 24
_MAX_LANES = 12
_LANE_STEPS = 250  # horizontal resolution: bars of one colour at the same position are drawn once


class GanttBar(NamedTuple):
    """A bar: lane, start and end (ms since 1970), colour class and tooltip."""

    lane: str
    start: int
    end: int
    colour: int
    description: str


def draw_gantt(
    title: str,
    bars: Sequence[GanttBar],
    empty_message: str,
    legend: Sequence[tuple[int, str]] = (),
    first_lanes: Sequence[str] = (),
) -> Chart:
    """Return a Gantt chart with a lane per name, starting with ``first_lanes``."""
    if not bars:
        return Chart(title, empty_message)
    ordered = sorted(bars, key=lambda bar: (bar.start, bar.end))
    first, last = ordered[0].start, max(bar.end for bar in ordered)
    length = max(last - first, 1)
    used = dict.fromkeys(bar.lane for bar in ordered)
    names = list(dict.fromkeys([*(name for name in first_lanes if name in used), *used]))
    lanes = {name: min(number, _MAX_LANES - 1) for number, name in enumerate(names)}
    shown = names if len(names) <= _MAX_LANES else [*names[: _MAX_LANES - 1], "others"]
    height = len(shown) * _LANE_HEIGHT
    description = f"{len(ordered):,} jobs from {format_time(first)} to {format_time(last)}."
    inner = []
    for number, name in enumerate(shown):
        y = number * _LANE_HEIGHT
        inner.append(render_text("-10", y + 16, shorten(name, 12), "name", "end"))
        inner.append(f'<line class="grid" x1="0" x2="100%" y1="{y + _LANE_HEIGHT}" y2="{y + _LANE_HEIGHT}"/>')
    drawn = set()
    for bar in sorted(ordered, key=lambda bar: bar.colour):  # problems are drawn last, on top
        left, right = (bar.start - first) / length, (bar.end - first) / length
        cell = (lanes[bar.lane], bar.colour, int(left * _LANE_STEPS), int(right * _LANE_STEPS))
        if cell in drawn:
            continue
        drawn.add(cell)
        width = max(right - left, 0.004)
        where = (
            f'x="{svg_percent(min(left, 1 - width))}" width="{svg_percent(width)}" y="{cell[0] * _LANE_HEIGHT + 5}" '
            f'height="{_LANE_HEIGHT - 10}" rx="2"'
        )
        inner.append(render_shape("rect", where, bar.description, f"c{bar.colour}"))
    inner += render_x_labels(time_ticks(first, last), height)
    table = ChartTable.from_items(
        ["Job", "Started", "Duration", "Description"],
        ordered,
        lambda bar: [bar.lane, format_time(bar.start), format_duration(bar.end - bar.start), bar.description],
    )
    drawing = render_svg(title, description, height, inner, "lanes")
    return Chart(title, description, drawing, table, legend, x_title=TIME_AXIS_TITLE)
