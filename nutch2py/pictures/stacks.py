"""Stacked bars, one beside the other: what came of each round. And a histogram, which is bars without gaps."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from nutch2py.pictures.axes import below, levels, rows_of_levels, thinned
from nutch2py.pictures.picture import Picture, Table, canvas, mark, percent
from nutch2py.pictures.words import cut, full, short

_HEIGHT = 150
_BARS = 60


class Bar(NamedTuple):
    """A bar: its name, and its parts from below."""

    name: str
    parts: Sequence[float]


class Bucket(NamedTuple):
    """How many values lie from ``low`` up to ``high``, which is left out; up to any, when ``high`` is infinite."""

    low: float
    high: float
    number: int


def stacks(
    title: str, names: Sequence[str], bars: Sequence[Bar], none: str, colours: Sequence[int] = (1, 2, 3, 4)
) -> Picture:
    """Return stacked bars in the order given. ``names``: what the parts are. Of more than 60, neighbours are added."""
    if not any(any(bar.parts) for bar in bars):
        return Picture(title, none)
    drawn = _joined(bars)
    scale = levels(max(sum(bar.parts) for bar in drawn))
    totals = [sum(bar.parts[number] for bar in bars) for number in range(len(names))]
    listed = ", ".join(f"{full(total)} {name}" for name, total in zip(names, totals, strict=True) if total)
    told = f"{len(bars):,} bars; in all {listed}."
    inner = rows_of_levels(scale, _HEIGHT)
    width = 1 / max(len(drawn), 6)
    gap = width * 0.14
    for place, bar in enumerate(drawn):
        base = float(_HEIGHT)
        for number, part in enumerate(bar.parts):
            if part <= 0:
                continue
            high = _HEIGHT * part / scale[-1]
            base -= high
            where = (
                f'x="{percent(place * width + gap)}" width="{percent(width - 2 * gap)}" y="{base:.1f}" '
                f'height="{max(high - 0.8, 0.8):.1f}"'
            )
            inner.append(mark("rect", where, f"{bar.name}: {full(part)} {names[number]}", f"c{colours[number]}"))
    inner += below(thinned([((place + 0.5) * width, cut(bar.name, 12)) for place, bar in enumerate(drawn)]), _HEIGHT)
    table = Table.thinned(["", *names], bars, lambda bar: [bar.name, *map(full, bar.parts)])
    legend = [(colours[number], name) for number, name in enumerate(names) if totals[number]]
    return Picture(title, told, canvas(title, told, _HEIGHT, inner), table, legend)


def _joined(bars: Sequence[Bar]) -> Sequence[Bar]:
    """Return at most 60 bars: of more, neighbours are one, named by the first of them."""
    if len(bars) <= _BARS:
        return bars
    every = -(-len(bars) // _BARS)
    groups = [bars[begin : begin + every] for begin in range(0, len(bars), every)]
    return [
        Bar(
            group[0].name,
            [sum(parts) for parts in zip(*(bar.parts for bar in group), strict=True)],
        )
        for group in groups
    ]


def histogram(
    title: str, buckets: Sequence[Bucket], none: str, shown: Callable[[float], str] = short, what: str = "pages"
) -> Picture:
    """Return how many values lie in each of some spans, which are drawn equally wide, whatever their lengths.

    Empty ones at either end are left out. ``shown``: the words of a bound.
    """
    filled = [number for number, bucket in enumerate(buckets) if bucket.number]
    if not filled:
        return Picture(title, none)
    drawn = buckets[filled[0] : filled[-1] + 1]
    total = sum(bucket.number for bucket in drawn)
    scale = levels(max(bucket.number for bucket in drawn))
    most = max(drawn, key=lambda bucket: bucket.number)
    told = f"{full(total)} {what}, most of them {_between(most, shown)}: {full(most.number)}."
    inner = rows_of_levels(scale, _HEIGHT)
    slots = max(len(drawn), 4)
    for number, bucket in enumerate(drawn):
        high = _HEIGHT * bucket.number / scale[-1]
        if bucket.number:
            high = max(high, 1.0)
        where = (
            f'x="{percent((number + 0.04) / slots)}" width="{percent(0.92 / slots)}" y="{_HEIGHT - high:.1f}" '
            f'height="{high:.1f}"'
        )
        inner.append(mark("rect", where, f"{_between(bucket, shown)}: {full(bucket.number)} {what}", "c1"))
    bounds = [(number / slots, shown(bucket.low)) for number, bucket in enumerate(drawn)]
    if not math.isinf(drawn[-1].high):
        bounds.append((len(drawn) / slots, shown(drawn[-1].high)))
    inner += below(thinned(bounds), _HEIGHT)
    table = Table.thinned(
        ["From – to below", what], drawn, lambda bucket: [_between(bucket, shown), full(bucket.number)]
    )
    return Picture(title, told, canvas(title, told, _HEIGHT, inner), table)


def _between(bucket: Bucket, shown: Callable[[float], str]) -> str:
    if math.isinf(bucket.high):
        return f"{shown(bucket.low)} and more"
    return f"{shown(bucket.low)} – {shown(bucket.high)}"
