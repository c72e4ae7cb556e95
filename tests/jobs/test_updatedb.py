"""DbUpdaterJob: links turned round, limits on them, batches without a list, and the journal."""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import UnknownBatchError
from nutch2py.jobs.batches.batch_lists import (
    BatchListStore,
    BatchState,
    journal_prefix,
    put_list_entry,
)
from nutch2py.jobs.batches.cell_compression import compress_cell, decompress_cell
from nutch2py.jobs.batches.update_journal import JournalWriter
from nutch2py.jobs.dedup_job import dedup
from nutch2py.jobs.fetch.fetch_job import fetch
from nutch2py.jobs.generate.generate_job import generate
from nutch2py.jobs.hostdb.hostdb_jobs import updatehostdb
from nutch2py.jobs.index.clean_job import clean
from nutch2py.jobs.index.index_job import index
from nutch2py.jobs.inject.inject_job import inject
from nutch2py.jobs.interrupted_updates import finish_all_interrupted_updates
from nutch2py.jobs.pagerank.pagerank_job import pagerank
from nutch2py.jobs.parse_job import parse
from nutch2py.jobs.readdb.readdb_commands import print_batches, print_stats
from nutch2py.jobs.readdb.stats_breakdown import BreakdownParameters
from nutch2py.jobs.updatedb.updatedb_job import updatedb
from nutch2py.mapreduce.mrjob_protocols import SortedTextProtocol, descending_sort_key
from nutch2py.records.cells import decode_float, encode_float
from nutch2py.records.webpage import CrawlStatus, DerivedRow, Mark, MetadataKey, WebPage
from nutch2py.schedule.default_fetch_schedule import DefaultFetchSchedule
from nutch2py.scoring.opic_scoring_filter import OPICScoringFilter
from nutch2py.table import TableQuery, open_store, prefix_range
from nutch2py.url.keys import reverse_url
from tests.jobs.rows import pages, put

BATCH = "1600000000-1"
A, B, C, D = (f"http://{name}.example/" for name in "abcd")
NOW = 1_600_000_000_000


def fetched(links: dict[str, str], batch: str = BATCH, **attributes: Any) -> dict[str, Any]:
    """Return the attributes of a page of a batch that was fetched and parsed."""
    marks = {
        Mark.GENERATE: batch,
        Mark.FETCH: batch,
        Mark.PARSE: batch,
        Mark.DISTANCE: "0",
        **attributes.pop("marks", {}),
    }
    return {
        "status": CrawlStatus.FETCHED,
        "fetch_time": NOW,
        "prev_fetch_time": NOW,
        "outlinks": links,
        "metadata": {MetadataKey.CASH: encode_float(1.0)},
        "marks": marks,
        **attributes,
    }


def listed(conf: Configuration, urls: list[str], batch: str = BATCH) -> None:
    """Make the batch list of some URLs."""
    lists = BatchListStore(conf)
    lists.set_state(batch, BatchState.GENERATING)
    with lists.store.batch() as writes:
        for order, url in enumerate(urls):
            put_list_entry(writes, batch, "00000", order, reverse_url(url))
    lists.set_state(batch, BatchState.GENERATED, len(urls))


def journal_entries(conf: Configuration, batch: str = BATCH) -> int:
    """Return how many entries the journal of a batch has."""
    store = BatchListStore(conf).store
    return sum(1 for _ in store.scan(TableQuery(None, prefix_range(journal_prefix(batch))))) if store.exists() else 0


class TestLinks:
    def test_targets_receive_inlinks_score_and_distance(self, conf: Configuration) -> None:
        put(conf, {A: fetched({B: "to b", C: ""}), B: {"score": 3.0, "marks": {Mark.DISTANCE: "7"}}})
        updatedb(conf, BATCH)
        rows = pages(conf)
        assert dict(rows[B].inlinks) == {A: "to b"}
        assert dict(rows[C].inlinks) == {A: ""}
        assert (rows[B].score, rows[C].score) == (3.5, 0.5)
        assert decode_float(rows[C].metadata[MetadataKey.CASH]) == 0.5
        assert decode_float(rows[A].metadata[MetadataKey.CASH]) == 0.0
        assert [rows[url].markers[Mark.DISTANCE] for url in (A, B, C)] == ["0", "1", "1"]
        assert rows[C].status == CrawlStatus.UNFETCHED

    @pytest.mark.parametrize("where", ["update_score", "schedule"])
    def test_score_is_distributed_once_when_later_plugin_fails(
        self, conf: Configuration, monkeypatch: pytest.MonkeyPatch, where: str
    ) -> None:
        """The page keeps its marks, and the next update takes it up again: with the cash that it has got since."""
        conf.set("plugin.failures.share", "1")
        put(conf, {A: fetched({B: "b"}), C: fetched({A: "a"}), B: {"score": 3.0}})
        of_a = reverse_url(A)

        def failing(*arguments: Any, **_: Any) -> None:
            if A in arguments:
                raise RuntimeError("no good")
            right(*arguments)

        owner: Any = OPICScoringFilter if where == "update_score" else DefaultFetchSchedule
        member = "update_score" if where == "update_score" else "set_fetch_schedule"
        right = getattr(owner, member)
        with monkeypatch.context() as patch:
            patch.setattr(owner, member, failing)
            updatedb(conf, BATCH)
        assert Mark.GENERATE in open_store(conf, WebPage).get(of_a).markers
        updatedb(conf, BATCH)
        rows = pages(conf)
        assert Mark.GENERATE not in rows[A].markers
        taken = 1.0 if where == "schedule" else 0.0  # C's share, which no update added to A
        assert rows[B].score == 4.0 + taken
        assert decode_float(rows[A].metadata[MetadataKey.CASH]) == 0.0

    def test_page_is_released_with_next_fetch_time(self, conf: Configuration) -> None:
        put(conf, {A: fetched({})})
        updatedb(conf, BATCH)
        page = pages(conf)[A]
        assert dict(page.markers) == {Mark.UPDATEDB: BATCH, Mark.DISTANCE: "0"}
        assert page.fetch_time == NOW + 2_592_000_000

    def test_inlinks_of_earlier_batches_are_kept(self, conf: Configuration) -> None:
        put(conf, {A: fetched({C: "one"}), C: {"inlinks": {D: "from d"}}})
        updatedb(conf, BATCH)
        put(conf, {B: fetched({C: "two"}, "second")})
        updatedb(conf, "second")
        assert dict(pages(conf)[C].inlinks) == {A: "one", B: "two", D: "from d"}

    def test_inlink_of_removed_link_is_dropped(self, conf: Configuration) -> None:
        """Fetched and parsed again: the parse notes what it drops, and updatedb takes it from the targets."""
        put(conf, {A: fetched({B: "b", C: "c"}), D: {"score": 1.0}})
        updatedb(conf, BATCH)
        body = f'<html><body><a href="{C}">c again</a> <a href="{D}">d</a></body></html>'.encode()
        again = fetched({B: "b", C: "c"}, "second", content=body, content_type="text/html", base_url=A)
        del again["marks"][Mark.PARSE]
        put(conf, {A: again})
        parse(conf, "second")
        updatedb(conf, "second")
        rows = pages(conf)
        assert dict(rows[A].outlinks) == {C: "c again", D: "d"}
        assert [dict(rows[url].inlinks) for url in (B, C, D)] == [{}, {A: "c again"}, {A: "d"}]

    def test_inlinks_are_limited_to_best_pages(self, conf: Configuration) -> None:
        conf.set("db.update.max.inlinks", "3")
        sources = [f"http://s{number}.example/" for number in range(6)]
        cash = {url: {MetadataKey.CASH: encode_float(float(number))} for number, url in enumerate(sources)}
        put(conf, {url: fetched({B: str(number)}, metadata=cash[url]) for number, url in enumerate(sources)})
        updatedb(conf, BATCH)
        assert set(pages(conf)[B].inlinks) == set(sources[3:])

    def test_new_inlinks_precede_old_ones(self, conf: Configuration) -> None:
        conf.set("db.update.max.inlinks", "2")
        put(conf, {A: fetched({B: "new"}), B: {"inlinks": {C: "old", D: "old"}}})
        updatedb(conf, BATCH)
        inlinks = dict(pages(conf)[B].inlinks)
        assert inlinks[A] == "new"
        assert len(inlinks) == 2

    def test_new_rows_are_added_only_when_allowed(self, conf: Configuration) -> None:
        conf.set("db.update.additions.allowed", "false")
        put(conf, {A: fetched({B: "b", C: "c"}), B: {"score": 0.0}})
        updatedb(conf, BATCH)
        rows = pages(conf)
        assert set(rows) == {A, B}
        assert dict(rows[B].inlinks) == {A: "b"}

    def test_nearest_page_sets_distance(self, conf: Configuration) -> None:
        put(conf, {A: fetched({C: ""}, marks={Mark.DISTANCE: "4"}), B: fetched({C: ""}, marks={Mark.DISTANCE: "2"})})
        updatedb(conf, BATCH)
        assert pages(conf)[C].markers[Mark.DISTANCE] == "3"

    def test_longer_path_does_not_increase_distance(self, conf: Configuration) -> None:
        put(conf, {A: fetched({B: ""}, marks={Mark.DISTANCE: "4"}), B: {"marks": {Mark.DISTANCE: "1"}}})
        updatedb(conf, BATCH)
        assert pages(conf)[B].markers[Mark.DISTANCE] == "1"

    def test_page_without_distance_sets_none(self, conf: Configuration) -> None:
        page = fetched({B: ""})
        del page["marks"][Mark.DISTANCE]
        put(conf, {A: page})
        updatedb(conf, BATCH)
        assert Mark.DISTANCE not in pages(conf)[B].markers

    def test_invalid_links_are_tolerated(self, conf: Configuration) -> None:
        put(conf, {A: fetched({"nonsense": "", "": "", B: "b"})})
        updatedb(conf, BATCH)
        assert set(pages(conf)) == {A, B}


class TestRowsOfTheBatch:
    def test_unparsed_page_is_scheduled_without_update_mark(self, conf: Configuration) -> None:
        page = fetched({})
        del page["marks"][Mark.PARSE]
        put(conf, {A: page})
        updatedb(conf, BATCH)
        assert dict(pages(conf)[A].markers) == {Mark.DISTANCE: "0"}
        assert pages(conf)[A].fetch_time > NOW

    def test_unfetched_page_is_released_unchanged(self, conf: Configuration) -> None:
        put(conf, {A: {"marks": {Mark.GENERATE: BATCH}, "fetch_time": 5, "status": CrawlStatus.UNFETCHED}})
        updatedb(conf, BATCH)
        page = pages(conf)[A]
        assert dict(page.markers) == {}
        assert (page.fetch_time, page.status) == (5, CrawlStatus.UNFETCHED)

    @pytest.mark.parametrize("outlinks", [{}, {B: "b", C: "c"}], ids=["never fetched", "of an earlier fetch"])
    def test_unfetched_page_keeps_its_cash(self, conf: Configuration, outlinks: dict[str, str]) -> None:
        cash = {MetadataKey.CASH: encode_float(0.5)}
        marks = {Mark.GENERATE: BATCH}
        put(conf, {A: {"marks": marks, "metadata": cash, "outlinks": outlinks, "score": 0.5, "fetch_interval": 9}})
        updatedb(conf, BATCH)
        rows = pages(conf)
        assert rows.keys() == {A}
        assert decode_float(rows[A].metadata[MetadataKey.CASH]) == 0.5
        put(conf, {A: {**fetched({B: "b", C: "c"}, "next"), "metadata": cash}})
        updatedb(conf, "next")
        rows = pages(conf)
        assert decode_float(rows[A].metadata[MetadataKey.CASH]) == 0.0
        assert [rows[url].score for url in (B, C)] == [0.25, 0.25]

    def test_rows_of_other_batches_are_unchanged(self, conf: Configuration) -> None:
        put(conf, {A: fetched({}), B: fetched({C: "c"}, "other")})
        updatedb(conf, BATCH)
        rows = pages(conf)
        assert C not in rows
        assert rows[B].markers[Mark.GENERATE] == "other"
        updatedb(conf, "-all")
        assert dict(pages(conf)[C].inlinks) == {B: "c"}

    @pytest.mark.parametrize("with_list", [False, True], ids=["of Nutch 2", "listed"])
    def test_batch_list_and_scan_give_same_result(self, conf: Configuration, with_list: bool) -> None:
        put(conf, {A: fetched({B: "b", C: "c"}), B: fetched({A: "a", D: "d"}), C: {}})
        if with_list:
            listed(conf, [A, B])
        result = updatedb(conf, BATCH)
        counts = {"pages": 2, "links": 4, "rows_new": 1, "rows_linked": 1}
        assert {name: result.count("updatedb", name) for name in counts} == counts
        assert {url: dict(page.inlinks) for url, page in pages(conf).items()} == {
            A: {B: "a"},
            B: {A: "b"},
            C: {A: "c"},
            D: {B: "d"},
        }

    def test_listed_row_without_mark_is_skipped(self, conf: Configuration) -> None:
        put(conf, {A: fetched({B: "b"}), C: {"outlinks": {D: "d"}}})
        listed(conf, [A, C, "http://not.there.example/"])
        updatedb(conf, BATCH)
        assert set(pages(conf)) == {A, B, C}

    def test_repeated_updatedb_changes_nothing(self, conf: Configuration) -> None:
        put(conf, {A: fetched({B: "b"})})
        listed(conf, [A])
        updatedb(conf, BATCH)
        before = list(open_store(conf, WebPage).scan_cells())
        updatedb(conf, BATCH)
        assert list(open_store(conf, WebPage).scan_cells()) == before


Job = Callable[[Configuration], object]


def _inject_nothing_new(conf: Configuration) -> None:
    seeds = Path(conf.get("storage.data.store", "").removeprefix("embedded:")).parent / "seeds.txt"
    seeds.write_text(f"{A}\n")
    inject(conf, str(seeds))


def _unknown(job: Callable[[Configuration, str], object], conf: Configuration) -> None:
    with pytest.raises(UnknownBatchError):
        job(conf, "next")


class TestJournal:
    """Killed before the commit point, an update has not happened; after it, the next job of any kind finishes it."""

    @pytest.fixture
    def killed(self, conf: Configuration, monkeypatch: pytest.MonkeyPatch) -> Configuration:
        """An update killed between the commit point and the first write."""
        put(conf, {A: fetched({B: "b"})})
        listed(conf, [A])

        def die(conf: Configuration, batch_id: str, check: object) -> None:
            raise SystemExit(137)

        with monkeypatch.context() as patch:
            patch.setattr("nutch2py.jobs.updatedb.updatedb_job.apply_journal", die)
            with pytest.raises(SystemExit):
                updatedb(conf, BATCH)
        assert set(pages(conf)) == {A}
        assert journal_entries(conf) == 1
        return conf

    @pytest.mark.parametrize(
        "job",
        [
            _inject_nothing_new,
            lambda conf: generate(conf, batch_id="next"),
            lambda conf: _unknown(fetch, conf),
            lambda conf: _unknown(parse, conf),
            lambda conf: _unknown(updatedb, conf),
            lambda conf: _unknown(index, conf),
            dedup,
            clean,
            pagerank,
            lambda conf: updatehostdb(conf, False),
            lambda conf: print_stats(conf, BreakdownParameters()),
            print_batches,
        ],
        ids=[
            *("inject", "generate", "fetch", "parse", "updatedb", "index", "dedup", "clean", "pagerank"),
            *("updatehostdb", "readdb -stats", "readdb -batches"),
        ],
    )
    def test_pending_update_is_finished_by_other_job_first(
        self, killed: Configuration, job: Job, capsys: pytest.CaptureFixture[str]
    ) -> None:
        job(killed)
        assert f"DbUpdaterJob: finishing the interrupted update of batch {BATCH}" in capsys.readouterr().out
        rows = pages(killed)
        assert dict(rows[B].inlinks) == {A: "b"}
        assert rows[B].score == 1.0
        assert journal_entries(killed) == 0
        state = BatchListStore(killed).get_record(BATCH)
        assert state is not None
        assert state.state == BatchState.UPDATED

    def test_score_is_added_once_despite_repeated_journal(self, killed: Configuration) -> None:
        lists = BatchListStore(killed)
        kept = [
            (key, entry.data) for key, entry in lists.store.scan(TableQuery(None, prefix_range(journal_prefix(BATCH))))
        ]
        state = lists.get_record(BATCH)
        assert state is not None
        for _ in range(3):
            finish_all_interrupted_updates(killed)
            with lists.store.batch() as batch:
                for key, data in kept:
                    entry = DerivedRow()
                    entry.data = data
                    batch.put(key, entry)
            lists.set_state(BATCH, BatchState.APPLYING, state.count)
        finish_all_interrupted_updates(killed)
        assert pages(killed)[B].score == 1.0

    def test_journal_without_commit_is_discarded(self, conf: Configuration) -> None:
        put(conf, {A: fetched({B: "b"})})
        listed(conf, [A])
        orphan = WebPage()
        orphan.score = 99.0
        with JournalWriter(BatchListStore(conf).store, BATCH) as writer:
            writer.add(reverse_url(D), orphan.mutation())
        assert generate(conf, batch_id="next").urls == 0
        assert journal_entries(conf) == 1
        updatedb(conf, BATCH)
        assert set(pages(conf)) == {A, B}
        assert journal_entries(conf) == 0


def test_shuffle_order_public_cases(cases: Callable[[str], list[dict[str, Any]]]) -> None:
    """UrlWithScore: groups by URL, in them by descending score; here the line that passes from map to reduce."""
    protocol = SortedTextProtocol()

    def line(url: str, score: float) -> bytes:
        return protocol.write(reverse_url(url), f"1{descending_sort_key(score)}[]")

    failed = []
    table = cases("url_with_score")
    for case in table:
        lines = [line(url, score) for url, score in case["input"]]
        groups = [text.partition(b"\t")[0] for text in lines]
        if "partitioner" in case["args"]:  # one reduce task for one key, on every runner
            holds = (len(set(groups)) == 1) == (case["expect"] == "same")
        else:
            first, second = groups if case["args"]["comparator"] == "UrlOnly" else lines
            holds = (first > second) - (first < second) == case["expect"]
        if not holds:
            failed.append(case)
    print(f"url_with_score: {len(table) - len(failed)}/{len(table)}")
    assert failed == []


def test_pending_writes_use_bounded_memory() -> None:
    data = random.Random(1).randbytes(20_000) * 20
    compress_cell(data)
    tracemalloc.start()
    try:
        waiting = [compress_cell(data) for _ in range(20)]
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert decompress_cell(waiting[0]) == data
    assert held < 1.5 * sum(map(len, waiting))
