"""``crawl`` ranks when enough links have changed, and updates scores only; after a kill it ends the same."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from nutch2py import Crawl
from nutch2py.cli import main
from nutch2py.conf.configuration import Configuration
from nutch2py.crawl_loop.rank_staleness import LinkChanges
from nutch2py.joblog.job_entry import JobEntry, JobState, StoredJobEntry
from nutch2py.joblog.job_log_store import encode_entry, entry_key
from nutch2py.mapreduce.job_parameters import REINDEX
from nutch2py.records.webpage import DerivedRow, WebPage
from nutch2py.table import open_store
from tests.counted_kills import Kills
from tests.crawl_loop.test_crawl_command import OPTIONS, SETTINGS, page
from tests.crawl_loop.test_resumed_crawl import Watch, folder, left
from tests.kill.crawl import Process, Shop
from tests.site.server import ScriptedSite

__all__ = ["folder"]
PAGES = 12
FIRST = ["-pages", "10"]


def jobs_of_rank(jobs: list[str]) -> list[str]:
    """Return the jobs after the last round."""
    following = jobs[len(jobs) - jobs[::-1].index("updatedb") + 1 :]
    return [job for job in following if job != "generate"]  # which found nothing


@pytest.fixture
def words(site: ScriptedSite) -> list[str]:
    """A site of which a first crawl by ``FIRST`` leaves some pages to the second."""
    site.on("/", page(*[f"/{number}" for number in range(PAGES)], text="start"))
    for number in range(PAGES):
        others = [f"/{each}" for each in {number // 2, number // 3, 3 if number > 8 else 1}]
        site.on(f"/{number}", page("/", *others, text=f"words {number}"))
    return ["crawl", site.url("/"), *OPTIONS, "-D", "pagerank.model=classic", "-D", "index.scores.share=0"]


def configuration(place: Path) -> Configuration:
    return Configuration.load(
        overrides={
            **SETTINGS,
            "http.agent.name": "test",
            "pagerank.model": "classic",
            "storage.data.store": f"embedded:{place / 'crawldata'}",
        }
    )


def ranks(place: Path) -> dict[str, tuple[float, object]]:
    """Return the rank of each page, and the score that its document has."""
    with Crawl(configuration(place)) as crawl:
        rows = {url: row.page_rank for url, row in crawl.pages(fields={WebPage.page_rank, WebPage.status})}
        hits = crawl.search("words", rows=100).hits + crawl.search("start", rows=100).hits
        documents = {hit.url: hit.fields.get("pagerank") for hit in hits}
    return {url: (rank, documents.get(url)) for url, rank in rows.items()}


@pytest.mark.parametrize(
    ("options", "following", "message"),
    [
        ([], ["pagerank", "dedup", "updatehostdb", "index", "clean"], "recomputing ranks."),
        (["-D", "crawl.reindex.share=1"], ["pagerank", "dedup", "updatehostdb", "index", "clean"], "scores changed"),
        (
            ["-D", "crawl.pagerank.share=1", "-D", "crawl.reindex.share=1"],
            ["dedup", "updatehostdb", "clean"],
            "ranks are kept.",
        ),
        (
            ["-D", "crawl.reindex.share=1", "-D", "pagerank.update.score=true"],
            ["pagerank", "dedup", "updatehostdb", "index", "clean"],
            "recomputing ranks.",
        ),
    ],
    ids=["by default", "scores alone", "neither", "boosts are others, too"],
)
def test_change_share_decides_between_scores_and_ranking(
    options: list[str],
    following: list[str],
    message: str,
    words: list[str],
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    watch = Watch(monkeypatch)
    assert watch.run([*words, *FIRST], folder) == 0
    assert jobs_of_rank(watch.jobs) == ["pagerank", "dedup", "updatehostdb", "index", "clean"]
    assert capsys.readouterr().out.lower().count("no earlier ranks are known: recomputing ranks") == 1
    assert watch.run([*words, *options], folder) == 0
    said = capsys.readouterr().out
    assert jobs_of_rank(watch.jobs) == following
    line = next(line for line in said.splitlines() if re.match(r"[1-9][\d,]* of [1-9][\d,]* links ", line))
    assert message in said
    assert ("scores changed" in said) == (message == "scores changed")
    assert re.search(r"\(\d+\.\d %\)", line)
    assert f"{PAGES + 1} documents in the index" in said
    assert main([*words, *options]) == 1


def test_other_or_incomplete_index_gets_all_documents(
    words: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    alone = ["-D", "crawl.pagerank.share=1", "-D", "crawl.reindex.share=1"]
    watch, crawled = Watch(monkeypatch), folder / "crawl"
    crawled.mkdir()
    assert watch.run([*words, *FIRST], crawled) == 0
    shutil.copytree(crawled, folder / "before")
    for more in (["-D", f"index.embedded.path={folder / 'other'}"], []):
        if not more:
            shutil.rmtree(crawled)
            shutil.copytree(folder / "before", crawled)
            shutil.rmtree(crawled / "crawldata" / "index")
        capsys.readouterr()
        assert watch.run([*words, *alone, *more], crawled) == 0
        assert jobs_of_rank(watch.jobs) == ["dedup", "updatehostdb", "index", "clean"]
        said = capsys.readouterr().out
        assert f"{PAGES + 1} documents in the index" in said, said


def test_job_log_reports_number_of_new_links(words: list[str], folder: Path) -> None:
    assert LinkChanges.from_job_log(configuration(folder)).exceeds_share(1.0, None)
    assert main([*words, *FIRST]) == 0
    with Crawl(configuration(folder)) as crawl:
        news = LinkChanges.from_job_log(crawl.conf)
        assert (news.changed_since_ranks, news.changed_since_index, news.ranks_are_indexed, news.freed_duplicates) == (
            0,
            0,
            True,
            0,
        )
        first = sum(len(row.inlinks) for _, row in crawl.pages(fields={WebPage.inlinks}))
        assert news.ranked_links
        batch = crawl.generate().batch_id
        for job in (crawl.fetch, crawl.parse, crawl.updatedb):
            job(batch)
        second = sum(len(row.inlinks) for _, row in crawl.pages(fields={WebPage.inlinks}))
        news = LinkChanges.from_job_log(crawl.conf)
        assert (news.changed_since_ranks, news.ranks_are_indexed) == (second - first, True)
        assert news.changed_since_ranks
        crawl.pagerank()
        news = LinkChanges.from_job_log(crawl.conf)
        assert (news.changed_since_ranks, news.changed_since_index, news.ranks_are_indexed) == (
            0,
            second - first,
            False,
        )
        crawl.index("-scores")
        assert LinkChanges.from_job_log(crawl.conf).ranks_are_indexed


@pytest.mark.parametrize(("ended", "expected"), [(400, 7), (250, 0)])
def test_links_of_updatedb_after_pagerank_start_are_new(folder: Path, ended: int, expected: int) -> None:
    """Started by hand while ``crawl`` was at work: pagerank has not read all that it wrote."""

    def entry(job: str, start: int, end: int, counters: dict[str, dict[str, int]], batch: str = "") -> StoredJobEntry:
        name = f"{start:013d}-00000a"
        return StoredJobEntry(entry=JobEntry(name, job, "", batch, JobState.FINISHED, start, end, end, "h", 1, "u",
                                     counters=counters))  # fmt: skip

    store = open_store(configuration(folder), DerivedRow)
    store.create()
    with store.batch() as batch:
        for stored in (
            entry("updatedb", 100, ended, {"updatedb": {"links_new": 7}}),
            entry("pagerank", 300, 500, {"pagerank": {"links": 100}}),
            entry("index", 310, 500, {}, REINDEX),
        ):
            batch.put(entry_key(stored.entry.id), encode_entry(stored))
    news = LinkChanges.from_job_log(configuration(folder))
    assert (news.ranked_links, news.changed_since_ranks, news.changed_since_index) == (100, expected, expected)


def test_crawl_stopped_at_any_job_delivers_ranks_to_index(
    words: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopped before each job of a second crawl that sends scores alone."""
    words, watch = [*words, "-D", "crawl.reindex.share=1", "-D", "crawl.pagerank.share=0"], Watch(monkeypatch)
    crawled, copies = folder / "crawl", folder / "copies"
    crawled.mkdir()
    assert watch.run([*words, *FIRST], crawled) == 0
    assert watch.run(words, crawled, copies) == 0
    whole, expected, jobs = left(crawled), ranks(crawled), watch.jobs
    assert len({score for _, score in expected.values()}) > 3
    for place in range(len(jobs) - 6, len(jobs)):
        shutil.rmtree(crawled)
        shutil.copytree(copies / str(place), crawled)
        assert watch.run(words, crawled) == 0, (place, jobs[place])
        assert (left(crawled), ranks(crawled)) == (whole, expected), (place, jobs[place])


@pytest.mark.parametrize("every", [40, pytest.param(1, marks=pytest.mark.long)])
def test_crawl_killed_at_writes_of_last_round_ends_equal(
    every: int,
    words: list[str],
    folder: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All points of the kill harness from the last round's index on: pagerank, scores and the steps between.

    It is unknown which pages a killed dedup has freed: then all documents are sent, not scores alone, and
    they have the anchors that are new since.
    """
    monkeypatch.setenv("PYTHONHASHSEED", "0")  # by which ranks are summed: each process would have other last digits
    shop, crawled, before = Shop(tmp_path_factory.mktemp("shop")), folder / "crawl", folder / "before"
    words = [*words, "-D", "crawl.reindex.share=1", "-D", "crawl.pagerank.share=0"]

    def run(number: int, more: list[str], plan: dict[str, Any]) -> Process:
        process = Process(shop, crawled, [*words, *more], plan, number)
        process.wait()
        return process

    crawled.mkdir()
    first = run(0, FIRST, {})
    assert first.popen.returncode == 0, first.said
    shutil.copytree(crawled, before)
    undisturbed = run(1, [], {})
    assert undisturbed.popen.returncode == 0, undisturbed.said
    whole, expected, points = left(crawled), ranks(crawled), undisturbed.points()
    with Crawl(configuration(crawled)) as crawl:
        crawl.index("-reindex")
    sent_anew = left(crawled)["crawl"]
    assert sent_anew != whole["crawl"]
    (scores,) = [number for number, name in enumerate(points) if name.startswith("scores before")]
    start = max(number for number, name in enumerate(points[:scores]) if name.startswith("commit after"))
    chosen = sorted({*range(start, len(points) - 1, every), scores, scores + 1})
    # on a busy machine jobs write into the job log more often than another time: the last points may not be reached
    with Kills("crawl at its last writes", len(chosen) * 5 // 6) as kills:
        for number in chosen:
            shutil.rmtree(crawled)
            shutil.copytree(before, crawled)
            killed = run(2, [], {"at": "", "number": number, "task": False, "do": "group"})
            kills.count(bool(killed.struck) and killed.popen.returncode == -9)
            again = run(3, [], {})
            assert again.popen.returncode in (0, 1), again.said
            message = f"killed at {number}, {points[number].strip()}: {again.said}"
            assert ranks(crawled) == expected, message
            assert left(crawled)["derived"] == whole["derived"], message
            assert left(crawled)["crawl"] in (whole["crawl"], sent_anew), message
