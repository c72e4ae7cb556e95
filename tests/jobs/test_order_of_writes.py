"""What is durable before what, with buffers so small that they are full all the time."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import IndexingError
from nutch2py.indexer.index_writers import IndexWriters
from nutch2py.jobs.batches.batch_lists import BatchListStore
from nutch2py.jobs.fetch.fetch_job import fetch
from nutch2py.jobs.generate.generate_job import generate
from nutch2py.jobs.index.index_job import index
from nutch2py.jobs.interrupted_updates import finish_all_interrupted_updates
from nutch2py.jobs.parse_job import parse
from nutch2py.jobs.updatedb.updatedb_job import updatedb
from nutch2py.records.cells import ParseStatus
from nutch2py.records.webpage import CrawlStatus, Mark, WebPage
from nutch2py.table import TableQuery, WriteBatch, open_store
from nutch2py.table.embedded.embedded_batch import EmbeddedBatch
from nutch2py.url.keys import unreverse_url
from tests.jobs.rows import marked, pages, put
from tests.site.server import Reply, ScriptedSite


class Killed(BaseException):
    """Stands for the end of the process: nothing handles it."""


@pytest.fixture
def small(conf: Configuration) -> Configuration:
    """Give a configuration whose write buffers hold less than two pages, and more than two notes."""
    conf.set("storage.buffer.write.bytes", "150")
    conf.set("http.filter.ipaddress.exclude", "")
    conf.set("fetcher.server.delay", "0")
    return conf


def updated(number: int) -> dict[str, Any]:
    return {
        "marks": {Mark.UPDATEDB: "b"},
        "status": CrawlStatus.FETCHED,
        "parse_status": ParseStatus(1, 0, ()),
        "title": f"Page {number}",
        "text": "words",
        "batch_id": "b",
    }


def test_indexed_mark_is_written_after_index_commit(small: Configuration, monkeypatch: pytest.MonkeyPatch) -> None:
    small.set("storage.buffer.write.bytes", "1000000")
    small.set("gora.buffer.write.limit", "2")
    put(small, {f"http://a.test/{number}": updated(number) for number in range(9)})
    commits = []
    commit = IndexWriters.commit

    def third_fails(writers: IndexWriters) -> None:
        commits.append(len(marked(small, Mark.INDEX)))
        if len(commits) == 3:
            raise IndexingError("no index any more")
        commit(writers)

    monkeypatch.setattr(IndexWriters, "commit", third_fails)
    with pytest.raises(IndexingError):
        index(small, "b")
    assert commits == [0, 2, 4]
    assert len(marked(small, Mark.INDEX)) == 4


@pytest.mark.parametrize(("answer", "parsing"), [("moved", "false"), ("changed", "true"), ("changed", "false")])
def test_removed_link_is_noted_before_page_loses_it(
    small: Configuration, site: ScriptedSite, monkeypatch: pytest.MonkeyPatch, answer: str, parsing: str
) -> None:
    """Killed at any write of a page, the inlink of the link that was lost is dropped all the same."""
    small.set("fetcher.parse", parsing)
    urls = [site.url(f"/{number}") for number in range(6)]
    target = site.url("/target")
    for number in range(6):
        moved = Reply(302, headers=[("Location", "/elsewhere")])  # which replaces its links unread
        site.on(f"/{number}", moved if answer == "moved" else Reply(body=b"<p>no link any more"))
    known = {"outlinks": {target: "to it"}, "status": CrawlStatus.FETCHED, "fetch_time": 1}
    put(small, dict.fromkeys(urls, known) | {target: {"inlinks": dict.fromkeys(urls, "to it"), "fetch_time": 2**50}})
    generate(small, batch_id="b")
    job = fetch
    if (answer, parsing) == ("changed", "false"):  # fetch leaves their links alone
        fetch(small, "b")
        job = parse
    flush, writes = WriteBatch.flush, []

    def die_after_the_second(batch: WriteBatch) -> None:
        if len(writes) == 2:
            raise Killed  # a process that is dead writes nothing more
        pending = batch.has_pending()
        flush(batch)
        if pending and isinstance(batch, EmbeddedBatch) and batch.schema == WebPage.SCHEMA:
            writes.append(batch)
            if len(writes) == 2:
                raise Killed

    monkeypatch.setattr(WriteBatch, "flush", die_after_the_second)
    with pytest.raises(Killed):
        job(small, "b")
    monkeypatch.undo()
    without = {url for url, page in pages(small).items() if url in urls and target not in page.outlinks}
    noted = {
        unreverse_url(key)
        for key, _ in BatchListStore(small).iter_dropped_links(BatchListStore(small).dropped_links_range("b"))
    }
    assert without
    assert without <= noted
    fetch(small, "b", resume=True)
    if parsing == "false":
        parse(small, "b")
    updatedb(small, "b")
    assert dict(pages(small)[target].inlinks) == {}


@pytest.mark.parametrize("batch_id", ["b", "-all"])
def test_interrupted_update_is_finished_by_next_job(
    small: Configuration, monkeypatch: pytest.MonkeyPatch, batch_id: str
) -> None:
    """Killed at any write, also of those with which it tidies up: what is left of it stands for a later update."""
    small.set("joblog.keep", "0")  # whose writes are none of the update's
    small.set("storage.buffer.write.bytes", "1000000")  # what tidies up writes by itself all the same
    lists = BatchListStore(small)
    write = EmbeddedBatch._write
    count, last, committed = 0, False, 0
    while not last:
        lists.store.drop()
        open_store(small, WebPage).drop()
        count, last, writes = count + 1, True, 0
        put(small, {f"http://a.test/{number}": {"fetch_time": 1} for number in range(2)})
        generate(small, batch_id="b")
        with lists.store.batch() as batch:
            lists.put_dropped_links(batch, "b", "test.a:http/0", ["http://a.test/1"])

        def die(batch: EmbeddedBatch, count: int = count) -> None:
            nonlocal writes, last
            writes += 1
            if writes == count:
                last = False
                raise Killed
            write(batch)

        monkeypatch.setattr(EmbeddedBatch, "_write", die)
        with suppress(Killed):
            updatedb(small, batch_id)
        monkeypatch.setattr(EmbeddedBatch, "_write", write)
        if [state.state for state in lists.list_records()] == ["generated"]:
            continue  # before the commit point: nothing has happened
        committed += 1
        finish_all_interrupted_updates(small)
        assert [(state.batch_id, state.state) for state in lists.list_records()] == [("b", "updated")], f"write {count}"
        rest = [key for key, _ in lists.store.scan(TableQuery(None)) if key.startswith(("u/", "j/"))]
        assert rest == [], f"write {count}"
    assert committed > 3
