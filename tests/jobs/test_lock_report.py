"""Locks that can be seen, and freed when their job is dead."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from msgspec.structs import replace

from nutch2py.cli import main
from nutch2py.conf import Configuration
from nutch2py.errors import LockedError, LockLostError, StoreError, UsageError
from nutch2py.jobs import works
from nutch2py.jobs.batchlist import BatchLists
from nutch2py.jobs.lock_report import held_locks, unlock
from nutch2py.jobs.locks import holding
from nutch2py.jobs.tables import copy_to
from nutch2py.mapreduce.held import LOCKS, SIGHTINGS, Holder, encode_holders
from nutch2py.table import open_store
from nutch2py.webpage import BatchEntry, WebPage
from tests.jobs.beside import A, B, holders
from tests.jobs.rows import put


@pytest.fixture
def lists(conf: Configuration) -> BatchLists:
    put(conf, {"http://a.test/": {}})
    lists = BatchLists(conf)
    lists.store.create()
    return lists


def leave(conf: Configuration, lists: BatchLists, **changes: object) -> Holder:
    """Leave the lock of a job that died beside those that there are."""
    before = holders(lists)
    set_holders(lists, [])
    with holding(conf, lists, works.FETCH.on(B)):
        holder = next(each for each in holders(lists) if each.batch == B)
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    holder = replace(holder, **{"pid": gone.pid, **changes})
    set_holders(lists, [*before, holder])
    return holder


def set_holders(lists: BatchLists, wanted: list[Holder]) -> None:
    data = lists.jobs_and_states()[0]
    assert lists.store.compare_and_set(LOCKS, BatchEntry.data, data, encode_holders(wanted))


def run(conf: Configuration, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    capsys.readouterr()
    code = main([*words, "-D", f"storage.data.store={conf.get('storage.data.store')}"])
    told = capsys.readouterr()
    return code, told.out + told.err


def test_who_holds_what(conf: Configuration, lists: BatchLists, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(conf, capsys, "readdb", "-locks") == (0, "")
    with holding(conf, lists, works.PARSE.on(A)) as held:
        dead = leave(conf, lists)
        leave(conf, lists, token="far", host="elsewhere")
        first, second, third = held_locks(conf)
        assert (first.id, first.job, first.batch, first.pid, first.alive) == (held.token, "parse", A, os.getpid(), True)
        assert first.alone == (f"batch {A}",)
        assert first.since + 60_000 <= first.until
        assert (second.id, second.alive, third.host, third.alive) == (dead.token, False, "elsewhere", None)
        lines = run(conf, capsys, "readdb", "-locks")[1].splitlines()
        assert [line.split("\t")[1:3] + line.split("\t")[7:] for line in lines] == [
            ["parse", A, "alive", f"batch {A}"],
            ["fetch", B, "dead", f"batch {B}"],
            ["fetch", B, "elsewhere", f"batch {B}"],
        ]
        told = [json.loads(line) for line in run(conf, capsys, "readdb", "-locks", "-json")[1].splitlines()]
        assert [each["alive"] for each in told] == [True, False, None]
        assert set(told[0]) == {"id", "job", "batch", "host", "pid", "since", "until", "alive", "alone"}


def test_the_dead_lose_their_locks_and_the_living_do_not(
    conf: Configuration, lists: BatchLists, capsys: pytest.CaptureFixture[str]
) -> None:
    with holding(conf, lists, works.PARSE.on(A)) as held:
        dead = leave(conf, lists)
        silent = leave(conf, lists, token="far", host="elsewhere", lease=0.2)
        assert [lock.id for lock in unlock(conf, dead.token)] == [dead.token]
        code, told = run(conf, capsys, "unlock", "-all")
        assert (code, f"process {os.getpid()}) is alive and keeps its lock" in told) == (6, True), told
        assert [holder.token for holder in holders(lists)] == [held.token] != [silent.token]
        held.check()
        assert run(conf, capsys, "unlock", held.token, "-force")[0] == 0
        assert holders(lists) == []
        SIGHTINGS.pop(held.token)  # a sixth of its lease later
        with pytest.raises(LockLostError):
            held.check()


def test_one_elsewhere_is_watched_for_a_sign_of_life(conf: Configuration, lists: BatchLists) -> None:
    far = leave(conf, lists, host="elsewhere", lease=30.0)
    timer = threading.Timer(0.3, lambda: set_holders(lists, [replace(far, beat=far.beat + 1)]))
    timer.start()
    with pytest.raises(LockedError, match="fetch on elsewhere"):
        unlock(conf, every=True)
    timer.join()
    assert [lock.id for lock in unlock(conf, far.token, force=True)] == [far.token]


def test_what_is_not_there_is_not_freed(conf: Configuration, lists: BatchLists) -> None:
    assert unlock(conf, every=True) == []
    for arguments in ({}, {"lock_id": "x", "every": True}, {"lock_id": "x"}):
        with pytest.raises(UsageError, match="readdb -locks"):
            unlock(conf, **arguments)
    conf.set("storage.crawl.id", "none")
    for job in (held_locks, lambda conf: unlock(conf, every=True)):
        with pytest.raises(StoreError, match="there is no table none_webpage"):
            job(conf)
    assert not BatchLists(conf).store.exists()


def test_a_copy_has_its_target_alone(conf: Configuration, lists: BatchLists, tmp_path: Path) -> None:
    there = conf.copy()
    there.set("storage.data.store", f"embedded:{tmp_path / 'there'}")
    assert copy_to(conf, f"embedded:{tmp_path / 'there'}") == 1
    with (
        ThreadPoolExecutor() as others,
        holding(there, BatchLists(there), works.INJECT),
        pytest.raises(LockedError, match="copytable cannot run"),
    ):
        others.submit(copy_to, conf, f"embedded:{tmp_path / 'there'}").result()
    with holding(conf, lists, works.INJECT):  # of its source it only reads
        assert copy_to(conf, f"embedded:{tmp_path / 'there'}") == 1
    assert holders(BatchLists(there)) == []


def test_a_table_is_not_copied_to_itself(conf: Configuration, lists: BatchLists, tmp_path: Path) -> None:
    folder = Path(str(conf.get("storage.data.store")).partition(":")[2])
    (tmp_path / "link").symlink_to(folder)
    before = list(open_store(conf, WebPage).scan_cells())
    for target in (folder, tmp_path / "link", folder / ".." / folder.name):
        with pytest.raises(UsageError, match="holds webpage itself"):
            copy_to(conf, f"embedded:{target}")
    assert list(open_store(conf, WebPage).scan_cells()) == before
    assert holders(lists) == []
