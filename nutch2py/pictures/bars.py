"""Horizontal bars: the greatest of many names, each with its name and its number above its bar."""

from __future__ import annotations

from collections.abc import Sequence

from nutch2py.pictures.picture import Picture, Table, canvas, label, mark, percent
from nutch2py.pictures.stacks import Bar
from nutch2py.pictures.words import cut, full, share, short

_ROW = 31
_MOST = 12
_SOME = 7


def bars(
    title: str,
    names: Sequence[str],
    rows: Sequence[Bar],
    none: str,
    most: int = _MOST,
    colours: Sequence[int] = (1, 2, 3, 4),
) -> Picture:
    """Return a bar for each of the greatest rows, of its parts side by side; those behind ``most`` are added up."""
    ordered = sorted((row for row in rows if sum(row.parts) > 0), key=lambda row: (-sum(row.parts), row.name))
    if not ordered:
        return Picture(title, none)
    drawn, rest = ordered[:most], ordered[most:]
    total = sum(sum(row.parts) for row in ordered)
    greatest = sum(drawn[0].parts)
    told = f"{cut(drawn[0].name, 60)} has most, {full(greatest)} ({share(greatest, total)} of what is shown)."
    inner = []
    for number, row in enumerate(drawn):
        top, amount = number * _ROW, sum(row.parts)
        inner.append(label("0", top + 14, cut(row.name, 34), "name"))
        inner.append(label("100%", top + 14, short(amount), anchor="end"))
        inner.append(f'<rect class="track" x="0" width="100%" y="{top + 19}" height="5" rx="2.5"/>')
        at = 0.0
        for place, part in enumerate(row.parts):
            if part > 0:
                length = part / greatest
                where = f'x="{percent(at)}" width="{percent(length)}" y="{top + 19}" height="5" rx="2.5"'
                inner.append(mark("rect", where, f"{row.name}: {full(part)} {names[place]}", f"c{colours[place]}"))
                at += length
    height = len(drawn) * _ROW
    if rest:
        inner.append(label("0", height + 12, f"and {len(rest):,} more with {short(sum(sum(r.parts) for r in rest))}"))
        height += 18
    table = Table.thinned(["", *names], ordered, lambda row: [row.name, *map(full, row.parts)])
    used = [number for number in range(len(names)) if any(row.parts[number] for row in ordered)]
    legend = [(colours[number], names[number]) for number in used] if len(names) > 1 else []
    drawing = canvas(title, told, height, inner, "flush")
    return Picture(title, told, drawing, table, legend, len(drawn) > _SOME)
