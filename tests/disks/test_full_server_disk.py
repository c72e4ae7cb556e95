"""The server on a full disk: searches continue, changes are rejected, and what is logged waits until there is space."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from nutch2py.indexer.index_writers import IndexWriters
from nutch2py.records.webpage import WebPage
from nutch2py.rest import http_error
from nutch2py.rest.job_control import job_processes
from nutch2py.search.search_log import search_log_writer
from nutch2py.search.search_log.search_log_store import open_log_store, read_searches
from nutch2py.table import open_store
from nutch2py.url.keys import reverse_url
from tests.disks.small_disk import SmallDisk, can_mount
from tests.indexer.pages import doc
from tests.processes import wait_until
from tests.rest.conftest import Client, running, settings

CHANGES = {
    "job": ("POST", "/api/v1/jobs", {"job": "readdb"}),
    "job of Nutch": ("POST", "/job/create", {"type": "READDB"}),
    "seeds": ("POST", "/api/v1/seeds", {"urls": ["http://a.test/"]}),
    "configuration": ("POST", "/api/v1/configurations", {"id": "x"}),
    "schedule": ("POST", "/api/v1/schedules", {"cron": "30 4 * * *", "job": {"job": "readdb"}}),
}
READS = ("/?q=whale", "/search.json?q=whale", "/api/v1/search?q=whale", "/suggest?q=wh", "/api/v1/jobs", "/crawl")
SEARCHES = 3  # of READS, whose searches are logged


class Place(NamedTuple):
    """A server whose crawl and state are on a small disk."""

    client: Client
    disk: SmallDisk

    def audited(self) -> list[tuple[str, int]]:
        """Return path and status of each line of the audit log; fail for a line that is incomplete."""
        lines = (self.disk.folder / "rest" / "audit.log").read_text().splitlines()
        return [(line["path"], line["status"]) for line in map(json.loads, lines)]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[SmallDisk]:
    if not can_mount("tmpfs", tmp_path):
        pytest.skip("no tmpfs can be mounted here")
    with SmallDisk("tmpfs", tmp_path / "disk") as disk:
        yield disk


@contextmanager
def served(disk: SmallDisk, **more: str) -> Iterator[Place]:
    conf = settings(disk.folder, search_log="true", storage_embedded_map_size=str(1 << 28), **more)
    with IndexWriters(conf) as writers:
        writers.prepare()
        url = "http://h.test/"
        writers.write(doc(reverse_url(url), url=url, host="h.test", title="whale", content="plankton", lang="en"))
        writers.commit()
    store = open_store(conf, WebPage)
    store.create()
    with running(conf) as server:
        yield Place(Client(server), disk)


def test_server_on_full_disk_searches_and_loses_no_entry(
    small_disk: SmallDisk, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(search_log_writer, "RETRY_SECONDS", 0.05)
    monkeypatch.setattr(http_error, "logged_errors", {})
    rounds, expected, said = 6, list[tuple[str, int]](), list[str]()
    with served(small_disk, search_log_requests_per_second="10000") as place:
        conf = place.client.server.app.state.search.conf
        small_disk.leave_free(0)
        for _ in range(rounds):
            for path in READS:
                assert (path, place.client.request("GET", path)[0]) == (path, 200)
            for name, (method, path, body) in CHANGES.items():
                status, answer = place.client.request(method, path, body)
                assert (name, status, str(small_disk.folder) in str(answer)) == (name, 503, False)
                expected.append((path, 503))
        assert len(place.audited()) < len(expected)  # the others wait
        wait_until(lambda: said.append(capfd.readouterr().err) or "the search log" in "".join(said))
        small_disk.free()
        for name, (method, path, body) in CHANGES.items():
            assert (name, place.client.request(method, path, body)[0] in (200, 201)) == (name, True)
            expected.append((path, place.audited()[-1][1]))
        assert place.audited() == expected

        def logged() -> int:
            with closing(open_log_store(conf)) as store:
                return len([*read_searches(store)])

        wait_until(lambda: logged() == rounds * SEARCHES)
    printed = "".join([*said, capfd.readouterr().err])
    for line in ("rest.folder: no space is left", "audit log: no space is left", "audit.log is written again; 0 lines",
                 "cannot write the search log", "the search log is written again; 0 entries"):  # fmt: skip
        assert (line, printed.count(line)) == (line, 1)
    assert printed.count("WARN ") == 5


COMMANDS = {
    "failed": "trap 'exit 143' TERM; until [ -e {gate} ]; do sleep 0.02; done; echo 'nutch2py: it fails' >&2; exit 5",
    "stopped": "trap 'exit 143' TERM; echo ready >{gate}.up; while :; do sleep 0.02; done",
    "killed": "while :; do sleep 0.02; done",
}
"""Commands by the state in which they end."""


def test_jobs_on_full_disk_keep_state_exit_code_and_message(
    small_disk: SmallDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a command that prints its error when the disk is full, and of those that are stopped then."""
    gate = tmp_path / "gate"
    with served(small_disk) as place:
        started = dict[str, str]()
        for state, command in COMMANDS.items():
            shell = ["sh", "-c", command.format(gate=gate)]
            words = [sys.executable, "-ISc", f"import os; os.execvp('sh', {shell!r})"]  # the first keeps the output
            monkeypatch.setattr(job_processes, "job_command", lambda *_, words=words: words)
            started[state] = place.client.start_job(job="readdb")["id"]
        wait_until(lambda: gate.with_name("gate.up").exists())
        small_disk.leave_free(0)
        gate.touch()
        failed = place.client.wait_for_state(started["failed"], "failed", "killed")
        assert (failed["state"], failed.get("exitCode"), failed["message"]) == ("failed", 5, "it fails")
        for action, state in (("stop", "stopped"), ("abort", "killed")):
            assert place.client.request("POST", f"/api/v1/jobs/{started[state]}/{action}")[0] == 200
            place.client.wait_for_state(started[state], state)
        small_disk.free()
        again = Client(place.client.server)
        assert {job["id"]: job["state"] for job in again.get("/api/v1/jobs")} == {v: k for k, v in started.items()}
