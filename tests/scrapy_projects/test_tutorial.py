"""The project of Scrapy's tutorial with two changed lines, and the jobs that process its rows."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from nutch2py.records.webpage import CrawlStatus, Mark
from tests.scrapy_projects.conftest import Project
from tests.site.server import Reply, ScriptedSite


def quotes(number: int) -> bytes:
    following = f'<ul class=pager><a href="/page/{number + 1}/">Next</a></ul>' if number < 3 else ""
    return f"""<html><head><title>Quotes {number}</title></head><body>
        <div class=quote><span class=text>Words {number} of wisdom</span> <small class=author>Author {number}</small>
        <div class=tags><a class=tag href="/tag/{number}/">tag{number}</a> <a class=tag href="/tag/b/">b</a></div></div>
        <div class=quote><span class=text>More</span> <small class=author>Other</small></div>
        {following}<a href="/about">About</a></body></html>""".encode()


@pytest.fixture
def site() -> Iterator[ScriptedSite]:
    with ScriptedSite() as running:
        running.on("/robots.txt", Reply(404))
        for number in (1, 2):
            running.on(f"/page/{number}/", Reply(body=quotes(number)))
        running.on("/page/3/", Reply(301, headers=[("Location", "/page/three/")]))
        running.on("/page/three/", Reply(body=quotes(3)))
        running.on("/tag/1/", Reply(body=b"<title>Tag</title><small class=author>Tagger</small><p>tagged"))
        running.on("/about", Reply(body=b"<title>About</title><p>about us"))
        yield running


def test_tutorial_fills_table_and_takes_batch(project: Project, site: ScriptedSite) -> None:
    batch, _ = project.run("quotes")
    rows = project.rows()
    assert set(rows) == {"/page/1/", "/page/2/", "/page/3/", "/page/three/"}
    first, moved, last = rows["/page/1/"], rows["/page/3/"], rows["/page/three/"]
    assert (first.status, first.title, first.content) == (CrawlStatus.FETCHED, "Quotes 1", quotes(1))
    assert {first.markers.get(mark) for mark in (Mark.GENERATE, Mark.FETCH, Mark.PARSE)} == {batch}
    assert first.metadata["author"] == b"Author 1\tOther"
    assert first.metadata["tags"] == b"tag1\tb"
    assert set(first.outlinks) == {site.url(path) for path in ("/page/2/", "/tag/1/", "/tag/b/", "/about")}
    assert (moved.status, set(moved.outlinks)) == (CrawlStatus.REDIR_PERM, {site.url("/page/three/")})
    assert (last.status, last.metadata["author"]) == (CrawlStatus.FETCHED, b"Author 3\tOther")

    project.crawl.updatedb(batch)
    project.crawl.index(batch)
    found = project.crawl.search("wisdom")
    assert {hit.url for hit in found.hits} == {site.url(path) for path in ("/page/1/", "/page/2/", "/page/three/")}

    site.seen.clear()
    second = project.crawl.generate()
    assert second.urls == 5  # /about, /tag/1/, /tag/2/, /tag/3/, /tag/b/
    taken, _ = project.run("batch", "-a", f"batch={second.batch_id}")
    assert taken == second.batch_id
    rows = project.rows()
    assert {path for path, page in rows.items() if page.markers.get(Mark.FETCH) == taken} == {
        "/about", "/tag/1/", "/tag/2/", "/tag/3/", "/tag/b/",
    }  # fmt: skip
    assert (rows["/tag/1/"].status, rows["/tag/1/"].metadata["author"]) == (CrawlStatus.FETCHED, b"Tagger")
    assert rows["/tag/b/"].status == CrawlStatus.GONE
    project.crawl.updatedb(taken)
    project.crawl.index(taken)
    # the others have tag1, whose letters are a word of their own, too
    assert site.url("/tag/1/") in {hit.url for hit in project.crawl.search("tagged").hits}
    assert project.crawl.generate().urls == 0


def test_batch_of_killed_spider_is_resumed(project: Project, site: ScriptedSite) -> None:
    project.crawl.inject([site.url("/page/1/"), site.url("/slow"), site.url("/about")])
    batch = project.crawl.generate().batch_id
    site.on("/slow", Reply(body=b"<p>slow", hang=60), Reply(body=b"<p>slow"))
    with project.process("batch", "-s", f"NUTCH2PY_BATCH={batch}", "-s", "CONCURRENT_REQUESTS_PER_DOMAIN=8") as spider:
        assert spider.stderr is not None
        for line in spider.stderr:
            if "GET" in line and "/about" in line:
                break
        spider.send_signal(signal.SIGKILL)
        spider.stderr.read()
    project.run("batch", "-s", f"NUTCH2PY_BATCH={batch}")
    rows = project.rows()
    assert {path: page.status for path, page in rows.items() if page.markers.get(Mark.FETCH) == batch} == dict.fromkeys(
        ("/page/1/", "/slow", "/about"), CrawlStatus.FETCHED
    )


def test_missing_batch_is_rejected(project: Project, site: ScriptedSite) -> None:
    project.crawl.inject([site.url("/page/1/")])
    assert "there is no batch 1-1" in project.run_rejected("batch", "-a", "batch=1-1")
    assert site.seen == []
