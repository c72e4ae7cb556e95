"""A batch laid out for fetch tasks: hosts of very different size, each asked by one task, politely."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Sizes = NDArray[np.int64]


class Fetching(NamedTuple):
    """How long a fetch takes, in seconds of the clock, and what its longest task waits for.

    ``hosts``: the longest host alone. ``tasks``: the task with most to do. ``idle``: how much of the tasks' time goes
    by without work, from 0 to 1.
    """

    seconds: float
    hosts: float
    tasks: float
    idle: float


@lru_cache(4)
def host_sizes(pages: int, hosts: int, most: int, seed: int) -> Sizes:
    """Return how many pages of a batch each host has: by Zipf's law, none more than ``most``, about ``pages`` in all.

    What the cap takes from large hosts goes to those that have room, as generate takes the next best.
    """
    weights = 1.0 / np.arange(1, hosts + 1)
    low, high = pages / weights.sum(), float(most * hosts)  # of the first host, if there were no cap
    for _ in range(60):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if np.minimum(middle * weights, most).sum() < pages else (low, middle)
    sizes = np.maximum(np.rint(np.minimum(high * weights, most)), 1).astype(np.int64)
    np.random.default_rng(seed).shuffle(sizes)
    return sizes


def fetching(
    sizes: Sizes, tasks: int, slots: int, *, delay: float, page: float, answer: float, threads: int, seed: int
) -> Fetching:
    """Lay hosts out over ``tasks`` partitions and let each be fetched.

    A partition takes the longest of: its largest host, one page every ``delay`` seconds; its pages at ``page`` CPU
    seconds each in one process; its pages at ``answer`` seconds each, ``threads`` at a time. ``slots``: tasks that run
    at the same time.
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
