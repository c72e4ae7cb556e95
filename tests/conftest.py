"""Fixtures for every test: a configuration over a folder of its own, the public cases and the recording if present."""

from __future__ import annotations

import gc
import json
import os
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.table.embedded.storage import table_files
from tests.backends.opensearch_server import opensearch_server
from tests.backends.solr_server import solr_server
from tests.failing_disk import library
from tests.groups import (
    SERVICE_GROUPS,
    SERVICE_MODULES,
    GroupScheduling,
    in_order,
    is_long,
    needs_service,
    service_group_of,
)
from tests.mapreduce.hadoop_cluster import hadoop_cluster, package_folder
from tests.processes import StartedProcesses
from tests.services import Service
from tests.site.server import Reply, ScriptedSite
from tests.table.hbase_server import hbase, hbase_server

__all__ = ["hadoop_cluster", "hbase", "hbase_server", "opensearch_server", "package_folder", "solr_server"]

# a failed assertion shows its values in these, too, as it does in a module of tests
pytest.register_assert_rewrite("tests.table.store_suite", "tests.indexer.delivery_suite")

ROOT = Path(__file__).resolve().parent.parent
CASES = Path(os.environ.get("NUTCH2PY_CASES", ROOT.parent / "shared" / "cases"))
MAP_SIZE = str(1 << 30)
"""Bytes of address space a table may take: hundreds of tables are open in one test run."""
RECORDING = Path(os.environ.get("NUTCH2PY_RECORDING", CASES.parent / "recording"))


_started_processes = StartedProcesses()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--service-group``: of the tests marked ``service``, those of one group of servers, or all ``other``."""
    parser.addoption(
        "--service-group", choices=(*SERVICE_GROUPS, "other"), help="run the tests of one group of servers"
    )


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> GroupScheduling:
    """Divide the tests among the workers of ``pytest -n 3``, if there are any."""
    return GroupScheduling(config, log)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import no module of which the inner loop runs no test: they are a fifth of all, and the slowest to import."""
    if config.option.markexpr != "not service" or collection_path.suffix != ".py":
        return None
    module = collection_path.relative_to(ROOT / "tests").with_suffix("").as_posix()
    return module in SERVICE_MODULES or None


def _select(config: pytest.Config, items: list[pytest.Item], is_selected: Callable[[pytest.Item], bool]) -> None:
    """Deselect all other tests, as ``-m`` and ``-k`` do."""
    deselected = [item for item in items if not is_selected(item)]
    items[:] = [item for item in items if is_selected(item)]
    config.hook.pytest_deselected(items=deselected)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Add the marks ``long`` and ``service``, deselect long tests, and sort the tests by their groups for workers.

    Long tests run when ``-m`` names them, whatever else ``-m`` contains.
    """
    for item in items:
        if is_long(item.nodeid):
            item.add_marker("long")
        if needs_service(item):
            item.add_marker("service")
    group = config.option.service_group
    if group:
        _select(config, items, lambda item: service_group_of(item.nodeid) == group)
    if "long" not in config.option.markexpr:
        _select(config, items, lambda item: item.get_closest_marker("long") is None)
    if hasattr(config, "workerinput"):
        in_order(items)


def pytest_collection_finish() -> None:
    """Exclude modules and tests from later garbage collections: they are a million objects, and jobs collect often."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def _unfrozen() -> Iterator[None]:
    """Thaw what :func:`pytest_collection_finish` froze: for tests of what is done with the objects of a program."""
    gc.unfreeze()
    yield
    gc.freeze()


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Name a parameter of packed bytes by its argument: they may hold a clock, and say nothing to a reader."""
    return argname if isinstance(val, bytes) and not val.isascii() else None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Function) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show with a failed test what the real servers that it used said last."""
    report = yield
    if report.failed:
        for server in {id(value): value for value in item.funcargs.values() if isinstance(value, Service)}.values():
            report.sections.extend(server.logs())
    return report


@pytest.fixture(scope="module", autouse=True)
def _no_running_processes() -> Iterator[None]:
    """Fail when a module's tests leave a process running: it takes CPU time from all others."""
    yield
    running = _started_processes.kill_running()
    assert not running, "processes left running:\n" + "\n".join(running)


@pytest.fixture(scope="module", autouse=True)
def _closed_tables() -> Iterator[None]:
    """Close the tables that a module's tests left open: each holds address space, and one run opens hundreds."""
    yield
    table_files.close_all()


@pytest.fixture(scope="session")
def cases() -> Callable[[str], list[dict[str, Any]]]:
    """Give the list of cases of ``NAME.json``, or skip where the cases are not on this machine."""

    def read(name: str) -> list[dict[str, Any]]:
        path = CASES / f"{name}.json"
        if not path.is_file():
            pytest.skip(f"{path.name} is not here: set NUTCH2PY_CASES to the folder of cases")
        found: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
        return found

    return read


@pytest.fixture(scope="session")
def case_fixture() -> Callable[[str], Any]:
    """Give what a case points to as ``fixtures/FILE#KEY``."""

    def read(reference: str) -> Any:
        name, _, key = reference.partition("#")
        return json.loads((CASES / name).read_text(encoding="utf-8"))[key]

    return read


@pytest.fixture(scope="session")
def recording() -> Path:
    """Give the folder of the recorded crawl, or skip."""
    if not RECORDING.is_dir():
        pytest.skip("the recording is not here: set NUTCH2PY_RECORDING to its folder")
    return RECORDING


@pytest.fixture(scope="session")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the library that makes a disk fail (:mod:`tests.failing_disk`)."""
    made = library(tmp_path_factory.mktemp("library"))
    if made is None:
        pytest.skip("there is no C compiler")
    return made


@pytest.fixture
def site() -> Iterator[ScriptedSite]:
    """Serve on the loopback what a test scripts; there is no robots.txt."""
    with ScriptedSite() as running:
        running.on("/robots.txt", Reply(404))
        yield running


@pytest.fixture
def conf(tmp_path: Path) -> Configuration:
    """Give the default configuration with an agent name and a table in the test's own folder."""
    return Configuration.load(
        overrides={
            "storage.data.store": f"embedded:{tmp_path / 'crawldata'}",
            "storage.embedded.map.size": MAP_SIZE,
            "http.agent.name": "nutch-test",
        }
    )
