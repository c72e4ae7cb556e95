"""Stacked bar chart and histogram."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from nutch2py.charts.axes import axis_levels, fit_ticks, render_grid_lines, render_x_labels
from nutch2py.charts.chart import Chart, ChartTable, render_shape, render_svg, svg_percent
from nutch2py.support.formatting import format_compact, format_number, shorten
from nutch2py.support.histogram import Histogram, HistogramBucket

_HEIGHT = 150
_MAX_BARS = 60


class Bar(NamedTuple):
    """A bar: name and values of its parts, from bottom to top."""

    name: str
    values: Sequence[float]


def draw_stacked_bars(
    title: str,
    names: Sequence[str],
    bars: Sequence[Bar],
    empty_message: str,
    colours: Sequence[int] = (1, 2, 3, 4),
    y_title: str = "",
    x_title: str = "",
    description: str = "",
    merges: bool = True,
) -> Chart:
    """Return stacked bars in the given order.

    Args:
        title: the caption.
        names: names of the parts.
        bars: name and parts of each bar.
        empty_message: the description without a value.
        colours: colour class of each part.
        y_title: title of the value axis.
        x_title: title of the axis of names.
        description: the main result; by default the totals of the parts.
        merges: whether of more than 60 bars neighbours are added up; otherwise the last 60 are drawn.
    """
    if not any(any(bar.values) for bar in bars):
        return Chart(title, empty_message)
    drawn = _merge_neighbours(bars) if merges else bars[-_MAX_BARS:]
    scale = axis_levels(max(sum(bar.values) for bar in drawn))
    totals = [sum(bar.values[number] for bar in bars) for number in range(len(names))]
    listed = ", ".join(f"{format_number(total)} {name}" for name, total in zip(names, totals, strict=True) if total)
    description = description or f"{len(bars):,} bars; total: {listed}."
    inner = render_grid_lines(scale, _HEIGHT)
    width = 1 / max(len(drawn), 6)
    gap = width * 0.14
    for place, bar in enumerate(drawn):
        base = float(_HEIGHT)
        for number, part in enumerate(bar.values):
            if part <= 0:
                continue
            high = _HEIGHT * part / scale[-1]
            base -= high
            where = (
                f'x="{svg_percent(place * width + gap)}" width="{svg_percent(width - 2 * gap)}" y="{base:.1f}" '
                f'height="{max(high - 0.8, 0.8):.1f}"'
            )
            inner.append(
                render_shape("rect", where, f"{bar.name}: {format_number(part)} {names[number]}", f"c{colours[number]}")
            )
    inner += render_x_labels(
        fit_ticks([((place + 0.5) * width, shorten(bar.name, 12)) for place, bar in enumerate(drawn)]), _HEIGHT
    )
    table = ChartTable.from_items(["", *names], bars, lambda bar: [bar.name, *map(format_number, bar.values)])
    legend = [(colours[number], name) for number, name in enumerate(names) if totals[number]]
    drawing = render_svg(title, description, _HEIGHT, inner)
    return Chart(title, description, drawing, table, legend, y_title=y_title, x_title=x_title)


def _merge_neighbours(bars: Sequence[Bar]) -> Sequence[Bar]:
    """Return at most 60 bars: of more, neighbours are merged under the name of the first."""
    if len(bars) <= _MAX_BARS:
        return bars
    every = -(-len(bars) // _MAX_BARS)
    groups = [bars[start : start + every] for start in range(0, len(bars), every)]
    return [
        Bar(
            group[0].name,
            [sum(parts) for parts in zip(*(bar.values for bar in group), strict=True)],
        )
        for group in groups
    ]


def draw_histogram(
    title: str,
    histogram: Histogram,
    empty_message: str,
    format_value: Callable[[float], str] = format_compact,
    unit: str = "pages",
    x_title: str = "",
) -> Chart:
    """Return a chart of a histogram with buckets of equal width. Empty buckets at either end are omitted.

    A single bucket is a sentence, not a drawing. ``format_value``: formats a bound; ``x_title``: title of the axis.
    """
    total = sum(histogram.counts)
    if not total:
        return Chart(title, empty_message)
    drawn = [*histogram.iter_buckets()]
    while not drawn[-1].value_count:
        drawn.pop()
    while not drawn[0].value_count:
        drawn.pop(0)
    if len(drawn) == 1:
        return Chart(title, f"All {format_number(total)} {unit}: {_range_label(drawn[0], format_value)}.")
    scale = axis_levels(max(bucket.value_count for bucket in drawn))
    most = max(drawn, key=lambda bucket: bucket.value_count)
    peak = f"{_range_label(most, format_value)}: {format_number(most.value_count)}"
    description = f"{format_number(total)} {unit}, most of them {peak}."
    inner = render_grid_lines(scale, _HEIGHT)
    slots = max(len(drawn), 4)
    for number, bucket in enumerate(drawn):
        high = _HEIGHT * bucket.value_count / scale[-1]
        if bucket.value_count:
            high = max(high, 1.0)
        where = (
            f'x="{svg_percent((number + 0.04) / slots)}" width="{svg_percent(0.92 / slots)}" y="{_HEIGHT - high:.1f}" '
            f'height="{high:.1f}"'
        )
        inner.append(
            render_shape(
                "rect", where, f"{_range_label(bucket, format_value)}: {format_number(bucket.value_count)} {unit}", "c1"
            )
        )
    bounds = [(number / slots, format_value(bucket.low)) for number, bucket in enumerate(drawn)]
    if not math.isinf(drawn[-1].high):
        bounds.append((len(drawn) / slots, format_value(drawn[-1].high)))
    inner += render_x_labels(fit_ticks(bounds), _HEIGHT)
    table = ChartTable.from_items(
        ["Range", unit],
        drawn,
        lambda bucket: [_range_label(bucket, format_value), format_number(bucket.value_count)],
    )
    drawing = render_svg(title, description, _HEIGHT, inner)
    return Chart(title, description, drawing, table, y_title=unit, x_title=x_title)


def _range_label(bucket: HistogramBucket, format_value: Callable[[float], str]) -> str:
    if math.isinf(bucket.high):
        return f"{format_value(bucket.low)} and more"
    return f"{format_value(bucket.low)} – {format_value(bucket.high)}"
