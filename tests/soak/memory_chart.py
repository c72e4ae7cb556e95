"""A soak in a table (CSV) and a picture (SVG)."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path

from tests.soak.memory_verdict import Row

_WIDTH, _HEIGHT, _MARGIN = 640, 120, 40
_DRAWN = {
    "memory": "memory at rest (MB)",
    "peak_crawler": "peak of the crawler (MB)",
    "peak_child": "peak of a parser child (MB)",
    "mapped": "pages of files that are mapped (MB)",
    "handles": "handles at rest",
    "table_megabytes": "table (MB)",
    "seconds": "seconds of the round",
}


def write_csv(rows: Sequence[Row], path: Path) -> None:
    """Write a line for each round."""
    with path.open("w", encoding="utf-8", newline="") as target:
        writer = csv.DictWriter(target, [each.name for each in fields(Row)])
        writer.writeheader()
        for row in rows:
            writer.writerow({name: round(value, 2) for name, value in asdict(row).items()})


def write_svg(rows: Sequence[Row], path: Path) -> None:
    """Draw each quantity over the rounds, from zero."""
    parts = []
    for place, (name, title) in enumerate(_DRAWN.items()):
        values = [float(getattr(row, name)) for row in rows]
        top, most = place * (_HEIGHT + _MARGIN) + _MARGIN, max([*values, 1e-9])
        step = _WIDTH / max(1, len(values) - 1)
        points = " ".join(
            f"{_MARGIN + number * step:.1f},{top + _HEIGHT * (1 - value / most):.1f}"
            for number, value in enumerate(values)
        )
        parts.append(
            f'<text x="{_MARGIN}" y="{top - 6}">{title}: at most {most:,.1f}</text>'
            f'<rect x="{_MARGIN}" y="{top}" width="{_WIDTH}" height="{_HEIGHT}" fill="#f4f4f4"/>'
            f'<polyline points="{points}" fill="none" stroke="#1a56a0" stroke-width="1.5"/>'
        )
    height = len(_DRAWN) * (_HEIGHT + _MARGIN) + _MARGIN
    path.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH + 2 * _MARGIN}" height="{height}" '
        f'font-family="sans-serif" font-size="12">{"".join(parts)}</svg>\n',
        encoding="utf-8",
    )
