"""Short fuzzing: the seeds of each target, damaged copies of them, and earlier findings."""

from __future__ import annotations

import pytest

from tests.fuzz.regressions import FOUND
from tests.fuzz.running import mutations, smaller, tried, tried_apart
from tests.fuzz.targets import TARGETS, Target

INPUTS = 150
SLOW = {"pdf": 60, "server": 60, "search": 40, "html": 100, "answer": 60}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", TARGETS)
def test_fuzz_target_survives_inputs(name: str) -> None:
    target = TARGETS[name]
    run = target.make()
    for data in (*FOUND.get(name, ()), *mutations(target, SLOW.get(name, INPUTS))):
        assert tried(run, target, data) == "", data


def test_findings_belong_to_a_target() -> None:
    assert set(FOUND) <= set(TARGETS)


def _fail(data: bytes) -> None:
    if b"ab" in data:
        raise KeyError(data)
    if b"die" in data:
        import os

        os._exit(7)


def test_finding_is_reported_and_minimized() -> None:
    target = Target(lambda: _fail, (b"x",), (ValueError,))
    wrong = tried(_fail, target, b"xxabxx")
    assert wrong.startswith("KeyError at tests/fuzz/test_fuzz.py:")
    assert smaller(b"x" * 99 + b"ab" + b"y" * 99, lambda less: tried(_fail, target, less) == wrong) == b"ab"
    assert tried_apart(_fail, target, b"xdie") == "the process ended with 7"
    assert tried_apart(_fail, target, b"x") == ""
