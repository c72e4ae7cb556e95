"""Calibration: measures a few jobs of two sizes, and scales all parameters of time in proportion."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from bench import generate, inject, updatedb
from bench.measuring import Measurement

Measure = Callable[[int, Path, str], list[Measurement]]
SIZES = (20_000, 60_000)
_LINKED = 10  # an updatedb of this many times fewer pages takes about as long
_EMBEDDED: Mapping[str, float] = {"inject": 43.3e-6, "generate": 26.0e-6, "updatedb": 369.6e-6}
"""CPU seconds per record in docs/measurements, where these jobs run inline on the embedded table."""
_SIZES_OF_THINGS = (".bytes", ".memory")


def slope(measure: Measure, sizes: tuple[int, int]) -> float:
    """Return the CPU seconds of one more row, by two sizes, which excludes the fixed cost of a run."""
    costs = []
    for size in sizes:
        with tempfile.TemporaryDirectory(prefix="nutch2py-bench-") as folder:
            costs.append(measure(size, Path(folder), "inline")[0].cost.cpu)
    return (costs[1] - costs[0]) / (sizes[1] - sizes[0])


def machine_factor(slopes: Mapping[str, float]) -> float:
    """Return the CPU time of this machine relative to that of the parameters, by the median job."""
    return statistics.median(slopes[name] / _EMBEDDED[name] for name in slopes)


def calibrated(parameters: Mapping[str, float], sizes: tuple[int, int] = SIZES) -> dict[str, float]:
    """Measure inject, generate and updatedb here, and return all parameters of time in proportion."""
    few = sizes[0] // _LINKED, sizes[1] // _LINKED
    slopes = {
        "inject": slope(inject.measure, sizes),
        "generate": slope(generate.measure, sizes),
        "updatedb": slope(updatedb.measure, few),
    }
    factor = machine_factor(slopes)
    return {name: value if name.endswith(_SIZES_OF_THINGS) else value * factor for name, value in parameters.items()}
