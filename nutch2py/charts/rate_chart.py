"""Rate chart: amounts of intervals, such as jobs, as stacked areas whose height is the mean rate of the interval."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from nutch2py.charts.axes import TIME_AXIS_TITLE, axis_levels, render_grid_lines, render_x_labels, time_ticks
from nutch2py.charts.chart import Chart, ChartTable, render_shape, render_svg, svg_percent
from nutch2py.support.formatting import format_compact, format_duration, format_number, format_time

_HEIGHT = 150
_MAX_INTERVALS = 300  # drawn; of more, neighbours are merged
_MIN_WIDTH = 0.003  # share of the width
_MINUTE_MS = 60_000


class RateInterval(NamedTuple):
    """Start and end (ms since 1970), and the amount of each part, from bottom to top."""

    start: int
    end: int
    values: Sequence[float]

    @property
    def minutes(self) -> float:
        """Length in minutes; at least one second."""
        return max(self.end - self.start, 1000) / _MINUTE_MS


def draw_rates(
    title: str,
    names: Sequence[str],
    intervals: Sequence[RateInterval],
    empty_message: str,
    span: tuple[int, int] | None = None,
    unit: str = "URLs",
    colours: Sequence[int] = (1, 2, 3, 4),
) -> Chart:
    """Return the mean rates per minute of intervals over time.

    Args:
        title: the caption.
        names: names of the parts.
        intervals: intervals that do not overlap, in any order.
        empty_message: the description without an amount.
        span: first and last time of the axis; by default those of the intervals.
        unit: what the amounts count.
        colours: colour class of each part.
    """
    totals = [sum(each.values[number] for each in intervals) for number in range(len(names))]
    if not any(totals):
        return Chart(title, empty_message)
    ordered = sorted(intervals, key=lambda each: each.start)
    drawn = _merge_neighbours(ordered)
    first, last = span or (ordered[0].start, max(each.end for each in ordered))
    length = max(last - first, 1)
    scale = axis_levels(max(sum(each.values) / each.minutes for each in drawn))
    listed = ", ".join(f"{format_number(total)} {name}" for name, total in zip(names, totals, strict=True) if total)
    description = f"From {format_time(first)} to {format_time(last)}: {listed}."
    inner = render_grid_lines(scale, _HEIGHT)
    for each in drawn:
        left, right = (min(max((at - first) / length, 0.0), 1.0) for at in (each.start, each.end))
        width = max(right - left, _MIN_WIDTH)
        x = f'x="{svg_percent(min(left, 1 - width))}" width="{svg_percent(width)}"'
        base = float(_HEIGHT)
        for number, amount in enumerate(each.values):
            if amount <= 0:
                continue
            rate = amount / each.minutes
            height = _HEIGHT * rate / scale[-1]
            base -= height
            tooltip = (
                f"{format_time(each.start)}, {format_duration(each.end - each.start)}: {format_number(amount)} "
                f"{names[number]}, {format_compact(rate)} per minute"
            )
            where = f'{x} y="{base:.1f}" height="{max(height, 0.8):.1f}"'
            inner.append(render_shape("rect", where, tooltip, f"c{colours[number]}"))
    inner += render_x_labels(time_ticks(first, last), _HEIGHT)
    table = ChartTable.from_items(
        ["Started", "Duration", *names],
        ordered,
        lambda each: [
            format_time(each.start), format_duration(each.end - each.start), *map(format_number, each.values)
        ],
    )  # fmt: skip
    legend = [(colours[number], name) for number, name in enumerate(names) if totals[number]]
    drawing = render_svg(title, description, _HEIGHT, inner)
    return Chart(title, description, drawing, table, legend, y_title=f"{unit} per minute", x_title=TIME_AXIS_TITLE)


def _merge_neighbours(intervals: Sequence[RateInterval]) -> Sequence[RateInterval]:
    """Return at most 300 intervals: of more, neighbours are merged."""
    every = -(-len(intervals) // _MAX_INTERVALS)
    if every <= 1:
        return intervals
    groups = [intervals[start : start + every] for start in range(0, len(intervals), every)]
    return [
        RateInterval(
            group[0].start,
            max(each.end for each in group),
            [sum(parts) for parts in zip(*(each.values for each in group), strict=True)],
        )
        for group in groups
    ]
