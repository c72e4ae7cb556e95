"""Line chart over time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from nutch2py.charts.axes import TIME_AXIS_TITLE, axis_levels, render_grid_lines, render_x_labels, time_ticks
from nutch2py.charts.chart import Chart, ChartTable, render_shape, render_svg, svg_percent
from nutch2py.support.formatting import format_number, format_time

_HEIGHT = 150
_MAX_POINTS = 400  # drawn per line
_HOVER_STRIPS = 60  # strips with tooltips


def draw_lines(
    title: str,
    names: Sequence[str],
    points: Sequence[tuple[int, Sequence[float]]],
    empty_message: str,
    format_value: Callable[[float], str] = format_number,
    y_title: str = "",
    colours: Sequence[int] = (1, 2, 3, 4),
) -> Chart:
    """Return a line chart; the area below the first line is filled.

    Args:
        title: the caption.
        names: names of the lines.
        points: time (ms since 1970) and value of each line, in any order. Of many points, an evenly spaced sample
            is drawn, including the first and the last.
        empty_message: the description without points.
        format_value: formats a value.
        y_title: title of the value axis.
        colours: colour class of each line.
    """
    if not points:
        return Chart(title, empty_message)
    ordered = sorted(points, key=lambda point: point[0])
    drawn = _sample_evenly(ordered, _MAX_POINTS)
    first, last = ordered[0][0], ordered[-1][0]
    scale = axis_levels(max(max(values, default=0) for _, values in ordered))
    length, top = max(last - first, 1), scale[-1]
    ends = ", ".join(f"{name} {format_value(value)}" for name, value in zip(names, ordered[-1][1], strict=True))
    description = f"From {format_time(first)} to {format_time(last)}; at the end {ends}."
    inner = render_grid_lines(scale, _HEIGHT)
    for number in reversed(range(len(names))):
        if first == last:
            y = round(_HEIGHT - _HEIGHT * ordered[-1][1][number] / top, 1)
            inner.append(f'<circle class="c{colours[number]}" cx="50%" cy="{y:g}" r="4.5"/>')
            continue
        places = [((at - first) / length * 1000, _HEIGHT - _HEIGHT * values[number] / top) for at, values in drawn]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        area = f'<polygon class="area c{colours[0]}" points="0,{_HEIGHT} {line} 1000,{_HEIGHT}"/>'
        filled = "" if number else area
        inner.append(
            f'<svg width="100%" height="{_HEIGHT}" viewBox="0 0 1000 {_HEIGHT}" preserveAspectRatio="none" '
            f'overflow="visible">{filled}<polyline class="stroke c{colours[number]}" points="{line}"/></svg>'
        )
    inner += render_x_labels(time_ticks(first, last), _HEIGHT)
    hovered = _sample_evenly(ordered, _HOVER_STRIPS)
    middles = [((a + b) / 2 - first) / length for (a, _), (b, _) in pairwise(hovered)]
    for (at, values), left, right in zip(hovered, [0.0, *middles], [*middles, 1.0], strict=True):
        values_text = ", ".join(f"{name} {format_value(value)}" for name, value in zip(names, values, strict=True))
        where = f'x="{svg_percent(left)}" width="{svg_percent(max(right - left, 0))}" y="0" height="{_HEIGHT}"'
        inner.append(render_shape("rect", where, f"{format_time(at)}: {values_text}", "touch"))
    table = ChartTable.from_items(
        ["Time", *names], ordered, lambda point: [format_time(point[0]), *map(format_value, point[1])]
    )
    legend = [(colours[number], name) for number, name in enumerate(names)] if len(names) > 1 else []
    drawing = render_svg(title, description, _HEIGHT, inner)
    return Chart(title, description, drawing, table, legend, y_title=y_title, x_title=TIME_AXIS_TITLE)


def _sample_evenly(points: Sequence[tuple[int, Sequence[float]]], limit: int) -> Sequence[tuple[int, Sequence[float]]]:
    """Return at limit ``limit`` points, including the first and the last."""
    if len(points) <= limit:
        return points
    return [points[round(number * (len(points) - 1) / (limit - 1))] for number in range(limit)]
