"""Job locks: which jobs exclude each other, locks of dead processes, and holders on other machines."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError, LockedError, LockLostError, StoreError
from nutch2py.jobs.batches.batch_lists import BatchListStore, BatchState
from nutch2py.jobs.batches.update_journal import JournalWriter
from nutch2py.jobs.inject.inject_job import inject
from nutch2py.jobs.job_context import open_job
from nutch2py.jobs.locking import lock_scopes
from nutch2py.jobs.locking.job_lock import JobLock, hold_job_lock, wait_until_known_alive
from nutch2py.jobs.locking.lock_scopes import LockScope
from nutch2py.jobs.updatedb.updatedb_job import updatedb
from nutch2py.mapreduce import lock_check
from nutch2py.mapreduce.lock_check import CURRENT_LOCK_TOKEN, LOCKS_KEY, LockHolder, encode_holders
from nutch2py.mapreduce.runners.job_dir import create_job_dir
from nutch2py.records.webpage import DerivedRow, WebPage
from nutch2py.table import open_store
from nutch2py.url.keys import reverse_url
from tests.jobs.concurrent_commands import A, B, holders, make_batch, wait_for

JOBS = {
    "inject": lock_scopes.INJECT,
    "generate A": lock_scopes.GENERATE.for_batch(A),
    "generate B": lock_scopes.GENERATE.for_batch(B),
    "fetch A": lock_scopes.FETCH.for_batch(A),
    "fetch B": lock_scopes.FETCH.for_batch(B),
    "fetch with redirects B": lock_scopes.FETCH_REDIRECTS.for_batch(B),
    "fetch -all": lock_scopes.FETCH.for_batch("-all"),
    "parse A": lock_scopes.PARSE.for_batch(A),
    "parse -sitemap B": lock_scopes.PARSE_SITEMAPS.for_batch(B),
    "updatedb A": lock_scopes.UPDATEDB.for_batch(A),
    "updatedb B": lock_scopes.UPDATEDB.for_batch(B),
    "updatedb -all": lock_scopes.UPDATEDB.for_batch("-all"),
    "index A": lock_scopes.INDEX_BATCH.for_batch(A),
    "index B": lock_scopes.INDEX_BATCH.for_batch(B),
    "index -all": lock_scopes.INDEX_ALL.for_batch("-all"),
    "index -scores": lock_scopes.INDEX_SCORES.for_batch("-scores"),
    "clean": lock_scopes.CLEAN,
    "dedup": lock_scopes.DEDUP,
    "pagerank": lock_scopes.PAGERANK,
    "pagerank with scores": lock_scopes.PAGERANK_SCORES,
    "updatehostdb": lock_scopes.UPDATEHOSTDB,
    "importtable": lock_scopes.IMPORTTABLE,
    "copytable": lock_scopes.COPYTABLE,
}
VALUES = {
    "inject",
    "fetch with redirects B",
    "parse -sitemap B",
    "updatedb A",
    "updatedb B",
    "updatedb -all",
    "pagerank with scores",
}
OF_A = {"generate A", "fetch A", "parse A", "updatedb A", "index A"}
OF_B = {"generate B", "fetch B", "fetch with redirects B", "parse -sitemap B", "updatedb B", "index B"}
EVERY = {"fetch -all", "updatedb -all"}


def may_run(one: str, other: str) -> bool:
    """Return whether two jobs may run at the same time, by the rules in docs/operations.md."""
    pair = {one, other}
    if one == other or pair & {"importtable", "copytable"}:
        return False
    choice = {"generate A", "generate B", "fetch with redirects B"}
    ranks = {"pagerank", "pagerank with scores", "index -scores"}
    groups = (VALUES, OF_A | EVERY, OF_B | EVERY, choice, ranks)
    if any(pair <= group for group in groups):
        return False
    whole = {"index -all", "index -scores", "clean"}
    return not (whole & pair and pair <= {"index A", "index B", *whole})


def test_lock_conflict_matrix_is_correct() -> None:
    for one, other in product(JOBS, repeat=2):
        first, second = JOBS[one], JOBS[other]
        met = lock_scopes.scopes_conflict(first.exclusive, first.shared, second.exclusive, second.shared)
        assert met != may_run(one, other), (one, other)


def test_documented_lock_matrix_is_current() -> None:
    text = (Path(__file__).parents[2] / "docs" / "operations.md").read_text()
    rows = text.partition("| job | has alone | shares |\n|---|---|---|\n")[2].partition("\n\n")[0].splitlines()
    documented = [[set(filter(None, cell.strip().split(", "))) for cell in row.split("|")[2:4]] for row in rows]
    declared = [
        work for work in vars(lock_scopes).values() if isinstance(work, LockScope) and work is not lock_scopes.READ
    ]
    assert documented == [
        [{*work.exclusive, *(["its batch"] * work.locks_batch)}, set(work.shared)] for work in declared
    ]
    assert [row.split("|")[1].split()[0] for row in rows] == [work.name for work in declared]


@pytest.fixture
def lists(conf: Configuration) -> BatchListStore:
    open_store(conf, WebPage).create()
    lists = BatchListStore(conf)
    lists.store.create()
    return lists


def set_holders(lists: BatchListStore, wanted: list[LockHolder]) -> None:
    row = lists.store.get(LOCKS_KEY, {DerivedRow.data})
    data = (row.data if row is not None else None) or None
    assert lists.store.compare_and_set(LOCKS_KEY, DerivedRow.data, data, encode_holders(wanted))


def moved(lists: BatchListStore, **changes: Any) -> None:
    """Change the lock of the one running job."""
    (holder,) = holders(lists)
    set_holders(lists, [replace(holder, **changes)])


class TestALock:
    def test_lock_is_held_within_block_and_released(self, conf: Configuration, lists: BatchListStore) -> None:
        with hold_job_lock(conf, lists, lock_scopes.FETCH.for_batch(A)):
            (holder,) = holders(lists)
            assert (holder.job, holder.batch, holder.pid) == ("fetch", A, os.getpid())
            assert CURRENT_LOCK_TOKEN.get() == holder.token
        assert holders(lists) == []
        assert CURRENT_LOCK_TOKEN.get() == ""
        with pytest.raises(KeyError), hold_job_lock(conf, lists, lock_scopes.FETCH.for_batch(A)):
            raise KeyError
        assert holders(lists) == []

    def test_other_thread_is_rejected_with_holder(self, conf: Configuration, lists: BatchListStore) -> None:
        rejected = []

        def second() -> None:
            try:
                with hold_job_lock(conf, lists, lock_scopes.UPDATEDB.for_batch(B)):
                    rejected.append("nobody")
            except LockedError as error:
                rejected.append(f"{error.exit_code} {error}")

        with hold_job_lock(conf, lists, lock_scopes.UPDATEDB.for_batch(A)):
            thread = threading.Thread(target=second)
            thread.start()
            thread.join()
        assert rejected[0].startswith(f"6 updatedb {A} is running on ")
        assert f"(process {os.getpid()})" in rejected[0]
        assert f"and updatedb {B} cannot run at the same time; wait until it has finished" in rejected[0]

    def test_concurrent_requests_succeed_once(self, conf: Configuration, lists: BatchListStore) -> None:
        got: list[int] = []
        barrier, over = threading.Barrier(6), threading.Event()

        def run(number: int) -> None:
            barrier.wait()
            try:
                with hold_job_lock(conf, lists, lock_scopes.INJECT):
                    got.append(number)
                    over.wait(30)
            except LockedError:
                got.append(-1)
                if got.count(-1) == 5:
                    over.set()

        threads = [threading.Thread(target=run, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(got)[:5] == [-1] * 5
        assert max(got) >= 0

    def test_heartbeat_continues(self, lists: BatchListStore) -> None:
        quick = lists.conf.copy()
        quick.set("crawl.lock.lease", "0.15")
        with hold_job_lock(quick, lists, lock_scopes.DEDUP):
            wait_for(lambda: holders(lists)[0].heartbeat > 3)

    def test_heartbeat_continues_after_unexpected_error(
        self, lists: BatchListStore, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        quick = lists.conf.copy()
        quick.set("crawl.lock.lease", "0.15")
        update, failures = JobLock._update_holders, [RuntimeError("out of threads"), OSError("no descriptors")]

        def fail_twice(lock: JobLock, change: Any) -> bool:
            if failures:
                raise failures.pop()
            return update(lock, change)

        monkeypatch.setattr(JobLock, "_update_holders", fail_twice)
        with hold_job_lock(quick, lists, lock_scopes.DEDUP):
            wait_for(lambda: holders(lists)[0].heartbeat > 1)
        warnings = [line for line in capsys.readouterr().err.splitlines() if "heartbeat of this job's lock" in line]
        assert len(warnings) == 1
        assert "OSError('no descriptors')" in warnings[0]

    @pytest.mark.parametrize("lease", ["0", "-1", "nan", "inf", "1e300", "601"])
    def test_lease_must_be_a_duration(self, conf: Configuration, lists: BatchListStore, lease: str) -> None:
        conf.set("crawl.lock.lease", lease)
        with (
            pytest.raises(ConfigurationError, match=r"crawl\.lock\.lease"),
            hold_job_lock(conf, lists, lock_scopes.DEDUP),
        ):
            pass

    @pytest.mark.parametrize("damaged", [b"\xff\x00", b"{}", b"null", b"[{}]", b"[1]", b"-1"])
    def test_unreadable_lock_row_rejects_every_job(
        self, conf: Configuration, lists: BatchListStore, damaged: bytes
    ) -> None:
        """A running job stops writing, too: see check_held."""
        with hold_job_lock(conf, lists, lock_scopes.DEDUP) as lock:
            sound = lists.read_lock_row_and_records()[0]
            assert sound is not None
            if damaged == b"-1":  # a lease that nothing can wait for
                damaged = sound.replace(b'"lease":60.0', b'"lease":-1')
                assert b"-1" in damaged
            assert lists.store.compare_and_set(LOCKS_KEY, DerivedRow.data, sound, damaged)
            lock_check.LAST_SEEN.pop(lock.token)
            with pytest.raises(StoreError, match="run/jobs"):
                lock.check_held()
            with pytest.raises(StoreError, match="run/jobs"), hold_job_lock(conf, lists, lock_scopes.INJECT):
                pass
            assert lists.store.compare_and_set(LOCKS_KEY, DerivedRow.data, damaged, sound)
        assert holders(lists) == []


def test_ending_forked_child_keeps_parent_lock(conf: Configuration, lists: BatchListStore) -> None:
    """As one does that gets the driver's SIGTERM, or fails: it leaves the driver's blocks, too."""
    child = -1
    try:
        with create_job_dir() as folder, hold_job_lock(conf, lists, lock_scopes.DEDUP) as held:
            child = os.fork()
            if not child:
                raise SystemExit(143)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
            assert folder.is_dir()
            assert [holder.token for holder in holders(lists)] == [held.token]
    finally:
        if not child:
            os._exit(7)
    assert not folder.exists()
    assert holders(lists) == []


class TestTheDead:
    @pytest.fixture
    def left(self, conf: Configuration, lists: BatchListStore) -> LockHolder:
        """Give what a job left that died in the middle of an inject, by another process that has ended."""
        with hold_job_lock(conf, lists, lock_scopes.INJECT):
            (holder,) = holders(lists)
        gone = subprocess.Popen([sys.executable, "-c", ""])
        gone.wait()
        holder = replace(holder, pid=gone.pid, lease=0.4)
        set_holders(lists, [holder])
        return holder

    def test_dead_process_holds_nothing(self, conf: Configuration, lists: BatchListStore, left: LockHolder) -> None:
        set_holders(lists, [replace(left, lease=1e9)])
        with hold_job_lock(conf, lists, lock_scopes.INJECT):
            assert [holder.pid for holder in holders(lists)] == [os.getpid()]

    def test_reused_process_id_holds_nothing(
        self, conf: Configuration, lists: BatchListStore, left: LockHolder
    ) -> None:
        set_holders(lists, [replace(left, pid=os.getppid(), process_start="1", lease=1e9)])
        with hold_job_lock(conf, lists, lock_scopes.INJECT):
            assert len(holders(lists)) == 1

    def test_unreleased_own_lock_is_replaced(
        self, conf: Configuration, lists: BatchListStore, left: LockHolder
    ) -> None:
        set_holders(lists, [replace(left, pid=os.getpid(), lease=1e9)])
        with hold_job_lock(conf, lists, lock_scopes.INJECT):
            assert len(holders(lists)) == 1

    @pytest.mark.parametrize("where", [{"host": "elsewhere"}, {"machine": "restarted"}])
    def test_remote_holder_must_be_silent_for_a_lease(
        self, conf: Configuration, lists: BatchListStore, left: LockHolder, where: dict[str, str]
    ) -> None:
        set_holders(lists, [replace(left, **where)])
        started = time.monotonic()
        with hold_job_lock(conf, lists, lock_scopes.INJECT):
            assert time.monotonic() - started >= left.lease
            assert [holder.host for holder in holders(lists)] != ["elsewhere"]

    def test_remote_heartbeat_keeps_lock(self, conf: Configuration, lists: BatchListStore, left: LockHolder) -> None:
        """However wrong the clock there is."""
        set_holders(lists, [replace(left, host="elsewhere", lease=30.0, start_time=0, last_seen=0)])
        timer = threading.Timer(0.3, lambda: moved(lists, heartbeat=left.heartbeat + 1))
        timer.start()
        with (
            pytest.raises(LockedError, match="inject is running on elsewhere"),
            hold_job_lock(conf, lists, lock_scopes.INJECT),
        ):
            pass
        timer.join()
        assert [holder.host for holder in holders(lists)] == ["elsewhere"]

    @pytest.mark.parametrize("looking", ["to take its place", "to free it"])
    def test_unheard_remote_holder_is_not_silent(
        self,
        conf: Configuration,
        lists: BatchListStore,
        left: LockHolder,
        monkeypatch: pytest.MonkeyPatch,
        looking: str,
    ) -> None:
        """The store is unavailable for longer than a lease, and the holder sends a heartbeat after our poll."""
        far = replace(left, host="elsewhere", lease=0.6)
        set_holders(lists, [far])
        asked = 0

        def away(look: Any) -> Any:
            def answer(lists: BatchListStore) -> Any:
                nonlocal asked
                asked += 1
                if asked == 3:
                    time.sleep(1.5 * far.lease)
                found = look(lists)
                if asked == 4:
                    moved(lists, heartbeat=far.heartbeat + 1)
                return found

            return answer

        for name in ("read_lock_row_and_records", "read_lock_holders"):
            monkeypatch.setattr(BatchListStore, name, away(getattr(BatchListStore, name)))
        if looking == "to free it":
            assert wait_until_known_alive(lists, far)
        else:
            with pytest.raises(LockedError, match="elsewhere"), hold_job_lock(conf, lists, lock_scopes.INJECT):
                pass

    def test_unrelated_remote_holder_is_kept(
        self, conf: Configuration, lists: BatchListStore, left: LockHolder
    ) -> None:
        set_holders(lists, [replace(left, host="elsewhere", lease=1e9)])
        with hold_job_lock(conf, lists, lock_scopes.FETCH.for_batch(A)):
            assert len(holders(lists)) == 2


class TestALostLock:
    """A machine that was paused for longer than its lease has lost its lock to another job."""

    @pytest.fixture(autouse=True)
    def _paused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(lock_check, "FRESH_SHARE", 0)

    def test_job_with_lost_lock_writes_nothing(
        self, conf: Configuration, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from nutch2py.jobs.inject import inject_job as module

        def lose(self: Any, seed: Any) -> Any:
            set_holders(BatchListStore(conf), [])
            return before(self, seed)

        before = module.InjectorJob._build_metadata
        monkeypatch.setattr(module.InjectorJob, "_build_metadata", lose)
        (tmp_path / "seeds").write_text("http://a.example/\n")
        with pytest.raises(LockLostError, match="Nothing more is written") as caught:
            inject(conf, str(tmp_path / "seeds"))
        assert caught.value.exit_code == 6
        assert list(open_store(conf, WebPage).scan_cells()) == []

    def test_updatedb_with_lost_lock_does_not_commit(
        self, conf: Configuration, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        make_batch(conf, A, "http://a.example/")
        monkeypatch.setattr(
            "nutch2py.jobs.updatedb.updatedb_job.run_job", lambda *_, **__: set_holders(BatchListStore(conf), [])
        )
        with pytest.raises(LockLostError):
            updatedb(conf, A)
        state = BatchListStore(conf).get_record(A)
        assert state is not None
        assert state.state == BatchState.GENERATED

    def test_heartbeat_thread_with_lost_lock_ends_silently(self, conf: Configuration, lists: BatchListStore) -> None:
        conf.set("crawl.lock.lease", "0.1")
        with hold_job_lock(conf, lists, lock_scopes.DEDUP) as lock:
            set_holders(lists, [])
            wait_for(lambda: not lock._thread.is_alive())
            with pytest.raises(LockLostError):
                lock.check_held()
        assert holders(lists) == []


@pytest.mark.parametrize("pause", [(-30.0, -30.0), (0.0, -30.0), (-30.0, 0.0), (5000.0, 0.0)])
def test_process_rechecks_lock_after_clock_jump(
    conf: Configuration, lists: BatchListStore, pause: tuple[float, float]
) -> None:
    with hold_job_lock(conf, lists, lock_scopes.DEDUP) as lock:
        set_holders(lists, [])
        lock.check_held()
        last = lock_check.LAST_SEEN[lock.token]
        lock_check.LAST_SEEN[lock.token] = last._replace(
            wall_time=last.wall_time + pause[0], uptime=last.uptime + pause[1]
        )
        with pytest.raises(LockLostError):
            lock.check_held()
    assert lock.token not in lock_check.LAST_SEEN


class TestAWaitingJournal:
    @pytest.fixture
    def waiting(self, conf: Configuration) -> Configuration:
        """Give a crawl with a journal that is committed: a score of 7."""
        make_batch(conf, A, "http://a.example/")
        make_batch(conf, B, "http://b.example/")
        lists, page = BatchListStore(conf), WebPage()
        page.score = 7.0
        with JournalWriter(lists.store, A) as journal:
            journal.add(reverse_url("http://c.example/"), page.mutation())
        lists.set_state(A, BatchState.APPLYING, 1)
        return conf

    def is_written(self, conf: Configuration) -> bool:
        return open_store(conf, WebPage).get(reverse_url("http://c.example/")) is not None

    @contextmanager
    def at_work(self, conf: Configuration, work: LockScope) -> Iterator[None]:
        """Add a lock that appears to be held by another running process."""
        lists = BatchListStore(conf)
        with hold_job_lock(conf, lists, work):
            token = CURRENT_LOCK_TOKEN.set("")
            yield
            CURRENT_LOCK_TOKEN.reset(token)

    def test_pending_journal_is_applied_by_next_job(self, waiting: Configuration) -> None:
        with open_job(waiting, lock_scopes.FETCH, batch_id=B):
            assert self.is_written(waiting)
            assert len(holders(BatchListStore(waiting))) == 1

    @pytest.mark.parametrize(
        "work", [lock_scopes.DEDUP, lock_scopes.FETCH.for_batch(B), lock_scopes.READ], ids=["dedup", "fetch", "reader"]
    )
    def test_job_compatible_with_updatedb_leaves_journal(self, waiting: Configuration, work: LockScope) -> None:
        with self.at_work(waiting, lock_scopes.UPDATEDB.for_batch(A)), open_job(waiting, work):
            assert not self.is_written(waiting)

    @pytest.mark.parametrize(
        "work",
        [lock_scopes.INJECT, lock_scopes.UPDATEDB.for_batch(B), lock_scopes.FETCH.for_batch(A)],
        ids=["inject", "updatedb", "fetch"],
    )
    def test_incompatible_job_is_rejected(self, waiting: Configuration, work: LockScope) -> None:
        with self.at_work(waiting, lock_scopes.UPDATEDB.for_batch(A)):
            with pytest.raises(LockedError), open_job(waiting, work):
                pass
            assert not self.is_written(waiting)

    def test_journal_of_batch_in_use_blocks_computation(self, waiting: Configuration) -> None:
        with (
            self.at_work(waiting, lock_scopes.PARSE.for_batch(A)),
            pytest.raises(LockedError, match=f"parse {A} is running"),
            open_job(waiting, lock_scopes.INJECT),
        ):
            pass
        assert holders(BatchListStore(waiting)) == []
