"""The table of measurements, as text or Markdown."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from datetime import UTC, datetime

from bench.measuring import Measurement

HEADINGS = (
    "work",
    "records",
    "CPU s",
    "aim",
    "records per CPU s",
    "cost of a record",
    "memory MB",
    "largest process MB",
    "wall s",
)


def as_json(measurements: Sequence[Measurement], command: Sequence[str]) -> str:
    """Return the measurements as JSON, with the command and the machine."""
    return json.dumps(
        {
            "command": list(command),
            "time": datetime.now(UTC).isoformat(timespec="seconds"),
            "python": platform.python_version(),
            "machine": platform.machine(),
            "cores": os.cpu_count(),
            "load": os.getloadavg(),
            "results": [
                {
                    "work": each.work,
                    "records": each.records,
                    "unit": each.unit,
                    "cpu_seconds": round(each.cost.cpu, 3),
                    "servers_cpu_seconds": round(each.servers, 3),
                    "calibration_cpu_seconds": each.calibration,
                    "wall_seconds": round(each.cost.wall, 3),
                    "memory_bytes": each.cost.memory,
                    "largest_process_bytes": each.cost.largest,
                    "aim_cpu_seconds": each.aim,
                    "disk_bytes": each.disk,
                }
                for each in measurements
            ],
        },
        indent=1,
    )


def _cells(measurement: Measurement, smallest: Measurement) -> tuple[str, ...]:
    cost = measurement.cost
    relative = measurement.per_record / smallest.per_record if smallest.per_record else 1.0
    return (
        measurement.work + _beside(measurement),
        f"{measurement.records:,} {measurement.unit}",
        f"{cost.cpu:.1f}",
        "" if measurement.aim is None else f"{measurement.aim:.3g}",
        f"{measurement.records / cost.cpu:,.0f}" if cost.cpu else "",
        f"{measurement.per_record * 1e6:,.1f} µs = {relative:.2f}",
        f"{cost.memory / 1e6:,.0f}",
        f"{cost.largest / 1e6:,.0f}",
        f"{cost.wall:.1f}",
    )


def _beside(measurement: Measurement) -> str:
    """Return the text in brackets after the work."""
    said = [f"servers {measurement.servers:.1f} s of it"] if measurement.servers else []
    if measurement.calibration is not None:
        said.append(f"calibration {measurement.calibration:.2f} s")
    if measurement.disk is not None:
        said.append(f"disk {measurement.disk / 1e6:,.0f} MB")
    return f" ({', '.join(said)})" if said else ""


def table(measurements: Sequence[Measurement], *, markdown: bool = False) -> str:
    """Return the table; ``cost of a record`` is CPU time, and its ratio to the first measurement's."""
    rows = [HEADINGS, *(_cells(each, measurements[0]) for each in measurements)]
    if markdown:
        rows.insert(1, ("---",) * len(HEADINGS))
        return "\n".join(f"| {' | '.join(row)} |" for row in rows)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(f"{cell:<{width}}" if place == 0 else f"{cell:>{width}}" for place, (cell, width) in enumerate(line))
        for line in (list(zip(row, widths, strict=True)) for row in rows)
    )
