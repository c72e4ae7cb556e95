"""Killed at any point, a writer loses nothing it acknowledged and leaves no row half old and half new."""

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.records.webpage import WebPage
from nutch2py.table import TableQuery, open_store
from tests.counted_kills import Kills, strike

from .store_suite import page_at, write

WRITER = str(Path(__file__).with_name("crawl_writer.py"))
ROWS, KILLS = 400, 20


@pytest.fixture
def store(tmp_path):
    store = open_store(Configuration(), WebPage, f"embedded:{tmp_path / 'crawl'}")
    store.create()
    yield store
    store.close()


def start(tmp_path, *arguments):
    command = [sys.executable, WRITER, str(tmp_path / "crawl"), *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def turns(store):
    """Return what each row says of its round; a row that contradicts itself fails the test."""
    found = []
    for key, page in store.scan(TableQuery()):
        turn = page.fetch_interval
        assert page.title == str(turn), key
        assert page.markers["_gnmrk_"] == str(turn), key
        assert page.content.startswith(f"{turn} ".encode()), key
        assert page.content.count(b" ") == 1 + int(key[7:12]) % 50, key
        found.append(turn)
    return found


def test_kill_9_loses_no_commit_and_leaves_no_partial_write(store, tmp_path):
    rng = random.Random(1)
    done = -1
    with Kills("a writer within a round", KILLS) as kills:
        for _ in kills.moments():
            writer = start(tmp_path, done + 1, 1, ROWS, 1_000_000)
            acknowledged = [int(writer.stdout.readline())]
            time.sleep(rng.random() * 0.15)  # anywhere in the work of some later round
            strike(writer)
            acknowledged += [int(line) for line in writer.stdout.read().split()]
            writer.stdout.close()
            written = set(turns(store))
            assert len(written) == 1  # a flush is a transaction: all rows are of one round
            assert written <= {acknowledged[-1], acknowledged[-1] + 1}
            kills.count(written == {acknowledged[-1]})  # not between a commit and its acknowledgement
            done = max(written)
            assert store.row_estimate() == ROWS
    write(store, {"com.row00000:http/": page_at()})
    table = store.get_files()
    assert table.content.stat()["entries"] == ROWS  # nothing is left of killed rounds, nor of replaced contents


def test_kill_between_two_commits_shows_old_rows(store, tmp_path, monkeypatch):
    writer = start(tmp_path, 0, 1, ROWS, 1)
    writer.communicate()

    class KilledError(BaseException):
        pass

    from nutch2py.table.embedded import embedded_batch as module

    def killed(*arguments, **_):
        raise KilledError

    monkeypatch.setattr(module, "apply_changes", killed)
    page = WebPage(fields=frozenset())
    page.content = b"never seen"
    with pytest.raises(KilledError):
        write(store, {"com.row00007:http/": page})
    monkeypatch.undo()
    assert store.get_files().content.stat()["entries"] == ROWS + 1
    assert set(turns(store)) == {0}
    page.content = b"8 "
    write(store, {"com.new:http/": page})
    assert store.get("com.new:http/").content == b"8 "
    assert store.get_files().content.stat()["entries"] == ROWS + 1


def test_two_writers_and_reader_run_concurrently(store, tmp_path):
    """Writers take turns, flush by flush; a reader never sees a row between two of them."""
    rounds = 12
    writers = [start(tmp_path, first, 2, ROWS, rounds) for first in (0, 1)]
    seen, scans = set(), 0
    while any(writer.poll() is None for writer in writers):
        seen.update(turns(store))
        scans += 1
    assert [writer.wait() for writer in writers] == [0, 0]
    acknowledged = [int(turn) for writer in writers for turn in writer.stdout.read().split()]
    for writer in writers:
        writer.stdout.close()
    assert sorted(acknowledged) == list(range(rounds))
    last = turns(store)
    assert len(last) == ROWS
    assert len(set(last)) == 1
    assert last[0] in (rounds - 2, rounds - 1)
    assert scans > 1


READER = """
import sys
from nutch2py.conf.configuration import Configuration
from nutch2py.table import open_store
from nutch2py.records.webpage import WebPage
store = open_store(Configuration(), WebPage, "embedded:" + sys.argv[1])
store.row_estimate()
print("open", flush=True)
input()
print(store.get("a").status, flush=True)
"""


def test_readers_do_not_wait_for_writer(store, tmp_path):
    write(store, {"a": page_at()})
    child = subprocess.Popen(
        [sys.executable, "-c", READER, str(tmp_path / "crawl")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout.readline() == "open\n"
    with store.get_files().write_transaction() as (txn, handles):
        txn.put(b"a", b"not committed", db=handles[b"f"])
        out, _ = child.communicate("go\n", timeout=60)
    assert out == "2\n"
