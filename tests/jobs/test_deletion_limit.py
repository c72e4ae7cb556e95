"""``index`` and ``clean`` delete only a share of an index, for every reason and runner, and nothing is lost by that."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from nutch2py import Crawl
from nutch2py.cli import main
from nutch2py.conf.configuration import Configuration
from nutch2py.errors import DeletionsRefusedError
from nutch2py.indexer.index_writers import IndexWriters
from nutch2py.joblog.job_log_store import read_entries
from nutch2py.jobs.batches.batch_lists import UNKNOWN_COUNT, BatchListStore, BatchState
from nutch2py.jobs.index import deletion_limit
from nutch2py.jobs.index.clean_job import clean
from nutch2py.jobs.index.index_job import index
from nutch2py.records.cells import ParseStatus
from nutch2py.records.webpage import CrawlStatus, Mark, MetadataKey, ParseStatusCode, WebPage
from nutch2py.search.search_backends import search
from nutch2py.table import open_store
from nutch2py.url.keys import reverse_url

PAGES = [f"http://site{number % 3}.test/{number}" for number in range(30)]
OK = ParseStatus(ParseStatusCode.SUCCESS)


def put(conf: Configuration, urls: list[str], change: Callable[[WebPage], None], batch: str = "one") -> None:
    store = open_store(conf, WebPage)
    store.create()
    with store.batch() as writes:
        for url in urls:
            page = WebPage()
            page.status, page.fetch_interval, page.content_type, page.batch_id = 2, 1, "text/html", batch
            page.title, page.text, page.parse_status, page.signature = "Title", "plankton", OK, url.encode()
            page.markers[Mark.UPDATEDB] = batch
            change(page)
            writes.put(reverse_url(url), page)


def found(conf: Configuration) -> set[str]:
    return {hit.url for hit in search(conf, "plankton", rows=100).hits}


def gone(page: WebPage) -> None:
    page.status = int(CrawlStatus.GONE)
    del page.markers[Mark.UPDATEDB]
    page.markers[Mark.INDEX] = "one"


def redirected(page: WebPage) -> None:
    gone(page)
    page.status = int(CrawlStatus.REDIR_PERM)


def noindex(page: WebPage) -> None:
    page.metadata["meta_robots"] = b"noindex"
    page.markers[Mark.INDEX] = "one"


def broken(page: WebPage) -> None:
    gone(page)
    page.status = int(CrawlStatus.FETCHED)
    page.parse_status = ParseStatus(ParseStatusCode.FAILED, ParseStatusCode.INVALID_FORMAT, ("no PDF",))


REASONS: dict[str, Callable[[WebPage], None]] = {
    "gone": gone, "redirected": redirected, "noindex": noindex, "broken": broken,
}  # fmt: skip


@pytest.fixture
def indexed(conf: Configuration) -> Configuration:
    """Index all pages; a run may delete 20 % of them, or three."""
    conf.set("indexer.delete.max.share", "0.2")
    conf.set("indexer.delete.max.count", "3")
    put(conf, PAGES, lambda _: None)
    index(conf, "-all")
    assert found(conf) == set(PAGES)
    return conf


@pytest.mark.parametrize("runner", ["inline", "local"])
@pytest.mark.parametrize("reason", REASONS)
@pytest.mark.parametrize("job", ["index -all", "clean"])
def test_job_refuses_more_deletions_than_share(
    indexed: Configuration, job: str, reason: str, runner: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if runner == "local" and reason != "gone":
        pytest.skip("the runner does not depend on the reason")
    conf = indexed
    conf.set("mapreduce.runner", runner)
    put(conf, PAGES[:7], REASONS[reason])
    put(conf, ["http://new.test/"], lambda _: None)
    run = clean if job == "clean" else lambda conf: index(conf, "-all")
    with pytest.raises(DeletionsRefusedError) as refused:
        run(conf)
    assert f"7 {reason}" in str(refused.value)
    assert "indexer.delete.max.share 0.2" in str(refused.value)
    assert "http://site0.test/" in str(refused.value)
    assert refused.value.exit_code == 12
    assert found(conf) >= set(PAGES)
    assert ("http://new.test/" in found(conf)) == (job != "clean")  # everything else is done
    with pytest.raises(DeletionsRefusedError):
        run(conf)
    conf.set("indexer.delete.max.share", "1")
    run(conf)
    assert found(conf) & set(PAGES) == set(PAGES[7:])


@pytest.mark.parametrize("count", [6, 3])
def test_deletions_within_share_or_count_are_done(indexed: Configuration, count: int) -> None:
    if count == 3:
        indexed.set("indexer.delete.max.share", "0")
    put(indexed, PAGES[:count], gone)
    result = clean(indexed)
    assert result.count("SolrClean", "DELETED") == count
    assert result.group("CleaningJob") == {"gone": count}
    assert found(indexed) == set(PAGES[count:])
    (entry,) = [each for each in read_entries(BatchListStore(indexed).store, 100) if each.job == "clean"]
    assert entry.counters["CleaningJob"] == {"gone": count}


def test_documents_that_index_lacks_do_not_count(indexed: Configuration) -> None:
    """A long crawl has more gone pages than documents, and clean names all of them each time."""
    put(indexed, [f"http://gone.test/{number}" for number in range(500)], gone)
    put(indexed, PAGES[:5], gone)
    clean(indexed)
    assert found(indexed) == set(PAGES[5:])


def test_duplicates_do_not_count(indexed: Configuration) -> None:
    def duplicate(page: WebPage) -> None:
        signature = (page.signature or b"").hex()
        page.metadata[MetadataKey.DUPLICATE] = f"{signature} {reverse_url(PAGES[0])}".encode()

    put(indexed, PAGES[1:], duplicate)
    clean(indexed)
    assert found(indexed) == {PAGES[0]}


def test_refused_batch_keeps_its_list_and_is_finished_with_force(
    indexed: Configuration, capsys: pytest.CaptureFixture[str]
) -> None:
    conf, lists = indexed, BatchListStore(indexed)
    lists.set_state("two", BatchState.UPDATED, UNKNOWN_COUNT)
    put(conf, PAGES[:10], gone, "two")
    with pytest.raises(DeletionsRefusedError):
        index(conf, "two")
    assert lists.get_record("two") is not None
    options = [word for name in ("storage.data.store", "storage.embedded.map.size", "index.embedded.path")
               if conf.get(name) for word in ("-D", f"{name}={conf.get(name)}")]  # fmt: skip
    limits = ["-D", "indexer.delete.max.share=0.2", "-D", "indexer.delete.max.count=3"]
    assert main(["index", "two", *limits, *options]) == 12
    assert found(conf) == set(PAGES)
    assert main(["index", "two", "-force", *limits, *options]) == 0
    assert found(conf) == set(PAGES[10:])
    assert lists.get_record("two") is None


@pytest.mark.parametrize("job", ["index -all", "index -reindex", "clean", "clean without commit"])
def test_crawl_deletes_beyond_limit_when_forced(indexed: Configuration, job: str) -> None:
    put(indexed, PAGES[:10], gone)

    def run(*, force: bool) -> None:
        with Crawl(indexed.copy()) as crawl:
            if job.startswith("clean"):
                crawl.clean(commit=job == "clean", force=force)
            else:
                crawl.index(job.removeprefix("index "), force=force)
            assert crawl.conf.get("indexer.delete.max.share") == "0.2"

    with pytest.raises(DeletionsRefusedError):
        run(force=False)
    assert found(indexed) == set(PAGES)
    run(force=True)
    assert found(indexed) == set(PAGES[10:])


def test_job_killed_before_deletion_deletes_when_run_again(
    indexed: Configuration, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(indexed, PAGES[:5], gone)

    def die(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(IndexWriters, "delete", die)
        with pytest.raises(KeyboardInterrupt):
            index(indexed, "-all")
    assert found(indexed) == set(PAGES)
    index(indexed, "-all")
    assert found(indexed) == set(PAGES[5:])


def test_tasks_pass_on_no_more_documents_than_needed(indexed: Configuration, monkeypatch: pytest.MonkeyPatch) -> None:
    outputs: list[int] = []
    original = deletion_limit.delete_collected

    def watch(conf: Configuration, tables: object, result: object, *more: object, **kwargs: object) -> object:
        outputs.append(len(result.output))  # type: ignore[attr-defined]
        return original(conf, tables, result, *more, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr("nutch2py.jobs.index.clean_job.delete_collected", watch)
    put(indexed, PAGES, gone)
    with pytest.raises(DeletionsRefusedError, match="30 documents of indexer-embedded, of which 6 may go"):
        clean(indexed)
    assert outputs[0] <= 6 + 2 + 1


@pytest.mark.parametrize(
    ("minor", "stays"),
    [
        (ParseStatusCode.INVALID_FORMAT, False),
        (ParseStatusCode.MISSING_CONTENT, False),
        (ParseStatusCode.EXCEPTION, True),
        (ParseStatusCode.TRUNCATED, True),
    ],
)
@pytest.mark.parametrize("job", ["batch", "-all", "-reindex", "clean"])
def test_old_text_of_broken_document_is_not_found(
    indexed: Configuration, job: str, minor: ParseStatusCode, stays: bool
) -> None:
    def fail(page: WebPage) -> None:
        broken(page)
        page.parse_status = ParseStatus(ParseStatusCode.FAILED, minor, ("bad",))

    put(indexed, PAGES[:2], fail, "two")
    put(indexed, PAGES[2:3], lambda _: None, "two")
    if job == "clean":
        clean(indexed)
    else:
        index(indexed, "two" if job == "batch" else job)
    assert found(indexed) == set(PAGES[0 if stays else 2 :])
