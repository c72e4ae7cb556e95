"""Axes: positions of grid lines and labels that do not overlap, on phones too."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from typing import NamedTuple

from nutch2py.charts.chart import render_text, svg_percent
from nutch2py.support.formatting import display_width, format_compact

NARROW_WIDTH, WIDE_WIDTH = 270, 640
"""Width of a chart on a phone, and of a full-width chart, in pixels."""
_LETTER_WIDTH = 6.4  # approximate, in pixels
_LABEL_GAP = 14  # in pixels
_TIME_STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200,
          *(86400 * days for days in (1, 2, 7, 14, 30, 60, 90, 180, 365, 730, 1825, 3650))]  # fmt: skip
"""Seconds between two ticks of a time axis."""
TIME_AXIS_TITLE = "local time"


class Tick(NamedTuple):
    """A tick: position from 0 to 1 and label. ``wide_only``: shown on wide charts only."""

    position: float
    text: str
    wide_only: bool = False


def axis_levels(maximum: float, max_levels: int = 4) -> list[float]:
    """Return round numbers from 0 on for an axis; the last is at least ``maximum``.

    >>> axis_levels(0), axis_levels(7), axis_levels(1234)
    ([0.0, 1.0], [0.0, 2.0, 4.0, 6.0, 8.0], [0.0, 500.0, 1000.0, 1500.0])
    """
    if not 0 < maximum < math.inf:
        return [0.0, 1.0]
    power = 10.0 ** math.floor(math.log10(maximum / max_levels))
    step = next(power * times for times in (1, 2, 2.5, 5, 10) if power * times * max_levels >= maximum * (1 - 1e-9))
    if maximum >= 1:
        step = max(step, 1.0) if step < 1 or step == int(step) else math.ceil(step)
    return [step * number for number in range(math.ceil(maximum / step - 1e-9) + 1)]


def render_grid_lines(values: Sequence[float], height: float) -> list[str]:
    """Return horizontal grid lines, with labels on the left."""
    top = values[-1]
    parts = []
    for value in values:
        y = round(height - height * value / top, 1)
        parts.append(f'<line class="grid" x1="0" x2="100%" y1="{y:g}" y2="{y:g}"/>')
        parts.append(render_text("-8", y + 4, format_compact(value), anchor="end"))
    return parts


def fit_ticks(ticks: Sequence[tuple[float, str]]) -> list[Tick]:
    """Return every tick, every second, every fourth … so that labels fit; some only on wide charts."""
    narrow, wide = (_tick_interval(ticks, width) for width in (NARROW_WIDTH, WIDE_WIDTH))
    return [Tick(*ticks[number], bool(number % narrow)) for number in range(0, len(ticks), wide)]


def _tick_interval(ticks: Sequence[tuple[float, str]], width: int) -> int:
    every = 1
    while every < len(ticks):
        extents = [_label_extent(ticks[number], width) for number in range(0, len(ticks), every)]
        if all(left[1] + _LABEL_GAP <= right[0] for left, right in pairwise(extents)):
            break
        every *= 2
    return every


def _label_extent(tick: tuple[float, str], width: int) -> tuple[float, float]:
    position, text = tick
    length, at = display_width(text) * _LETTER_WIDTH, position * width
    if position < 0.04:
        return at, at + length
    return (at - length, at) if position > 0.96 else (at - length / 2, at + length / 2)


def render_x_labels(ticks: Sequence[Tick], height: float) -> list[str]:
    """Return the labels below a chart of ``height`` pixels."""
    parts = []
    for position, text, wide_only in ticks:
        anchor = "start" if position < 0.04 else "end" if position > 0.96 else "middle"
        parts.append(render_text(svg_percent(position), height + 17, text, "wide" if wide_only else "", anchor))
    return parts


def time_ticks(first: int, last: int) -> list[Tick]:
    """Return ticks between two times (ms since 1970), at round hours and days of local time."""
    if last <= first:
        return [Tick(0.5, _format_tick_time(datetime.fromtimestamp(first / 1000), 1, one=True))]
    start, length = datetime.fromtimestamp(first / 1000), (last - first) / 1000
    step = next((step for step in _TIME_STEPS if length / step <= 8), _TIME_STEPS[-1])
    midnight = start.replace(hour=0, minute=0, second=0, microsecond=0)
    at = midnight
    if step < 86400:
        at += timedelta(seconds=math.ceil((start - midnight).total_seconds() / step) * step)
    ticks: list[tuple[float, str]] = []
    day = None
    while (position := (at.timestamp() - first / 1000) / length) <= 1 and len(ticks) < 100:
        if position >= 0:
            ticks.append(
                (position, _format_tick_time(at, step, one=step < 86400 and day != at.date() and length > 86400))
            )
            day = at.date()
        at += timedelta(seconds=step)
    return fit_ticks(ticks) if ticks else [Tick(0.0, _format_tick_time(start, 1, one=True))]


def _format_tick_time(at: datetime, step: int, one: bool = False) -> str:
    if step >= 86400 * 300:
        return f"{at:%Y}"
    if step >= 86400 * 28:
        return f"{at:%b %Y}"
    day = f"{at.day} {at:%b}"
    if step >= 86400:
        return day
    clock = f"{at:%H:%M:%S}" if step < 60 else f"{at:%H:%M}"
    return f"{day} {clock}" if one else clock
