"""What is durable before what, with buffers so small that they are full all the time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from nutch2py.cells import ParseStatus
from nutch2py.conf import Configuration
from nutch2py.errors import IndexingError
from nutch2py.indexer.index_writers import IndexWriters
from nutch2py.jobs.batchlist import BatchLists
from nutch2py.jobs.fetch import fetch
from nutch2py.jobs.generate import generate
from nutch2py.jobs.index import index
from nutch2py.jobs.parse import parse
from nutch2py.jobs.updatedb import updatedb
from nutch2py.table import WriteBatch
from nutch2py.url.keys import unreverse_url
from nutch2py.webpage import CrawlStatus, Mark
from tests.jobs.rows import marked, pages, put
from tests.site.server import Reply, ScriptedSite


class Killed(BaseException):
    """Stands for the end of the process: nothing handles it."""


@pytest.fixture
def small(conf: Configuration) -> Configuration:
    """Give a configuration whose write buffers hold two rows."""
    conf.set("gora.buffer.write.limit", "2")
    conf.set("http.filter.ipaddress.exclude", "")
    conf.set("fetcher.server.delay", "0")
    return conf


@pytest.fixture
def site() -> Iterator[ScriptedSite]:
    with ScriptedSite() as running:
        running.on("/robots.txt", Reply(404))
        yield running


def updated(number: int) -> dict[str, Any]:
    return {
        "marks": {Mark.UPDATEDB: "b"},
        "status": CrawlStatus.FETCHED,
        "parse_status": ParseStatus(1, 0, ()),
        "title": f"Page {number}",
        "text": "words",
        "batch_id": "b",
    }


def test_no_row_says_that_it_is_in_the_index_before_the_index_has_committed(
    small: Configuration, monkeypatch: pytest.MonkeyPatch
) -> None:
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


@pytest.mark.parametrize("parsing", ["false", "true"])
def test_a_link_that_is_gone_is_noted_before_its_page_has_lost_it(
    small: Configuration, site: ScriptedSite, monkeypatch: pytest.MonkeyPatch, parsing: str
) -> None:
    """Killed at any write of a page, the inlink of the link that was lost is dropped all the same."""
    small.set("fetcher.parse", parsing)
    urls = [site.url(f"/{number}") for number in range(6)]
    target = site.url("/target")
    for number in range(6):
        # half of them redirect now, which replaces their links unread
        gone = Reply(body=b"<p>no link any more") if number % 2 else Reply(302, headers=[("Location", "/elsewhere")])
        site.on(f"/{number}", gone)
    known = {"outlinks": {target: "to it"}, "status": CrawlStatus.FETCHED, "fetch_time": 1}
    put(small, dict.fromkeys(urls, known) | {target: {"inlinks": dict.fromkeys(urls, "to it"), "fetch_time": 2**50}})
    generate(small, batch_id="b")
    put_row, writes = WriteBatch.flush, []

    def die_at_the_second(batch: WriteBatch) -> None:
        put_row(batch)
        if batch.before is not None:
            writes.append(batch)
            if len(writes) == 2:
                raise Killed

    monkeypatch.setattr(WriteBatch, "flush", die_at_the_second)
    jobs = (fetch, parse)
    with pytest.raises(Killed):
        [job(small, "b") for job in jobs]
    monkeypatch.undo()
    without = {url for url, page in pages(small).items() if url in urls and target not in page.outlinks}
    noted = {unreverse_url(key) for key, _ in BatchLists(small).dropped(BatchLists(small).dropped_range("b"))}
    assert without
    assert without <= noted
    fetch(small, "b", resume=True)
    if parsing == "false":
        parse(small, "b")
    updatedb(small, "b")
    assert dict(pages(small)[target].inlinks) == {}
