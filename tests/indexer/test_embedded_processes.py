"""The embedded index with several concurrent processes, and with processes killed during writes."""

import multiprocessing
import signal
import time

import pytest

from nutch2py.backends.embedded_index.index_directory import IndexDirectory
from nutch2py.conf.configuration import Configuration
from nutch2py.errors import IndexingError, LockedError
from nutch2py.indexer.writers.embedded_writer import EmbeddedIndexWriter
from nutch2py.search.engines.embedded_searcher import EmbeddedSearcher
from nutch2py.search.search_backends import search
from tests.counted_kills import strike
from tests.indexer.pages import doc

SPAWN = multiprocessing.get_context("spawn")


def write_range(properties, first, last, batch):
    conf = Configuration(properties)
    conf.set("index.embedded.batch", batch)
    writer = EmbeddedIndexWriter(conf)
    writer.open(conf, {})
    for number in range(first, last):
        writer.write(doc(str(number), content=f"word number{number}"))
    writer.close()


def start(target, *arguments):
    process = SPAWN.Process(target=target, args=arguments)
    process.start()
    return process


def test_concurrent_writers_and_searchers_work(conf):
    EmbeddedIndexWriter(conf).prepare(conf, {}, False)
    processes = [start(write_range, conf.raw_properties(), first, first + 200, 50) for first in (0, 150, 300)]
    searcher = EmbeddedSearcher(conf)
    seen = [0]
    while any(process.is_alive() for process in processes):
        searcher = searcher.reopen()
        seen.append(searcher.count())
        time.sleep(0.01)
    for process in processes:
        process.join()
        assert process.exitcode == 0
    assert all(count <= 500 for count in seen)
    assert EmbeddedSearcher(conf).count() == 500  # overlapping ids exist once
    assert search(conf, "number160").total == 1


def write_for_ever(properties, ready):
    conf = Configuration(properties)
    conf.set("index.embedded.batch", 20)
    writer = EmbeddedIndexWriter(conf)
    writer.open(conf, {})
    for round_number in range(1_000_000):
        for number in range(20):
            writer.write(doc(str(number), content=f"word round{round_number}"))
        ready.send(round_number)


@pytest.mark.parametrize("delay", [0.0, 0.005, 0.02, 0.05])
def test_killed_writer_leaves_whole_commits_and_no_lock(conf, delay):
    conf.set("index.lock.timeout", 20)
    ours, theirs = SPAWN.Pipe(duplex=False)
    process = start(write_for_ever, conf.raw_properties(), theirs)
    committed = [ours.recv(), ours.recv()]
    time.sleep(delay)
    assert strike(process)
    while ours.poll():
        committed.append(ours.recv())

    searcher = EmbeddedSearcher(conf)
    assert searcher.count() == 20
    rounds = {searcher.get_document(str(number))["content"] for number in range(20)}
    assert len(rounds) == 1  # of one commit, the last that was reported or the one after it
    assert int(rounds.pop().removeprefix("word round")) in (committed[-1], committed[-1] + 1)

    write_range(conf.raw_properties(), 0, 30, 10)
    assert EmbeddedSearcher(conf).count() == 30
    assert search(conf, "number7").total == 1


def hold_lock(properties, ready):
    with IndexDirectory.from_conf(Configuration(properties)).lock():
        ready.send(True)
        signal.pause()


def test_writer_waits_for_lock_up_to_timeout(conf):
    ours, theirs = SPAWN.Pipe(duplex=False)
    holder = start(hold_lock, conf.raw_properties(), theirs)
    assert ours.recv()
    conf.set("index.lock.timeout", 0.1)
    writer = EmbeddedIndexWriter(conf)
    writer.open(conf, {})
    writer.write(doc("a", content="word"))
    with pytest.raises(LockedError, match=r"locked by another process .* raise index\.lock\.timeout"):
        writer.commit()
    assert strike(holder)
    writer.commit()  # the failure loses no document of the batch
    assert search(conf, "word").total == 1


def test_writer_killed_during_creation_leaves_usable_index(conf):
    folder = IndexDirectory.from_conf(conf)
    with folder.lock():
        pass
    (folder.path / "index.json").write_text('{"half')  # a folder with no meta.json holds no index
    with pytest.raises(IndexingError, match="no index found"):
        search(conf, "word")
    write_range(conf.raw_properties(), 0, 3, 10)
    assert search(conf, "word").total == 3
