"""Where a batch ends: the cut at topN through the blocks that reduce tasks keep, and what stays of these."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import StoreError
from nutch2py.jobs.batches.batch_lists import BatchListStore, BatchState, candidate_prefix
from nutch2py.jobs.generate import candidate_blocks, generate_job
from nutch2py.jobs.generate.batch_writer_job import BatchWriterJob
from nutch2py.jobs.generate.candidate_blocks import (
    CandidateBlock,
    CandidateBlockWriter,
    decode_entry,
    encode_entry,
    find_last_entry,
    locate_blocks,
    make_block_splits,
    read_block_entries,
)
from nutch2py.mapreduce.input_splits import DerivedTableSplit
from nutch2py.records.webpage import DerivedRow, Mark, WebPage
from nutch2py.table import KeyRange, open_store, prefix_range
from tests.jobs.rows import fetchlist, marked, put

NOW = 1_700_000_000_000


def in_blocks(lines: Sequence[bytes], size: int, bucket: int) -> tuple[list[CandidateBlock], dict[str, list[bytes]]]:
    parts = [sorted(lines)[start : start + size] for start in range(0, len(lines), size)]
    blocks = [CandidateBlock(f"{bucket}/{number:03d}", part[0], len(part)) for number, part in enumerate(parts)]
    return blocks, {block.key: part for block, part in zip(blocks, parts, strict=True)}


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sets(st.integers(0, 300)), min_size=1, max_size=8), st.integers(1, 400), st.integers(1, 40))
def test_top_n_cut_equals_cut_of_full_sort(numbers: list[set[int]], limit: int, size: int) -> None:
    """Of buckets of any size, also empty ones; an entry is in one bucket only."""
    buckets, held = [], {}
    for bucket, found in enumerate(numbers):
        lines = [b"%05d" % (number * len(numbers) + bucket) for number in found]
        blocks, content = in_blocks(lines, size, bucket)
        buckets.append(blocks)
        held |= content
    whole = sorted(line for lines in held.values() for line in lines)
    assert find_last_entry(buckets, limit, lambda block: held[block.key]) == (
        whole[limit - 1] if limit < len(whole) else None
    )


def test_top_n_reads_few_blocks() -> None:
    """Twice as many as there are buckets, and not all."""
    chance = random.Random(3)
    shares: list[list[bytes]] = [[] for _ in range(10)]
    for number in range(20_000):
        chance.choice(shares).append(b"%08d" % number)
    made = [in_blocks(lines, 50, number) for number, lines in enumerate(shares)]
    held = {key: part for _, content in made for key, part in content.items()}
    read: list[str] = []

    def lines(block: CandidateBlock) -> list[bytes]:
        read.append(block.key)
        return held[block.key]

    assert find_last_entry([blocks for blocks, _ in made], 7_000, lines) == b"%08d" % 6_999
    assert len(read) <= 2 * len(shares) + 1


def test_only_blocks_before_cut_are_read(conf: Configuration) -> None:
    store = open_store(conf, DerivedRow)
    store.create()
    texts = [f"{number:016x}http://a.example/\\\t{number}\x01\x01" for number in range(2_500)]
    with store.batch() as batch:
        writer = CandidateBlockWriter(batch, "b/1", "00003")
        for text in texts:
            writer.add(text)
        record = writer.close()
    blocks = locate_blocks("b/1", "00003", record)
    assert [block.entry_count for block in blocks] == [1_000, 1_000, 500]
    assert [*store.keys(prefix_range(candidate_prefix("b/1")))] == [block.key for block in blocks]
    whole = [
        decode_entry(line) for part in read_block_entries(store, prefix_range(candidate_prefix("b/1"))) for line in part
    ]
    assert whole == texts
    for tasks in (1, 2, 9):
        found = make_block_splits([blocks, []], encode_entry(texts[1_500]), tasks)
        keys = [key for split in found if isinstance(split, DerivedTableSplit) for key in store.keys(split.key_range)]
        assert keys == [block.key for block in blocks[:2]]
    assert make_block_splits([blocks], None, 1) == [DerivedTableSplit(KeyRange(blocks[0].key, f"{blocks[2].key}\x00"))]


@pytest.mark.parametrize("cap", ["-1", "20"])
@pytest.mark.parametrize("held", [500_000, 3])
def test_batch_is_independent_of_reduce_tasks(
    conf: Configuration, monkeypatch: pytest.MonkeyPatch, cap: str, held: int
) -> None:
    """Also when map tasks give on more than they may hold, and the blocks are small."""
    monkeypatch.setattr(generate_job, "MAX_HELD_ENTRIES", held)
    monkeypatch.setattr(candidate_blocks, "ENTRIES_PER_BLOCK", 7)
    chance = random.Random(5)
    urls = [f"http://h{min(number % 17, number % 5)}.example/{number}.html" for number in range(600)]
    put(conf, {url: {"score": float(chance.randrange(20))} for url in urls})
    conf.set("generate.max.count", cap)
    conf.set("mapreduce.job.maps", "3")
    conf.set("partition.url.seed", "7")
    found = {}
    for reduces in (1, 2, 5):
        conf.set("mapreduce.job.reduces", str(reduces))
        name = f"b{reduces}"
        generate_job.generate(conf, batch_id=name, top_n=90, now=NOW)
        found[reduces] = marked(conf, Mark.GENERATE, name)
        assert sum(map(len, fetchlist(conf, name).values())) == 90
        lists = BatchListStore(conf)
        assert [*lists.store.keys(prefix_range(candidate_prefix(name)))] == []
        lists.remove_generate_marks(open_store(conf, WebPage), name, lambda: None)
    assert found[1] == found[2] == found[5]
    assert len(found[1]) == 90


def test_blocks_of_killed_job_are_recreated(conf: Configuration, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is killed when its blocks are written, and no list: rows have changed since, and the blocks are old."""
    put(conf, {f"http://a.example/{number}": {"score": float(number)} for number in range(10)})

    def die(*_: object) -> None:
        raise StoreError("gone")

    with monkeypatch.context() as patch:
        patch.setattr(BatchWriterJob, "map_derived_rows", die)
        with pytest.raises(StoreError):
            generate_job.generate(conf, batch_id="b", top_n=4, now=NOW)
    lists = BatchListStore(conf)
    state = lists.get_record("b")
    assert state is not None
    assert state.state == BatchState.GENERATING
    assert [*lists.store.keys(prefix_range(candidate_prefix("b")))]
    put(conf, {"http://a.example/0": {"score": 100.0}})
    assert generate_job.generate(conf, batch_id="b", top_n=2, now=NOW).urls == 2
    assert marked(conf, Mark.GENERATE, "b") == {"http://a.example/0", "http://a.example/9"}
    assert [*lists.store.keys(prefix_range(candidate_prefix("b")))] == []
