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
from nutch2py.conf.configuration import Configuration
from nutch2py.errors import LockedError, LockLostError, StoreError, UsageError
from nutch2py.jobs.batches.batch_lists import BatchListStore
from nutch2py.jobs.locking import lock_scopes
from nutch2py.jobs.locking.job_lock import hold_job_lock
from nutch2py.jobs.monitoring.lock_report import list_locks, unlock
from nutch2py.jobs.table_admin.table_maintenance import copy_to_store
from nutch2py.mapreduce.lock_check import LAST_SEEN, LOCKS_KEY, LockHolder, encode_holders
from nutch2py.records.webpage import DerivedRow, WebPage
from nutch2py.table import open_store
from tests.jobs.concurrent_commands import A, B, holders
from tests.jobs.rows import put


@pytest.fixture
def lists(conf: Configuration) -> BatchListStore:
    put(conf, {"http://a.test/": {}})
    lists = BatchListStore(conf)
    lists.store.create()
    return lists


def leave(conf: Configuration, lists: BatchListStore, **changes: object) -> LockHolder:
    """Leave the lock of a job that died beside those that there are."""
    before = holders(lists)
    set_holders(lists, [])
    with hold_job_lock(conf, lists, lock_scopes.FETCH.for_batch(B)):
        holder = next(each for each in holders(lists) if each.batch == B)
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    holder = replace(holder, **{"pid": gone.pid, **changes})
    set_holders(lists, [*before, holder])
    return holder


def set_holders(lists: BatchListStore, wanted: list[LockHolder]) -> None:
    data = lists.read_lock_row_and_records()[0]
    assert lists.store.compare_and_set(LOCKS_KEY, DerivedRow.data, data, encode_holders(wanted))


def run(conf: Configuration, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    capsys.readouterr()
    code = main([*words, "-D", f"storage.data.store={conf.get('storage.data.store')}"])
    output = capsys.readouterr()
    return code, output.out + output.err


def test_lock_holders_are_listed(
    conf: Configuration, lists: BatchListStore, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(conf, capsys, "readdb", "-locks") == (0, "")
    with hold_job_lock(conf, lists, lock_scopes.PARSE.for_batch(A)) as held:
        dead = leave(conf, lists)
        leave(conf, lists, token="far", host="elsewhere")
        first, second, third = list_locks(conf)
        assert (first.id, first.job, first.batch, first.pid, first.alive) == (held.token, "parse", A, os.getpid(), True)
        assert first.exclusive == (f"batch {A}",)
        assert first.since + 60_000 <= first.until
        assert (second.id, second.alive, third.host, third.alive) == (dead.token, False, "elsewhere", None)
        lines = run(conf, capsys, "readdb", "-locks")[1].splitlines()
        assert [line.split("\t")[1:3] + line.split("\t")[7:] for line in lines] == [
            ["parse", A, "alive", f"batch {A}"],
            ["fetch", B, "dead", f"batch {B}"],
            ["fetch", B, "elsewhere", f"batch {B}"],
        ]
        holders = [json.loads(line) for line in run(conf, capsys, "readdb", "-locks", "-json")[1].splitlines()]
        assert [each["alive"] for each in holders] == [True, False, None]
        assert set(holders[0]) == {"id", "job", "batch", "host", "pid", "since", "until", "alive", "exclusive"}


def test_locks_of_dead_holders_are_freed(
    conf: Configuration, lists: BatchListStore, capsys: pytest.CaptureFixture[str]
) -> None:
    with hold_job_lock(conf, lists, lock_scopes.PARSE.for_batch(A)) as held:
        dead = leave(conf, lists)
        silent = leave(conf, lists, token="far", host="elsewhere", lease=0.2)
        assert [lock.id for lock in unlock(conf, dead.token)] == [dead.token]
        code, message = run(conf, capsys, "unlock", "-all")
        assert (code, f"process {os.getpid()}) is alive and keeps its lock" in message) == (6, True), message
        assert [holder.token for holder in holders(lists)] == [held.token] != [silent.token]
        held.check_held()
        assert run(conf, capsys, "unlock", held.token, "-force")[0] == 0
        assert holders(lists) == []
        LAST_SEEN.pop(held.token)  # a sixth of its lease later
        with pytest.raises(LockLostError):
            held.check_held()


def test_remote_holder_is_observed_for_heartbeat(conf: Configuration, lists: BatchListStore) -> None:
    far = leave(conf, lists, host="elsewhere", lease=30.0)
    timer = threading.Timer(0.3, lambda: set_holders(lists, [replace(far, heartbeat=far.heartbeat + 1)]))
    timer.start()
    with pytest.raises(LockedError, match="fetch on elsewhere"):
        unlock(conf, all_locks=True)
    timer.join()
    assert [lock.id for lock in unlock(conf, far.token, force=True)] == [far.token]


def test_missing_lock_is_not_freed(conf: Configuration, lists: BatchListStore) -> None:
    assert unlock(conf, all_locks=True) == []
    for arguments in ({}, {"lock_id": "x", "all_locks": True}, {"lock_id": "x"}):
        with pytest.raises(UsageError, match="readdb -locks"):
            unlock(conf, **arguments)
    conf.set("storage.crawl.id", "none")
    for job in (list_locks, lambda conf: unlock(conf, all_locks=True)):
        with pytest.raises(StoreError, match="there is no table none_webpage"):
            job(conf)
    assert not BatchListStore(conf).store.exists()


def test_copy_has_exclusive_target(conf: Configuration, lists: BatchListStore, tmp_path: Path) -> None:
    there = conf.copy()
    there.set("storage.data.store", f"embedded:{tmp_path / 'there'}")
    assert copy_to_store(conf, f"embedded:{tmp_path / 'there'}") == 1
    with (
        ThreadPoolExecutor() as others,
        hold_job_lock(there, BatchListStore(there), lock_scopes.INJECT),
        pytest.raises(LockedError, match="copytable cannot run"),
    ):
        others.submit(copy_to_store, conf, f"embedded:{tmp_path / 'there'}").result()
    with hold_job_lock(conf, lists, lock_scopes.INJECT):  # of its source it only reads
        assert copy_to_store(conf, f"embedded:{tmp_path / 'there'}") == 1
    assert holders(BatchListStore(there)) == []


def test_copy_to_itself_is_rejected(conf: Configuration, lists: BatchListStore, tmp_path: Path) -> None:
    folder = Path(str(conf.get("storage.data.store")).partition(":")[2])
    (tmp_path / "link").symlink_to(folder)
    before = list(open_store(conf, WebPage).scan_cells())
    for target in (folder, tmp_path / "link", folder / ".." / folder.name):
        with pytest.raises(UsageError, match="holds webpage itself"):
            copy_to_store(conf, f"embedded:{target}")
    assert list(open_store(conf, WebPage).scan_cells()) == before
    assert holders(lists) == []
