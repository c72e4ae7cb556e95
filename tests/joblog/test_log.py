"""The job log: every job has its entry, who died is seen, and nothing that goes wrong with it fails a job."""

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

from nutch2py import Crawl, reporting
from nutch2py.conf import Configuration
from nutch2py.errors import InputError, LockedError, NutchError, StoreError, UnknownBatchError
from nutch2py.joblog import ledger, stored
from nutch2py.joblog.entry import JobEntry, JobState
from nutch2py.joblog.stored import PREFIX, SILENT_LEASES, Stored, encode, forget_old, key_of, read_entries
from nutch2py.jobs import works
from nutch2py.jobs.beginning import begin
from nutch2py.mapreduce.driver import JobResult
from nutch2py.mapreduce.steps import ACCOUNT
from nutch2py.table import DataStore, KeyRange, open_store, prefix_range
from nutch2py.table.clock import now_ms
from nutch2py.webpage import BatchEntry, WebPage
from tests.jobs.beside import wait_for
from tests.jobs.clocks import HOUR, Machine
from tests.jobs.crawl import properties, seeds, site
from tests.kills import strike

SECRET = "s3cret-of-solr"


@pytest.fixture
def conf(tmp_path: Path) -> Configuration:
    """Give a configuration whose crawl has its tables, empty."""
    conf = Configuration.load(overrides={"storage.data.store": f"embedded:{tmp_path / 'crawldata'}"})
    for record in (WebPage, BatchEntry):
        open_store(conf, record).create()
    return conf


@pytest.fixture
def store(conf: Configuration) -> DataStore[BatchEntry]:
    return open_store(conf, BatchEntry)


def entries(conf: Configuration, limit: int = 100) -> list[JobEntry]:
    return read_entries(open_store(conf, BatchEntry), limit)


def an_entry(number: int, **changes: Any) -> Stored:
    """Return the entry of a job that ended at once; of a machine that is not this one."""
    entry = JobEntry(
        f"{number:013d}-abcdef", "inject", "", "", JobState.FINISHED, number, number, number, "far", 1, "me"
    )
    token = changes.pop("token", "")
    return Stored(entry=replace(entry, **changes), token=token, machine="another", started="1")


def put(store: DataStore[BatchEntry], *rows: Stored) -> None:
    with store.batch() as batch:
        for row in rows:
            batch.put(key_of(row.entry.id), encode(row))


def test_every_job_of_a_crawl_has_its_entry(tmp_path: Path) -> None:
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
        assert (by_name["inject"].done, by_name["parse"].done) == (20, 20)
        assert all(each.begun <= (each.ended or 0) <= each.seen + 1000 and each.pid == os.getpid() for each in done)
        assert all(each.peak_bytes > 10_000_000 and each.cpu_ms > 0 for each in done)
        assert [each.figures.rows for each in reversed(done) if each.figures] == [*[20] * 4, *[38] * 6]
        last = done[0].figures
        assert last is not None
        assert last.status == crawl.figures().status  # type: ignore[union-attr]
        assert crawl.job(found[3].id) == found[3]
        assert crawl.jobs(limit=2, before=found[3].id) == found[4:6]


def test_a_running_job_is_seen_with_its_rows(conf: Configuration, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "_RENEWAL", 0.01)
    rows = 0
    with begin(conf, works.INJECT):
        account = ACCOUNT.get()
        assert account is not None
        account.step_begins(lambda: rows, 10, lambda: ["1 queues, 1 active, errors: 2 timeout\ud800" * 99] * 99)
        wait_for(lambda: any(each.notes for each in entries(conf)))
        (at_work,) = entries(conf)
        assert (len(at_work.notes), len(at_work.notes[0])) == (16, 500)
        assert at_work.notes[0].startswith("1 queues, 1 active, errors: 2 timeout")
        rows = 7
        wait_for(lambda: [(each.state, each.done, each.expected) for each in entries(conf)] == [("running", 7, 10)])
        account.step_is_over()
        wait_for(lambda: entries(conf)[0].notes == ())
        account.step_ends({"injector": {"urls_new": 7}})
        account.step_ends({"injector": {"urls_new": 1}})
        wait_for(lambda: entries(conf)[0].counters == {"injector": {"urls_new": 8}})
        assert entries(conf)[0].ended is None
    (entry,) = entries(conf)
    assert (entry.state, entry.done, entry.expected) == (JobState.FINISHED, 7, 10)
    assert ACCOUNT.get() is None


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


def test_a_running_fetch_says_how_its_queues_are(conf: Configuration, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "_RENEWAL", 0.05)
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
        (SystemExit(143), "stopped", 143, "ended from outside"),
        (ValueError(f"a login {SECRET}"), "failed", 255, "ValueError: a login ********"),
        (OSError(28, "full", "disk"), "failed", 4, "no space is left for disk: free some space; then run it again"),
    ],
)
def test_how_a_job_ended(conf: Configuration, error: BaseException, state: str, code: int, message: str) -> None:
    conf.set("solr.auth.password", SECRET)
    with pytest.raises(type(error)), begin(conf, works.INJECT):
        raise error
    (entry,) = entries(conf)
    assert (entry.state, entry.exit_code, entry.message) == (state, code, message)


def test_a_job_that_is_refused_has_an_entry_and_two_at_once_have_two(conf: Configuration) -> None:
    with begin(conf, works.INJECT), begin(conf, works.DEDUP):
        with pytest.raises(LockedError), begin(conf, works.INJECT):
            pass
        wait_for(lambda: len(entries(conf)) == 3)
        told = {(each.job, each.state, each.exit_code) for each in entries(conf)}
        assert told == {("inject", "running", None), ("dedup", "running", None), ("inject", "failed", 6)}
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
def test_a_job_that_its_settings_refuse_has_an_entry(conf: Configuration, job: str, name: str, value: str) -> None:
    with Crawl(conf, {name: value}) as crawl:
        with pytest.raises(NutchError) as refused:
            getattr(crawl, job)(batch_id="b")
        (entry, *_) = crawl.jobs()
    assert (entry.job, entry.batch_id, entry.state) == (job, "b", JobState.FAILED)
    assert (entry.message, entry.exit_code) == (" ".join(str(refused.value).split()), refused.value.exit_code)


def test_two_drivers_at_once(conf: Configuration) -> None:
    def work(number: int) -> None:
        for turn in range(5):
            with begin(conf, works.FETCH, batch_id=f"{number}-{turn}"):
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
from nutch2py.conf import Configuration
from nutch2py.jobs import works
from nutch2py.jobs.beginning import begin
conf = Configuration.load(overrides={"storage.data.store": sys.argv[1]})
with begin(conf, works.INJECT):
    print("at work", flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize(("number", "state"), [(signal.SIGKILL, "killed"), (signal.SIGTERM, "stopped")])
def test_a_process_that_was_ended(conf: Configuration, number: signal.Signals, state: str) -> None:
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
    assert (entry.ended is None) == (state == "killed")
    with begin(conf, works.INJECT):  # its lock is free, and its entry stays what it is
        wait_for(lambda: [each.state for each in entries(conf)] == [JobState.RUNNING, state])


class TestAJobElsewhere:
    def test_lives_while_it_has_its_lock_and_was_heard_of(
        self, conf: Configuration, store: DataStore[BatchEntry]
    ) -> None:
        now, silent = now_ms(), int(SILENT_LEASES * 60_000)
        put(
            store,
            an_entry(1, state=JobState.RUNNING, seen=now, ended=None),
            an_entry(2, state=JobState.RUNNING, seen=now - silent - 1000, ended=None),
            an_entry(3, state=JobState.RUNNING, seen=now + HOUR, ended=None),  # its clock is ahead
            an_entry(4, state=JobState.RUNNING, seen=now, ended=None, token="gone"),
        )
        assert [each.state for each in entries(conf)] == ["killed", "running", "killed", "running"]

    def test_is_not_killed_when_it_ends_while_it_is_read(
        self, conf: Configuration, store: DataStore[BatchEntry], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        running = an_entry(1, state=JobState.RUNNING, seen=now_ms(), ended=None, token="gone")
        put(store, running)
        tokens = stored._tokens

        def ends(store: DataStore[BatchEntry]) -> Any:
            put(store, with_fields(running, entry=replace(running.entry, state=JobState.FINISHED)))
            return tokens(store)

        monkeypatch.setattr(stored, "_tokens", ends)
        assert [each.state for each in entries(conf)] == [JobState.FINISHED]


def test_a_lock_row_that_is_damaged_kills_nobody(conf: Configuration, store: DataStore[BatchEntry]) -> None:
    put(store, an_entry(1, state=JobState.RUNNING, seen=now_ms(), ended=None, token="t"))
    assert store.compare_and_set(stored.LOCKS, BatchEntry.data, None, b"no row of ours")
    assert [each.state for each in entries(conf)] == [JobState.RUNNING]


def test_it_is_bounded(conf: Configuration, store: DataStore[BatchEntry]) -> None:
    put(store, *(an_entry(number) for number in range(1, 21)))
    assert forget_old(store, 15) == 5
    assert [each.begun for each in entries(conf)] == [*range(20, 5, -1)]
    conf.set("joblog.keep", 4)
    with begin(conf, works.INJECT):
        pass
    assert [each.begun for each in entries(conf)][1:] == [20, 19, 18]
    conf.set("joblog.keep", 0)
    with begin(conf, works.INJECT):
        pass
    assert len(entries(conf)) == 4


def test_a_clock_that_goes_back_keeps_the_order(conf: Configuration, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch)
    for number, ahead in enumerate((HOUR, 0, -HOUR)):
        machine.set_ahead(ahead)
        with begin(conf, works.FETCH, batch_id=str(number)):
            pass
    found = entries(conf)
    assert [each.batch_id for each in found] == ["2", "1", "0"]
    assert all(each.ended is not None and each.ended >= each.begun for each in found)


HOSTILE: list[bytes] = [
    b"no JSON",
    b"[" * 100_000,
    b'{"entry": 1}',
    b'{"entry": {"id": "x"}}',
    b"\xff\xfe",
    encode(an_entry(7)).data or b"",  # in the place of another one
    (encode(an_entry(6)).data or b"").replace(b'"finished"', b'"resting"'),
    (encode(an_entry(6)).data or b"").replace(b'"begun":6', b'"begun":"six"'),
]


@pytest.mark.parametrize("data", HOSTILE)
def test_bytes_of_another_program_are_left_out(conf: Configuration, store: DataStore[BatchEntry], data: bytes) -> None:
    put(store, an_entry(5))
    strange = BatchEntry()
    strange.data = data
    with store.batch() as batch:
        batch.put(key_of(an_entry(6).entry.id), strange)
        batch.put(f"{PREFIX}\U0001f577", strange)
    with begin(conf, works.INJECT):
        pass
    assert [each.begun for each in entries(conf)][1:] == [5]
    assert stored.read_entry(store, an_entry(6).entry.id) is None


@pytest.mark.parametrize("strange", ["", "\udcff", "a" * 5000, "../x", "0000000000005-abcdef\x00"])
def test_an_id_that_is_none(conf: Configuration, store: DataStore[BatchEntry], strange: str) -> None:
    put(store, an_entry(5))
    assert stored.read_entry(store, strange) is None
    with pytest.raises(InputError, match="is not the id of a job"):
        read_entries(store, 1, strange)


def test_letters_that_are_no_utf_8(conf: Configuration) -> None:
    with pytest.raises(StoreError), begin(conf, works.INJECT):
        raise StoreError("of \udcff")
    assert [each.message for each in entries(conf)] == ["of \\udcff"]


def _fails(*_: object, **__: object) -> Any:
    raise RuntimeError("of the log")


@pytest.mark.parametrize(
    "breaks",
    [
        lambda patch: patch.setattr(ledger, "open_store", _fails),
        lambda patch: patch.setattr(ledger, "encode", _fails),
        lambda patch: patch.setattr(ledger, "forget_old", _fails),
        lambda patch: patch.setattr("nutch2py.jobs.beginning.snapshot", _fails),
    ],
    ids=["opening", "writing", "forgetting", "figures"],
)
def test_a_log_that_fails_fails_no_job(
    conf: Configuration, monkeypatch: pytest.MonkeyPatch, breaks: Callable[[pytest.MonkeyPatch], None]
) -> None:
    conf.set("joblog.keep", 10)
    breaks(monkeypatch)
    warnings: list[str] = []
    with reporting.reporting_to(reporting.Reporter(warning=warnings.append)):
        with begin(conf, works.INJECT):
            pass
        with pytest.raises(StoreError, match="of the job"), begin(conf, works.INJECT):
            raise StoreError("of the job")
    assert warnings == ["the job log cannot be written (of the log)"] * 2


def test_reading_takes_no_lock_and_makes_nothing(tmp_path: Path) -> None:
    conf = Configuration.load(overrides={"storage.data.store": f"embedded:{tmp_path}"})
    open_store(conf, WebPage).create()
    with Crawl(conf) as crawl:
        assert (crawl.jobs(), crawl.job("0000000000005-abcdef")) == ([], None)
        with begin(conf, works.reader("readdb")):
            pass
    assert not open_store(conf, BatchEntry).exists()


def test_who_reads_many_rows_has_an_entry(conf: Configuration) -> None:
    with begin(conf, works.reader("readdb")):
        wait_for(lambda: [each.state for each in entries(conf)] == [JobState.RUNNING])
    assert [(each.job, each.state) for each in entries(conf)] == [("readdb", JobState.FINISHED)]
    with begin(conf, works.READ):
        pass
    assert len(entries(conf)) == 1


def test_nothing_else_of_the_derived_table_is_touched(conf: Configuration, store: DataStore[BatchEntry]) -> None:
    with begin(conf, works.INJECT):
        pass
    log = [*store.keys(prefix_range(PREFIX))]
    assert sorted(store.keys(KeyRange())) == [*log, stored.LOCKS]
