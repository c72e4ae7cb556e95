"""Which jobs run on a crawl at the same time: the table of them, killed ones, and holders on machines not in sight."""

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

from nutch2py.conf import Configuration
from nutch2py.errors import ConfigurationError, LockedError, LockLostError, StoreError
from nutch2py.jobs import works
from nutch2py.jobs.batchlist import BatchLists, State
from nutch2py.jobs.beginning import begin
from nutch2py.jobs.inject import inject
from nutch2py.jobs.journal import JournalWriter
from nutch2py.jobs.locks import holding, lives
from nutch2py.jobs.updatedb import updatedb
from nutch2py.jobs.works import Work
from nutch2py.mapreduce import held
from nutch2py.mapreduce.held import HOLDING, LOCKS, Holder, encode_holders
from nutch2py.mapreduce.workfolder import work_folder
from nutch2py.table import open_store
from nutch2py.url.keys import reverse_url
from nutch2py.webpage import BatchEntry, WebPage
from tests.jobs.beside import A, B, holders, make_batch, wait_for

JOBS = {
    "inject": works.INJECT,
    "generate A": works.GENERATE.on(A),
    "generate B": works.GENERATE.on(B),
    "fetch A": works.FETCH.on(A),
    "fetch B": works.FETCH.on(B),
    "fetch with redirects B": works.FETCH_REDIRECTS.on(B),
    "fetch -all": works.FETCH.on("-all"),
    "parse A": works.PARSE.on(A),
    "parse -sitemap B": works.PARSE_SITEMAPS.on(B),
    "updatedb A": works.UPDATEDB.on(A),
    "updatedb B": works.UPDATEDB.on(B),
    "updatedb -all": works.UPDATEDB.on("-all"),
    "index A": works.INDEX_BATCH.on(A),
    "index B": works.INDEX_BATCH.on(B),
    "index -all": works.INDEX_ALL.on("-all"),
    "index -scores": works.INDEX_SCORES.on("-scores"),
    "clean": works.CLEAN,
    "dedup": works.DEDUP,
    "pagerank": works.PAGERANK,
    "pagerank with scores": works.PAGERANK_SCORES,
    "updatehostdb": works.UPDATEHOSTDB,
    "importtable": works.IMPORTTABLE,
    "copytable": works.COPYTABLE,
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
    """Say what docs/operations.md says, in the words of a reader of it."""
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


def test_the_table_of_what_runs_beside_what() -> None:
    for one, other in product(JOBS, repeat=2):
        first, second = JOBS[one], JOBS[other]
        met = works.meet(first.alone, first.shared, second.alone, second.shared)
        assert met != may_run(one, other), (one, other)


def test_the_table_in_the_docs() -> None:
    text = (Path(__file__).parents[2] / "docs" / "operations.md").read_text()
    rows = text.partition("| job | has alone | shares |\n|---|---|---|\n")[2].partition("\n\n")[0].splitlines()
    told = [[set(filter(None, cell.strip().split(", "))) for cell in row.split("|")[2:4]] for row in rows]
    declared = [work for work in vars(works).values() if isinstance(work, Work) and work is not works.READ]
    assert told == [[{*work.alone, *(["its batch"] * work.of_batch)}, set(work.shared)] for work in declared]
    assert [row.split("|")[1].split()[0] for row in rows] == [work.name for work in declared]


@pytest.fixture
def lists(conf: Configuration) -> BatchLists:
    open_store(conf, WebPage).create()
    lists = BatchLists(conf)
    lists.store.create()
    return lists


def set_holders(lists: BatchLists, wanted: list[Holder]) -> None:
    row = lists.store.get(LOCKS, {BatchEntry.data})
    data = (row.data if row is not None else None) or None
    assert lists.store.compare_and_set(LOCKS, BatchEntry.data, data, encode_holders(wanted))


def moved(lists: BatchLists, **changes: Any) -> None:
    """Change what stands in the row of the one job at work."""
    (holder,) = holders(lists)
    set_holders(lists, [replace(holder, **changes)])


class TestALock:
    def test_it_is_held_in_the_block_and_given_back(self, conf: Configuration, lists: BatchLists) -> None:
        with holding(conf, lists, works.FETCH.on(A)):
            (holder,) = holders(lists)
            assert (holder.job, holder.batch, holder.pid) == ("fetch", A, os.getpid())
            assert HOLDING.get() == holder.token
        assert holders(lists) == []
        assert HOLDING.get() == ""
        with pytest.raises(KeyError), holding(conf, lists, works.FETCH.on(A)):
            raise KeyError
        assert holders(lists) == []

    def test_another_thread_is_refused_and_told_by_whom(self, conf: Configuration, lists: BatchLists) -> None:
        refused = []

        def second() -> None:
            try:
                with holding(conf, lists, works.UPDATEDB.on(B)):
                    refused.append("nobody")
            except LockedError as error:
                refused.append(f"{error.exit_code} {error}")

        with holding(conf, lists, works.UPDATEDB.on(A)):
            thread = threading.Thread(target=second)
            thread.start()
            thread.join()
        assert refused[0].startswith(f"6 updatedb {A} is at work on ")
        assert f"(process {os.getpid()})" in refused[0]
        assert f"and updatedb {B} cannot run beside it: wait until it has ended" in refused[0]

    def test_of_many_at_once_one_gets_it(self, conf: Configuration, lists: BatchLists) -> None:
        got: list[int] = []
        barrier, over = threading.Barrier(6), threading.Event()

        def run(number: int) -> None:
            barrier.wait()
            try:
                with holding(conf, lists, works.INJECT):
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

    def test_the_beat_goes_on(self, lists: BatchLists) -> None:
        quick = lists.conf.copy()
        quick.set("crawl.lock.lease", "0.15")
        with holding(quick, lists, works.DEDUP):
            wait_for(lambda: holders(lists)[0].beat > 3)

    @pytest.mark.parametrize("lease", ["0", "-1", "nan", "inf", "1e300", "601"])
    def test_a_lease_is_a_time(self, conf: Configuration, lists: BatchLists, lease: str) -> None:
        conf.set("crawl.lock.lease", lease)
        with pytest.raises(ConfigurationError, match=r"crawl\.lock\.lease"), holding(conf, lists, works.DEDUP):
            pass

    @pytest.mark.parametrize("damaged", [b"\xff\x00", b"{}", b"null", b"[{}]", b"[1]", b"-1"])
    def test_a_row_that_cannot_be_read_lets_nobody_begin(
        self, conf: Configuration, lists: BatchLists, damaged: bytes
    ) -> None:
        """Nor does a job that is at work write on: see check_held."""
        with holding(conf, lists, works.DEDUP) as lock:
            sound = lists.jobs_and_states()[0]
            assert sound is not None
            if damaged == b"-1":  # a lease that nothing can wait for
                damaged = sound.replace(b'"lease":60.0', b'"lease":-1')
                assert b"-1" in damaged
            assert lists.store.compare_and_set(LOCKS, BatchEntry.data, sound, damaged)
            held.SIGHTINGS.pop(lock.token)
            with pytest.raises(StoreError, match="run/jobs"):
                lock.check()
            with pytest.raises(StoreError, match="run/jobs"), holding(conf, lists, works.INJECT):
                pass
            assert lists.store.compare_and_set(LOCKS, BatchEntry.data, damaged, sound)
        assert holders(lists) == []


def test_a_forked_child_that_ends_takes_nothing_from_its_parent(conf: Configuration, lists: BatchLists) -> None:
    """As one does that gets the driver's SIGTERM, or fails: it leaves the driver's blocks, too."""
    child = -1
    try:
        with work_folder() as folder, holding(conf, lists, works.DEDUP) as held:
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
    def left(self, conf: Configuration, lists: BatchLists) -> Holder:
        """Give what a job left that died in the middle of an inject, by another process that has ended."""
        with holding(conf, lists, works.INJECT):
            (holder,) = holders(lists)
        gone = subprocess.Popen([sys.executable, "-c", ""])
        gone.wait()
        holder = replace(holder, pid=gone.pid, lease=0.4)
        set_holders(lists, [holder])
        return holder

    def test_a_process_that_is_gone_holds_nothing(self, conf: Configuration, lists: BatchLists, left: Holder) -> None:
        set_holders(lists, [replace(left, lease=1e9)])
        with holding(conf, lists, works.INJECT):
            assert [holder.pid for holder in holders(lists)] == [os.getpid()]

    def test_nor_does_one_whose_number_another_has_got(
        self, conf: Configuration, lists: BatchLists, left: Holder
    ) -> None:
        set_holders(lists, [replace(left, pid=os.getppid(), started="1", lease=1e9)])
        with holding(conf, lists, works.INJECT):
            assert len(holders(lists)) == 1

    def test_what_this_process_could_not_give_back(self, conf: Configuration, lists: BatchLists, left: Holder) -> None:
        set_holders(lists, [replace(left, pid=os.getpid(), lease=1e9)])
        with holding(conf, lists, works.INJECT):
            assert len(holders(lists)) == 1

    @pytest.mark.parametrize("where", [{"host": "elsewhere"}, {"machine": "started anew"}])
    def test_elsewhere_it_must_have_been_silent_for_a_lease(
        self, conf: Configuration, lists: BatchLists, left: Holder, where: dict[str, str]
    ) -> None:
        set_holders(lists, [replace(left, **where)])
        started = time.monotonic()
        with holding(conf, lists, works.INJECT):
            assert time.monotonic() - started >= left.lease
            assert [holder.host for holder in holders(lists)] != ["elsewhere"]

    def test_elsewhere_a_beat_is_a_sign_of_life(self, conf: Configuration, lists: BatchLists, left: Holder) -> None:
        """However wrong the clock there is."""
        set_holders(lists, [replace(left, host="elsewhere", lease=30.0, since=0, seen=0)])
        timer = threading.Timer(0.3, lambda: moved(lists, beat=left.beat + 1))
        timer.start()
        with pytest.raises(LockedError, match="inject is at work on elsewhere"), holding(conf, lists, works.INJECT):
            pass
        timer.join()
        assert [holder.host for holder in holders(lists)] == ["elsewhere"]

    @pytest.mark.parametrize("looking", ["to take its place", "to free it"])
    def test_elsewhere_one_that_could_not_be_heard_is_not_silent(
        self, conf: Configuration, lists: BatchLists, left: Holder, monkeypatch: pytest.MonkeyPatch, looking: str
    ) -> None:
        """The store is away for longer than a lease, and the holder beats after our look has been answered."""
        far = replace(left, host="elsewhere", lease=0.6)
        set_holders(lists, [far])
        asked = 0

        def away(look: Any) -> Any:
            def answer(lists: BatchLists) -> Any:
                nonlocal asked
                asked += 1
                if asked == 3:
                    time.sleep(1.5 * far.lease)
                found = look(lists)
                if asked == 4:
                    moved(lists, beat=far.beat + 1)
                return found

            return answer

        for name in ("jobs_and_states", "holders"):
            monkeypatch.setattr(BatchLists, name, away(getattr(BatchLists, name)))
        if looking == "to free it":
            assert lives(lists, far)
        else:
            with pytest.raises(LockedError, match="elsewhere"), holding(conf, lists, works.INJECT):
                pass

    def test_elsewhere_one_that_is_not_in_the_way_is_left_alone(
        self, conf: Configuration, lists: BatchLists, left: Holder
    ) -> None:
        set_holders(lists, [replace(left, host="elsewhere", lease=1e9)])
        with holding(conf, lists, works.FETCH.on(A)):
            assert len(holders(lists)) == 2


class TestALostLock:
    """A machine that was paused for longer than its lease finds another job in its place."""

    @pytest.fixture(autouse=True)
    def _paused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(held, "FRESH", 0)

    def test_a_job_writes_nothing_more(
        self, conf: Configuration, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from nutch2py.jobs import inject as module

        def lose(self: Any, seed: Any) -> Any:
            set_holders(BatchLists(conf), [])
            return before(self, seed)

        before = module.InjectorJob._metadata
        monkeypatch.setattr(module.InjectorJob, "_metadata", lose)
        (tmp_path / "seeds").write_text("http://a.example/\n")
        with pytest.raises(LockLostError, match="nothing more is written") as caught:
            inject(conf, str(tmp_path / "seeds"))
        assert caught.value.exit_code == 6
        assert list(open_store(conf, WebPage).scan_cells()) == []

    def test_an_updatedb_does_not_commit(self, conf: Configuration, monkeypatch: pytest.MonkeyPatch) -> None:
        make_batch(conf, A, "http://a.example/")
        monkeypatch.setattr("nutch2py.jobs.updatedb.run_job", lambda *_, **__: set_holders(BatchLists(conf), []))
        with pytest.raises(LockLostError):
            updatedb(conf, A)
        state = BatchLists(conf).state(A)
        assert state is not None
        assert state.state == State.GENERATED

    def test_in_the_thread_of_the_beat_it_ends_in_silence(self, conf: Configuration, lists: BatchLists) -> None:
        conf.set("crawl.lock.lease", "0.1")
        with holding(conf, lists, works.DEDUP) as lock:
            set_holders(lists, [])
            wait_for(lambda: not lock._thread.is_alive())
            with pytest.raises(LockLostError):
                lock.check()
        assert holders(lists) == []


@pytest.mark.parametrize("pause", [(-30.0, -30.0), (0.0, -30.0), (-30.0, 0.0), (5000.0, 0.0)])
def test_a_process_looks_again_when_a_clock_has_moved(
    conf: Configuration, lists: BatchLists, pause: tuple[float, float]
) -> None:
    with holding(conf, lists, works.DEDUP) as lock:
        set_holders(lists, [])
        lock.check()
        last = held.SIGHTINGS[lock.token]
        held.SIGHTINGS[lock.token] = last._replace(wall=last.wall + pause[0], running=last.running + pause[1])
        with pytest.raises(LockLostError):
            lock.check()
    assert lock.token not in held.SIGHTINGS


class TestAWaitingJournal:
    @pytest.fixture
    def waiting(self, conf: Configuration) -> Configuration:
        """Give a crawl with a journal that is committed: a score of 7."""
        make_batch(conf, A, "http://a.example/")
        make_batch(conf, B, "http://b.example/")
        lists, page = BatchLists(conf), WebPage()
        page.score = 7.0
        with JournalWriter(lists.store, A) as journal:
            journal.add(reverse_url("http://c.example/"), page.mutation())
        lists.set_state(A, State.APPLYING, 1)
        return conf

    def is_written(self, conf: Configuration) -> bool:
        return open_store(conf, WebPage).get(reverse_url("http://c.example/")) is not None

    @contextmanager
    def at_work(self, conf: Configuration, work: Work) -> Iterator[None]:
        """Let another process, as far as anybody can tell, be at work."""
        lists = BatchLists(conf)
        with holding(conf, lists, work):
            token = HOLDING.set("")
            yield
            HOLDING.reset(token)

    def test_the_next_job_finishes_it(self, waiting: Configuration) -> None:
        with begin(waiting, works.FETCH, batch_id=B):
            assert self.is_written(waiting)
            assert len(holders(BatchLists(waiting))) == 1

    @pytest.mark.parametrize("work", [works.DEDUP, works.FETCH.on(B), works.READ], ids=["dedup", "fetch", "reader"])
    def test_one_that_may_run_beside_updatedb_leaves_it_to_who_applies_it(
        self, waiting: Configuration, work: Work
    ) -> None:
        with self.at_work(waiting, works.UPDATEDB.on(A)), begin(waiting, work):
            assert not self.is_written(waiting)

    @pytest.mark.parametrize(
        "work", [works.INJECT, works.UPDATEDB.on(B), works.FETCH.on(A)], ids=["inject", "updatedb", "fetch"]
    )
    def test_one_that_may_not_is_refused(self, waiting: Configuration, work: Work) -> None:
        with self.at_work(waiting, works.UPDATEDB.on(A)):
            with pytest.raises(LockedError), begin(waiting, work):
                pass
            assert not self.is_written(waiting)

    def test_no_values_are_computed_while_it_waits_for_a_batch_that_is_in_use(self, waiting: Configuration) -> None:
        with (
            self.at_work(waiting, works.PARSE.on(A)),
            pytest.raises(LockedError, match=f"parse {A} is at work"),
            begin(waiting, works.INJECT),
        ):
            pass
        assert holders(BatchLists(waiting)) == []
