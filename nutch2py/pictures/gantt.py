"""Jobs over time: a lane for each kind, a bar for each job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from nutch2py.pictures.axes import below, times
from nutch2py.pictures.picture import Picture, Table, canvas, label, mark, percent
from nutch2py.pictures.words import cut, moment, span

_LANE = 24
_LANES = 12
_STEPS = 250  # places of a lane; bars of one colour that share a place are drawn once


class Work(NamedTuple):
    """A bar: its lane, from when to when (ms since 1970), its class of colour, and what is told of it."""

    lane: str
    begun: int
    ended: int
    colour: int
    told: str


def gantt(
    title: str,
    works: Sequence[Work],
    none: str,
    legend: Sequence[tuple[int, str]] = (),
    first_lanes: Sequence[str] = (),
) -> Picture:
    """Return the bars of jobs, a lane for each name: those of ``first_lanes`` before the others."""
    if not works:
        return Picture(title, none)
    ordered = sorted(works, key=lambda work: (work.begun, work.ended))
    first, last = ordered[0].begun, max(work.ended for work in ordered)
    length = max(last - first, 1)
    used = dict.fromkeys(work.lane for work in ordered)
    names = list(dict.fromkeys([*(name for name in first_lanes if name in used), *used]))
    lanes = {name: min(number, _LANES - 1) for number, name in enumerate(names)}
    shown = names if len(names) <= _LANES else [*names[: _LANES - 1], "others"]
    height = len(shown) * _LANE
    told = f"{len(ordered):,} jobs from {moment(first)} to {moment(last)}."
    inner = []
    for number, name in enumerate(shown):
        y = number * _LANE
        inner.append(label("-10", y + 16, cut(name, 12), "name", "end"))
        inner.append(f'<line class="grid" x1="0" x2="100%" y1="{y + _LANE}" y2="{y + _LANE}"/>')
    seen = set()
    for work in sorted(ordered, key=lambda work: work.colour):  # trouble is drawn last, above all else
        left, right = (work.begun - first) / length, (work.ended - first) / length
        place = (lanes[work.lane], work.colour, int(left * _STEPS), int(right * _STEPS))
        if place in seen:
            continue
        seen.add(place)
        width = max(right - left, 0.004)
        where = (
            f'x="{percent(min(left, 1 - width))}" width="{percent(width)}" y="{place[0] * _LANE + 5}" '
            f'height="{_LANE - 10}" rx="2"'
        )
        inner.append(mark("rect", where, work.told, f"c{work.colour}"))
    inner += below(times(first, last), height)
    table = Table.thinned(
        ["Job", "Begun", "Took", "What"],
        ordered,
        lambda work: [work.lane, moment(work.begun), span(work.ended - work.begun), work.told],
    )
    return Picture(title, told, canvas(title, told, height, inner, "lanes"), table, legend)
