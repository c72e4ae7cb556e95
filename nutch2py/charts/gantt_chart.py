"""Jobs over time: a lane for each kind, a bar for each job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from nutch2py.charts.axes import render_x_labels, time_ticks
from nutch2py.charts.chart import Chart, ChartTable, render_shape, render_svg, render_text, svg_percent
from nutch2py.support.formatting import format_duration, format_time, shorten

_LANE_HEIGHT = 24
_MAX_LANES = 12
_LANE_STEPS = 250  # places of a lane; bars of one colour that share a place are drawn once


class GanttBar(NamedTuple):
    """A bar: its lane, from when to when (ms since 1970), its class of colour, and what is told of it."""

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
    """Return the bars of jobs, a lane for each name: those of ``first_lanes`` before the others."""
    if not bars:
        return Chart(title, empty_message)
    ordered = sorted(bars, key=lambda work: (work.start, work.end))
    first, last = ordered[0].start, max(work.end for work in ordered)
    length = max(last - first, 1)
    used = dict.fromkeys(work.lane for work in ordered)
    names = list(dict.fromkeys([*(name for name in first_lanes if name in used), *used]))
    lanes = {name: min(number, _MAX_LANES - 1) for number, name in enumerate(names)}
    shown = names if len(names) <= _MAX_LANES else [*names[: _MAX_LANES - 1], "others"]
    height = len(shown) * _LANE_HEIGHT
    told = f"{len(ordered):,} jobs from {format_time(first)} to {format_time(last)}."
    inner = []
    for number, name in enumerate(shown):
        y = number * _LANE_HEIGHT
        inner.append(render_text("-10", y + 16, shorten(name, 12), "name", "end"))
        inner.append(f'<line class="grid" x1="0" x2="100%" y1="{y + _LANE_HEIGHT}" y2="{y + _LANE_HEIGHT}"/>')
    seen = set()
    for work in sorted(ordered, key=lambda work: work.colour):  # trouble is drawn last, above all else
        left, right = (work.start - first) / length, (work.end - first) / length
        place = (lanes[work.lane], work.colour, int(left * _LANE_STEPS), int(right * _LANE_STEPS))
        if place in seen:
            continue
        seen.add(place)
        width = max(right - left, 0.004)
        where = (
            f'x="{svg_percent(min(left, 1 - width))}" width="{svg_percent(width)}" y="{place[0] * _LANE_HEIGHT + 5}" '
            f'height="{_LANE_HEIGHT - 10}" rx="2"'
        )
        inner.append(render_shape("rect", where, work.description, f"c{work.colour}"))
    inner += render_x_labels(time_ticks(first, last), height)
    table = ChartTable.from_items(
        ["Job", "Begun", "Took", "What"],
        ordered,
        lambda work: [work.lane, format_time(work.start), format_duration(work.end - work.start), work.description],
    )
    return Chart(title, told, render_svg(title, told, height, inner, "lanes"), table, legend)
