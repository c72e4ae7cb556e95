"""The job log: every job has an entry, dead jobs are detected, and errors of the log fail no job."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace as with_fields

from nutch2py import Crawl
from nutch2py.conf.configuration import Configuration
from nutch2py.errors import InputError, LockedError, NutchError, StoreError, UnknownBatchError
from nutch2py.joblog import job_log_store, job_recorder
from nutch2py.joblog.job_entry import JobEntry, JobState, StoredJobEntry
from nutch2py.joblog.job_liveness import SILENT_LEASES
from nutch2py.joblog.job_log_store import KEY_PREFIX, delete_old_entries, encode_entry, entry_key, read_entries
from nutch2py.joblog.table_stats import ScoreSummary, TableStats
from nutch2py.jobs.job_context import open_job
from nutch2py.jobs.locking import lock_scopes
from nutch2py.mapreduce.driver import JobResult
from nutch2py.mapreduce.step_events import STEP_LISTENER
from nutch2py.records.webpage import DerivedRow, WebPage
from nutch2py.support import reporting
from nutch2py.support.clock import now_ms
from nutch2py.table import DataStore, KeyRange, open_store, prefix_range
from tests.counted_kills import strike
from tests.jobs.clocks import HOUR, Machine
from tests.jobs.concurrent_commands import wait_for
from tests.jobs.crawl import properties, seeds, site

SECRET = "s3cret-of-solr"


@pytest.fixture
def conf(tmp_path: Path) -> Configuration:
    """Return a configuration of a crawl with empty tables."""
    conf = Configuration.load(overrides={"storage.data.store": f"embedded:{tmp_path / 'crawldata'}"})
    for record in (WebPage, DerivedRow):
        open_store(conf, record).create()
    return conf


@pytest.fixture
def store(conf: Configuration) -> DataStore[DerivedRow]:
    return open_store(conf, DerivedRow)


def entries(conf: Configuration, limit: int = 100) -> list[JobEntry]:
    return read_entries(open_store(conf, DerivedRow), limit)


def an_entry(number: int, **changes: Any) -> StoredJobEntry:
    """Return the entry of a job that ended at once; of a machine that is not this one."""
    entry = JobEntry(
        f"{number:013d}-abcdef", "inject", "", "", JobState.FINISHED, number, number, number, "far", 1, "me"
    )
    token = changes.pop("token", "")
    return StoredJobEntry(entry=replace(entry, **changes), token=token, machine="another", started="1")


def put(store: DataStore[DerivedRow], *rows: StoredJobEntry) -> None:
    with store.batch() as batch:
        for row in rows:
            batch.put(entry_key(row.entry.id), encode_entry(row))


def test_every_job_has_a_log_entry(tmp_path: Path) -> None:
    with site() as url, Crawl(f"embedded:{tmp_path / 'crawldata'}", properties(), crawl_id="c") as crawl:
        crawl.inject(seeds(url))
        batch = crawl.generate(batch_id="b").batch_id
        results = [job(batch) for job in (crawl.fetch, crawl.parse, crawl.updatedb, crawl.index)]
        crawl.pagerank()
        crawl.dedup()
        crawl.clean()
        crawl.updatehostdb()
        with pytest.raises(UnknownBatchError):
            crawl.fetch("none")
        found = crawl.jobs()
        assert [each.job for each in reversed(found)] == [
            *("inject", "generate", "fetch", "parse", "updatedb", "index"),
            *("pagerank", "dedup", "clean", "updatehostdb", "fetch"),
        ]
        failed, done = found[0], found[1:]
        assert (failed.state, failed.batch_id, failed.exit_code) == (JobState.FAILED, "none", 1)
        assert failed.message.startswith("there is no batch none to work on")
        assert {(each.state, each.exit_code, each.message, each.crawl_id) for each in done} == {
            (JobState.FINISHED, 0, "", "c")
        }
        assert [each.batch_id for each in reversed(done)] == ["", *["b"] * 5, *[""] * 4]
        by_name = {each.job: each for each in done}
        for name, result in zip(("fetch", "parse", "updatedb", "index"), results, strict=True):
            assert isinstance(result, JobResult)
            for group, names in result.counters.items():
                assert names.items() <= by_name[name].counters[group].items(), (name, group)
        assert (by_name["inject"].rows, by_name["parse"].rows) == (20, 20)
        assert all(
            each.start_time <= (each.finish_time or 0) <= each.last_seen + 1000 and each.pid == os.getpid()
            for each in done
        )
        assert all(each.peak_bytes > 10_000_000 and each.cpu_ms > 0 for each in done)
        assert [each.table_stats.rows for each in reversed(done) if each.table_stats] == [*[20] * 4, *[38] * 6]
        last = done[0].table_stats
        assert last is not None
        assert last.status == crawl.table_stats().status  # type: ignore[union-attr]
        assert crawl.job(found[3].id) == found[3]
        assert crawl.jobs(limit=2, before=found[3].id) == found[4:6]


def test_running_job_shows_processed_rows(conf: Configuration, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_recorder, "MIN_UPDATE_INTERVAL", 0.01)
    rows = 0
    with open_job(conf, lock_scopes.INJECT):
        account = STEP_LISTENER.get()
        assert account is not None
        queue = {"waiting": 3, "active": 1, "delay_ms": 5000, "next_request": 9, "reason": "crawl delay"}
        account.step_started(
            lambda: rows,
            10,
            lambda: ["1 queues, 1 active, errors: 2 timeout\ud800" * 99] * 99,
            get_queues=lambda: [{"queue": f"h{number}.example", **queue, "waiting": number} for number in range(99)],
        )
        wait_for(lambda: any(each.notes for each in entries(conf)))
        (at_work,) = entries(conf)
        assert (len(at_work.notes), len(at_work.notes[0])) == (16, 500)
        assert at_work.notes[0].startswith("1 queues, 1 active, errors: 2 timeout")
        assert [each.queue for each in at_work.queues] == [f"h{number}.example" for number in range(98, 78, -1)]
        rows = 7
        wait_for(lambda: [(each.state, each.rows, each.expected) for each in entries(conf)] == [("running", 7, 10)])
        account.step_closed()
        wait_for(lambda: entries(conf)[0].notes == () == entries(conf)[0].queues)
        account.step_finished({"injector": {"urls_new": 7}})
        account.step_finished({"injector": {"urls_new": 1}})
        wait_for(lambda: entries(conf)[0].counters == {"injector": {"urls_new": 8}})
        assert entries(conf)[0].finish_time is None
    (entry,) = entries(conf)
    assert (entry.state, entry.rows, entry.expected) == (JobState.FINISHED, 7, 10)
    assert STEP_LISTENER.get() is None


class _Held(BaseHTTPRequestHandler):
    """Answers when it is let go."""

    def do_GET(self) -> None:
        """Answer."""
        assert isinstance(self.server, _HeldServer)
        self.server.asked.set()
        self.server.let_go.wait(60)
        self.send_response(404)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


class _HeldServer(ThreadingHTTPServer):
    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Held)
        self.asked, self.let_go = threading.Event(), threading.Event()


def test_running_fetch_shows_queues(conf: Configuration, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_recorder, "MIN_UPDATE_INTERVAL", 0.05)
    with _HeldServer() as server, Crawl(conf, properties()) as crawl, ThreadPoolExecutor(2) as pool:
        pool.submit(server.serve_forever, 0.05)
        crawl.inject([f"http://127.0.0.1:{server.server_address[1]}/"])
        batch = crawl.generate().batch_id
        fetching = pool.submit(crawl.fetch, batch)
        assert server.asked.wait(60)
        wait_for(lambda: "1 queues, 1 active" in " ".join(entries(conf)[0].notes))
        server.let_go.set()
        fetching.result(60)
        assert (entries(conf)[0].job, entries(conf)[0].notes) == ("fetch", ())
        server.shutdown()


@pytest.mark.parametrize(
    ("error", "state", "code", "message"),
    [
        (StoreError("it is\ngone"), "failed", 4, "it is gone"),
        (KeyboardInterrupt(), "stopped", 130, "interrupted"),
        (SystemExit(143), "stopped", 143, "terminated"),
        (ValueError(f"a login {SECRET}"), "failed", 255, "ValueError: a login ********"),
        (OSError(28, "full", "disk"), "failed", 4, "no space is left for disk: free some space; then run it again"),
    ],
)
def test_finished_job_shows_result(
    conf: Configuration, error: BaseException, state: str, code: int, message: str
) -> None:
    conf.set("solr.auth.password", SECRET)
    with pytest.raises(type(error)), open_job(conf, lock_scopes.INJECT):
        raise error
    (entry,) = entries(conf)
    assert (entry.state, entry.exit_code, entry.message) == (state, code, message)


def test_rejected_job_has_entry_and_concurrent_jobs_have_two(conf: Configuration) -> None:
    with open_job(conf, lock_scopes.INJECT), open_job(conf, lock_scopes.DEDUP):
        with pytest.raises(LockedError), open_job(conf, lock_scopes.INJECT):
            pass
        wait_for(lambda: len(entries(conf)) == 3)
        states = {(each.job, each.state, each.exit_code) for each in entries(conf)}
        assert states == {("inject", "running", None), ("dedup", "running", None), ("inject", "failed", 6)}
    assert [each.state for each in entries(conf)].count(JobState.FINISHED) == 2


@pytest.mark.parametrize(
    ("job", "name", "value"),
    [
        ("fetch", "http.agent.name", ""),
        ("generate", "generate.max.count", "0"),
        ("generate", "db.fetch.schedule.class", "none"),
        ("updatedb", "db.fetch.schedule.class", "none"),
    ],
)
def test_job_rejected_by_settings_has_entry(conf: Configuration, job: str, name: str, value: str) -> None:
    with Crawl(conf, {name: value}) as crawl:
        with pytest.raises(NutchError) as raised:
            getattr(crawl, job)(batch_id="b")
        (entry, *_) = crawl.jobs()
    assert (entry.job, entry.batch_id, entry.state) == (job, "b", JobState.FAILED)
    assert (entry.message, entry.exit_code) == (" ".join(str(raised.value).split()), raised.value.exit_code)


def test_two_concurrent_drivers_log_separately(conf: Configuration) -> None:
    def work(number: int) -> None:
        for turn in range(5):
            with open_job(conf, lock_scopes.FETCH, batch_id=f"{number}-{turn}"):
                pass

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = entries(conf)
    assert {each.batch_id for each in found} == {f"{number}-{turn}" for number in range(4) for turn in range(5)}
    assert {each.state for each in found} == {JobState.FINISHED}
    assert [each.id for each in found] == sorted((each.id for each in found), reverse=True)


_DRIVER = """
import sys
from nutch2py.conf.configuration import Configuration
from nutch2py.jobs.locking import lock_scopes
from nutch2py.joblog.table_stats import ScoreSummary, TableStats
from nutch2py.jobs.job_context import open_job
conf = Configuration.load(overrides={"storage.data.store": sys.argv[1]})
with open_job(conf, lock_scopes.INJECT):
    print("at work", flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize(("number", "state"), [(signal.SIGKILL, "killed"), (signal.SIGTERM, "stopped")])
def test_killed_process_is_shown_as_ended(conf: Configuration, number: signal.Signals, state: str) -> None:
    where = conf.get_trimmed("storage.data.store")
    with subprocess.Popen(
        [sys.executable, "-c", _DRIVER, where], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as driver:
        assert driver.stdout is not None
        assert driver.stdout.readline() == b"at work\n"
        wait_for(lambda: [each.state for each in entries(conf)] == [JobState.RUNNING])
        assert strike(driver, number)
    (entry,) = entries(conf)
    assert (entry.state, entry.pid) == (state, driver.pid)
    assert (entry.finish_time is None) == (state == "killed")
    with open_job(conf, lock_scopes.INJECT):  # its lock is free, and its entry stays what it is
        wait_for(lambda: [each.state for each in entries(conf)] == [JobState.RUNNING, state])


class TestAJobElsewhere:
    def test_with_lock_and_recent_heartbeat_is_running(self, conf: Configuration, store: DataStore[DerivedRow]) -> None:
        now, silent = now_ms(), int(SILENT_LEASES * 60_000)
        put(
            store,
            an_entry(1, state=JobState.RUNNING, last_seen=now, finish_time=None),
            an_entry(2, state=JobState.RUNNING, last_seen=now - silent - 1000, finish_time=None),
            an_entry(3, state=JobState.RUNNING, last_seen=now + HOUR, finish_time=None),  # its clock is ahead
            an_entry(4, state=JobState.RUNNING, last_seen=now, finish_time=None, token="gone"),
        )
        assert [each.state for each in entries(conf)] == ["killed", "running", "killed", "running"]

    def test_ending_while_read_is_not_shown_as_killed(
        self, conf: Configuration, store: DataStore[DerivedRow], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        running = an_entry(1, state=JobState.RUNNING, last_seen=now_ms(), finish_time=None, token="gone")
        put(store, running)
        tokens = job_log_store.read_held_tokens

        def ends(store: DataStore[DerivedRow]) -> Any:
            put(store, with_fields(running, entry=replace(running.entry, state=JobState.FINISHED)))
            return tokens(store)

        monkeypatch.setattr(job_log_store, "read_held_tokens", ends)
        assert [each.state for each in entries(conf)] == [JobState.FINISHED]


def test_damaged_lock_row_marks_no_job_killed(conf: Configuration, store: DataStore[DerivedRow]) -> None:
    put(store, an_entry(1, state=JobState.RUNNING, last_seen=now_ms(), finish_time=None, token="t"))
    assert store.compare_and_set(job_log_store.LOCKS_KEY, DerivedRow.data, None, b"no row of ours")
    assert [each.state for each in entries(conf)] == [JobState.RUNNING]


def test_log_size_is_bounded(conf: Configuration, store: DataStore[DerivedRow]) -> None:
    put(store, *(an_entry(number) for number in range(1, 21)))
    assert delete_old_entries(store, 15) == 5
    assert [each.start_time for each in entries(conf)] == [*range(20, 5, -1)]
    conf.set("joblog.keep", 4)
    with open_job(conf, lock_scopes.INJECT):
        pass
    assert [each.start_time for each in entries(conf)][1:] == [20, 19, 18]
    conf.set("joblog.keep", 0)
    with open_job(conf, lock_scopes.INJECT):
        pass
    assert len(entries(conf)) == 4


def test_clock_set_back_keeps_order(conf: Configuration, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch)
    for number, ahead in enumerate((HOUR, 0, -HOUR)):
        machine.set_ahead(ahead)
        with open_job(conf, lock_scopes.FETCH, batch_id=str(number)):
            pass
    found = entries(conf)
    assert [each.batch_id for each in found] == ["2", "1", "0"]
    assert all(each.finish_time is not None and each.finish_time >= each.start_time for each in found)


HOSTILE: list[bytes] = [
    b"no JSON",
    b"[" * 100_000,
    b'{"entry": 1}',
    b'{"entry": {"id": "x"}}',
    b"\xff\xfe",
    encode_entry(an_entry(7)).data or b"",  # in the place of another one
    (encode_entry(an_entry(6)).data or b"").replace(b'"finished"', b'"resting"'),
    (encode_entry(an_entry(6)).data or b"").replace(b'"start_time":6', b'"start_time":"six"'),
]


@pytest.mark.parametrize("data", HOSTILE)
def test_foreign_entries_are_skipped(conf: Configuration, store: DataStore[DerivedRow], data: bytes) -> None:
    put(store, an_entry(5))
    strange = DerivedRow()
    strange.data = data
    with store.batch() as batch:
        batch.put(entry_key(an_entry(6).entry.id), strange)
        batch.put(f"{KEY_PREFIX}\U0001f577", strange)
    with open_job(conf, lock_scopes.INJECT):
        pass
    assert [each.start_time for each in entries(conf)][1:] == [5]
    assert job_log_store.read_entry(store, an_entry(6).entry.id) is None


def test_entry_of_older_version_is_read(store: DataStore[DerivedRow]) -> None:
    row = DerivedRow()
    row.data = (
        b'{"entry":{"id":"0000000000005-abcdef","job":"fetch","crawl_id":"","batch_id":"b","state":"finished",'
        b'"begun":5,"ended":7,"seen":8,"host":"far","pid":1,"user":"me","exit_code":0,"message":"","done":9,'
        b'"expected":10,"notes":[],"counters":{"figures":{"done":2},"links_left_out":{"x":1},"IndexerStatus":{"refused":3,"added":4}},"cpu_ms":1,"peak_bytes":2,'
        b'"figures":{"made":6,"rows":4,"status":{"seen":4},"score":[0.0,0.5,1.0],"due":1}},'
        b'"token":"t","machine":"another","started":"1","lease":30.0}'
    )
    with store.batch() as batch:
        batch.put(entry_key("0000000000005-abcdef"), row)
    stats = TableStats(6, 4, {"seen": 4}, score=ScoreSummary(0.0, 0.5, 1.0), due=1)
    counters = {"figures": {"done": 2}, "links_skipped": {"x": 1}, "IndexerStatus": {"rejected": 3, "added": 4}}
    assert read_entries(store, 1) == [
        JobEntry(
            "0000000000005-abcdef", "fetch", "", "b", JobState.FINISHED, 5, 7, 8, "far", 1, "me", 0, rows=9,
            expected=10, counters=counters, cpu_ms=1, peak_bytes=2, table_stats=stats,
        )
    ]  # fmt: skip


@pytest.mark.parametrize("strange", ["", "\udcff", "a" * 5000, "../x", "0000000000005-abcdef\x00"])
def test_invalid_job_id_is_rejected(conf: Configuration, store: DataStore[DerivedRow], strange: str) -> None:
    put(store, an_entry(5))
    assert job_log_store.read_entry(store, strange) is None
    with pytest.raises(InputError, match="is not the id of a job"):
        read_entries(store, 1, strange)


def test_invalid_utf_8_is_replaced(conf: Configuration) -> None:
    with pytest.raises(StoreError), open_job(conf, lock_scopes.INJECT):
        raise StoreError("of \udcff")
    assert [each.message for each in entries(conf)] == ["of \\udcff"]


def _fails(*_: object, **__: object) -> Any:
    raise RuntimeError("of the log")


@pytest.mark.parametrize(
    "breaks",
    [
        lambda patch: patch.setattr(job_recorder, "open_store_without_wait", _fails),
        lambda patch: patch.setattr(job_recorder, "encode_entry", _fails),
        lambda patch: patch.setattr(job_recorder, "delete_old_entries", _fails),
        lambda patch: patch.setattr("nutch2py.jobs.job_context.snapshot_table_stats", _fails),
    ],
    ids=["opening", "writing", "forgetting", "figures"],
)
def test_failing_log_does_not_fail_job(
    conf: Configuration, monkeypatch: pytest.MonkeyPatch, breaks: Callable[[pytest.MonkeyPatch], None]
) -> None:
    conf.set("joblog.keep", 10)
    breaks(monkeypatch)
    warnings: list[str] = []
    with reporting.use_reporter(reporting.Reporter(on_warning=warnings.append)):
        with open_job(conf, lock_scopes.INJECT):
            pass
        with pytest.raises(StoreError, match="of the job"), open_job(conf, lock_scopes.INJECT):
            raise StoreError("of the job")
    expected = "cannot write the job log (of the log): the job continues, and nutch2py jobs may not show it"
    assert warnings == [expected] * 2


def test_reading_log_takes_no_lock_and_creates_nothing(tmp_path: Path) -> None:
    conf = Configuration.load(overrides={"storage.data.store": f"embedded:{tmp_path}"})
    open_store(conf, WebPage).create()
    with Crawl(conf) as crawl:
        assert (crawl.jobs(), crawl.job("0000000000005-abcdef")) == ([], None)
        with open_job(conf, lock_scopes.make_reader_scope("readdb")):
            pass
    assert not open_store(conf, DerivedRow).exists()


def test_full_table_reader_has_entry(conf: Configuration) -> None:
    with open_job(conf, lock_scopes.make_reader_scope("readdb")):
        wait_for(lambda: [each.state for each in entries(conf)] == [JobState.RUNNING])
    assert [(each.job, each.state) for each in entries(conf)] == [("readdb", JobState.FINISHED)]
    with open_job(conf, lock_scopes.READ):
        pass
    assert len(entries(conf)) == 1


def test_other_derived_table_rows_are_unchanged(conf: Configuration, store: DataStore[DerivedRow]) -> None:
    with open_job(conf, lock_scopes.INJECT):
        pass
    log = [*store.keys(prefix_range(KEY_PREFIX))]
    assert sorted(store.keys(KeyRange())) == [*log, job_log_store.LOCKS_KEY]
