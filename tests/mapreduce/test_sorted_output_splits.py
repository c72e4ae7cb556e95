"""Sorted map output, cut into runs of whole keys for reduce tasks."""

from __future__ import annotations

import random
from io import BytesIO
from itertools import groupby, pairwise

import pytest

from nutch2py.mapreduce.runners.local_runners import find_cuts


def _one_by_one(lines: list[bytes], runs: int) -> list[int]:
    """Return the cuts found by a scan of every line: a run starts with the first key past its share."""
    size, cuts, at = sum(map(len, lines)), [0], 0
    for _, group in groupby(lines, key=lambda line: line.partition(b"\t")[0]):
        if at and at * runs >= size * len(cuts) and len(cuts) < runs:
            cuts.append(at)
        at += sum(map(len, group))
    return [*cuts, size]


@pytest.mark.parametrize("runs", [1, 2, 3, 7])
@pytest.mark.parametrize("longest", [3, 9_000])
def test_runs_start_at_first_key_past_share(runs: int, longest: int) -> None:
    chance = random.Random(runs)
    for _ in range(300):
        lines = sorted(
            b"%d\t%b\n" % (chance.randrange(1, 9), b"v" * chance.randrange(longest))
            for _ in range(chance.randrange(14))
        )
        data = b"".join(lines)
        cuts = find_cuts(BytesIO(data), len(data), runs)
        assert cuts == _one_by_one(lines, runs)
        assert b"".join(data[start:stop] for start, stop in pairwise(cuts)) == data


def test_two_keys_of_equal_size_make_two_runs() -> None:
    assert find_cuts(BytesIO(b"a\t1\nb\t2\n"), 8, 2) == [0, 4, 8]


def test_empty_input_makes_one_run() -> None:
    assert find_cuts(BytesIO(b""), 0, 3) == [0, 0]
