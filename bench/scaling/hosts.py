"""Simulates the fetch tasks of a batch: hosts of very different size, each fetched by one task with a delay."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Sizes = NDArray[np.int64]


class Fetching(NamedTuple):
    """Duration of a fetch in seconds of wall time, and its limits.

    ``hosts``: the longest host alone. ``tasks``: the longest task. ``idle``: share of the tasks' time without work,
    from 0 to 1.
    """

    seconds: float
    hosts: float
    tasks: float
    idle: float


@lru_cache(4)
def host_sizes(pages: int, hosts: int, most: int, seed: int) -> Sizes:
    """Return the number of pages of each host in a batch: by Zipf's law, at most ``most``, about ``pages`` in total.

    The excess of large hosts goes to hosts with room, as generate selects the next best.
    """
    weights = 1.0 / np.arange(1, hosts + 1)
    low, high = pages / weights.sum(), float(most * hosts)  # of the first host, without a cap
    for _ in range(60):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if np.minimum(middle * weights, most).sum() < pages else (low, middle)
    sizes = np.maximum(np.rint(np.minimum(high * weights, most)), 1).astype(np.int64)
    np.random.default_rng(seed).shuffle(sizes)
    return sizes


def fetching(
    sizes: Sizes, tasks: int, slots: int, *, delay: float, page: float, answer: float, threads: int, seed: int
) -> Fetching:
    """Distribute hosts over ``tasks`` partitions and simulate the fetch.

    A partition takes the longest of: its largest host, one page every ``delay`` seconds; its pages at ``page`` CPU
    seconds each in one process; its pages at ``answer`` seconds each, ``threads`` concurrently. ``slots``: concurrent
    tasks.
    """
    where = np.random.default_rng(seed + 1).integers(0, tasks, len(sizes))
    pages = np.bincount(where, weights=sizes, minlength=tasks)
    largest = np.zeros(tasks)
    np.maximum.at(largest, where, sizes)
    work = np.maximum(pages * page, pages * answer / threads)
    each = np.maximum(work, largest * delay)
    seconds = float(max(each.max(), each.sum() / slots))
    spent = float(pages.sum() * page)
    return Fetching(
        seconds,
        float(sizes.max() * delay),
        float(work.max()),
        1 - spent / (seconds * min(tasks, slots)) if seconds else 0.0,
    )
