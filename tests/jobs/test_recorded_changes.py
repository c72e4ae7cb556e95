"""Comparisons with the recorded crawl skip or change exactly the listed cells."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.jobs import recorded
from tests.jobs.test_recorded_fetch import BIG_CHUNKS, comparable

ROUNDS = (1, 2, 3, 4)
Cells = set[tuple[str, str]]


def touched(path: Path, change: Callable[[recorded.Dump], None]) -> Cells:
    """Return the cells of a dump that a change takes away, adds or makes another."""
    before = recorded.read(path)
    after = copy.deepcopy(before)
    change(after)
    assert after.keys() == before.keys(), "a whole row is skipped"
    return {
        (key, column)
        for key in before
        for column in before[key].keys() | after[key].keys()
        if before[key].get(column) != after[key].get(column)
    }


def dump(recording: Path, number: int, job: str) -> Path:
    return recording / "dumps" / f"round{number}-{job}.jsonl.gz"


@pytest.mark.parametrize("number", ROUNDS)
def test_recorded_parse_changes_are_reproduced(recording: Path, number: int) -> None:
    cells = touched(dump(recording, number, "parse"), recorded.not_of_tika(number))
    assert len({key for key, _ in cells}) == {1: 12, 2: 3, 3: 1, 4: 0}[number]
    assert len(cells) == {1: 59, 2: 10, 3: 21, 4: 0}[number]


@pytest.mark.parametrize("number", ROUNDS)
def test_recorded_generate_changes_are_reproduced(recording: Path, number: int) -> None:
    cells = touched(dump(recording, number, "generate"), recorded.force_refetch(number))
    far_off = {(recorded.FAR_OFF, "f:bid"), (recorded.FAR_OFF, "mk:_gnmrk_")}
    assert cells == (far_off if number > 1 else set())


@pytest.mark.parametrize("number", ROUNDS)
def test_recorded_updatedb_changes_are_reproduced(recording: Path, number: int) -> None:
    before = recorded.read(recorded.dump_before(recording, number, "updatedb"))
    cells = touched(dump(recording, number, "updatedb"), recorded.keep_inlinks(before))
    assert all(column.startswith("il:") and column in before[key] for key, column in cells)
    assert len(cells) == {1: 0, 2: 350, 3: 180, 4: 15}[number]


def test_recorded_index_changes_are_reproduced(recording: Path) -> None:
    cells = touched(recording / "dumps" / "round5-index.jsonl.gz", recorded.leave_out)
    assert cells == {(key, "mk:_idxmrk_") for key in recorded.NOT_INDEXED}


@pytest.mark.parametrize("number", ROUNDS)
def test_recorded_fetch_changes_are_reproduced(recording: Path, number: int) -> None:
    cells = touched(dump(recording, number, "fetch"), comparable)
    texts = {(key, column) for key, column in cells if column == "f:prot"}
    assert len(texts) == {1: 5, 2: 10, 3: 10, 4: 10}[number]
    assert cells - texts == {(BIG_CHUNKS, "f:cnt")}
