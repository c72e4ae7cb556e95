"""Tests that run side by side do not get into one another's way: those of a server are with one worker."""

from __future__ import annotations

import subprocess
from collections import Counter

import pytest

from tests.counted_kills import strike
from tests.groups import GROUPS, SERVICE_FIXTURES, SERVICE_MODULES, group_of, servers_of, starts_processes
from tests.import_graph import ROOT
from tests.services import needs_spark

SERVERS = {
    "hadoop_cluster": "hadoop",
    "hbase_server": "hbase",
    "solr_server": "solr",
    "opensearch_server": "solr",  # modules ask both the same
}


def servers(item: pytest.Item) -> list[str]:
    """Return the groups of the servers that a test uses, in the order of the groups."""
    used = servers_of(item)
    spark = ["hbase"] if needs_spark.mark in item.own_markers else []
    return [group for fixture, group in SERVERS.items() if fixture in used] + spark


def test_test_using_server_is_in_group_of_server(request: pytest.FixtureRequest) -> None:
    """With several servers, in the group of the first; a worker starts its own of the others."""
    wrong = {
        (item.nodeid.partition("::")[0], used[0])
        for item in request.session.items
        if (used := servers(item)) and group_of(item.nodeid) != used[0]
    }
    assert wrong == set()


def test_parameter_starting_server_is_marked(request: pytest.FixtureRequest) -> None:
    for item in request.session.items:
        parameters = getattr(getattr(item, "callspec", None), "params", {})
        for name in ("either", "indexed"):
            if name in parameters:
                assert servers(item) == (["solr"] if parameters[name] in ("solr", "elastic") else []), item.nodeid


def test_group_modules_exist_and_are_in_one_group() -> None:
    modules = Counter(module for found in GROUPS.values() for module in found)
    assert [module for module in modules if not (ROOT / "tests" / f"{module}.py").is_file()] == []
    assert set(modules.values()) == {1}
    assert group_of("tests/table/test_hbase.py::test_x[a::b]") == "hbase"
    assert group_of("tests/test_conf.py::test_x") == "tests/test_conf.py"


def test_service_modules_and_fixtures_exist(request: pytest.FixtureRequest) -> None:
    assert [module for module in sorted(SERVICE_MODULES) if not (ROOT / "tests" / f"{module}.py").is_file()] == []
    assert SERVERS.keys() <= SERVICE_FIXTURES
    unmarked = [
        item.nodeid for item in request.session.items if servers(item) and not item.get_closest_marker("service")
    ]
    assert unmarked == []


def test_code_that_starts_or_kills_processes_is_recognized() -> None:
    def starts() -> None:
        subprocess.run(["true"], check=True)

    def kills_in_nested_function() -> None:
        def kill() -> None:
            strike(1)

        kill()

    assert starts_processes(starts)
    assert starts_processes(kills_in_nested_function)
    assert not starts_processes(test_group_modules_exist_and_are_in_one_group)


@pytest.mark.parametrize("runner", ["inline", "local"])
def test_test_of_runner_with_task_processes_is_service_test(request: pytest.FixtureRequest, runner: str) -> None:
    assert (request.node.get_closest_marker("service") is not None) == (runner == "local")
