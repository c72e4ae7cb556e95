"""The names of the tests are the same in every process: workers that collect different ones run none at all."""

from __future__ import annotations

import os
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.groups import LONG, in_order, is_long

COLLECT = [sys.executable, "-m", "pytest", "-o", "addopts=", "--strict-markers", "-q", "--collect-only"]


@pytest.fixture(scope="module")
def all_names() -> list[str]:
    """Collect all tests in a process that starts later, with another hash seed and time zone; return their ids."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environment |= {"PYTHONHASHSEED": "1", "TZ": "Asia/Tokyo"}
    command = [*COLLECT, "-m", "long or not long", "tests"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [name for name in done.stdout.splitlines() if "::" in name]


def test_long_test_ids_exist(all_names: list[str]) -> None:
    """An unused name in the list would skip nothing, and a test of a new one would not run at all."""
    assert [name for name in LONG if f"tests/{name}" not in all_names] == []


def test_collection_in_another_process_yields_same_test_ids(
    request: pytest.FixtureRequest, all_names: list[str]
) -> None:
    names = [name for name in all_names if not is_long(name)]
    assert len(names) > 5000
    ours = {item.nodeid for item in request.session.items}
    expected: list[Any] = [SimpleNamespace(nodeid=name) for name in names if name in ours]
    if hasattr(request.config, "workerinput"):
        in_order(expected)
    found, collected = ([each.nodeid for each in items] for items in (expected, request.session.items))
    assert sorted(found) == sorted(collected)
    if len(collected) > 5000:  # some alone come in the order in which they were named
        assert found == collected
