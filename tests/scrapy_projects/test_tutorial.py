"""A project as Scrapy's tutorial has it, changed by two lines, and what the crawl's jobs make of what it wrote."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from nutch2py.crawl import Crawl
from nutch2py.table import Query, open_store
from nutch2py.url.keys import unreverse_url
from nutch2py.webpage import CrawlStatus, Mark, WebPage
from tests.site.server import Reply, ScriptedSite

_PROJECT = Path(__file__).parent / "tutorial"
_FIELDS = frozenset(
    {WebPage.status, WebPage.markers, WebPage.metadata, WebPage.outlinks, WebPage.title, WebPage.content, WebPage.score}
)


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


class Project:
    def __init__(self, folder: Path, site: ScriptedSite) -> None:
        self.crawl = Crawl(
            f"embedded:{folder}",
            properties={
                "http.agent.name": "tutorial",
                "index.db.md": "author,tags",
                "index.metadata.separator": "\t",
                "index.metadata.multivalued.fields": "author,tags",
                "indexer.embedded.path": str(folder / "index"),
                "plugin.includes": "protocol-http|urlfilter-validator|parse-(html|text)|index-(basic|metadata)"
                "|scoring-opic|urlnormalizer-(pass|regex|basic)|indexer-embedded",
            },
        )
        self.site, self.folder = site, folder

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-P", "-m", "scrapy", "crawl", *words]

    @property
    def environment(self) -> dict[str, str]:
        root = str(Path(__file__).resolve().parents[2])
        return {**os.environ, "SITE": self.site.url(""), "CRAWL": f"embedded:{self.folder}", "PYTHONPATH": root}

    def run(self, *words: str) -> tuple[str, str]:
        """Run a spider; return its batch and its log."""
        done = subprocess.run(
            self.command(*words),
            cwd=_PROJECT,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert "Traceback" not in done.stderr, done.stderr
        found = re.search(r"'nutch2py/batch': '([^']+)'", done.stderr)
        assert found is not None, done.stderr
        return found[1], done.stderr

    def rows(self) -> dict[str, WebPage]:
        store = open_store(self.crawl.conf, WebPage)
        return {unreverse_url(key).removeprefix(self.site.url("")): page for key, page in store.scan(Query(_FIELDS))}


@pytest.fixture
def project(tmp_path: Path, site: ScriptedSite) -> Iterator[Project]:
    made = Project(tmp_path / "crawl", site)
    with made.crawl:
        yield made


def test_the_tutorial_fills_the_table_and_takes_a_batch(project: Project, site: ScriptedSite) -> None:
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
    assert [hit.url for hit in project.crawl.search("tagged").hits] == [site.url("/tag/1/")]
    assert project.crawl.generate().urls == 0


def test_a_killed_spider_leaves_a_batch_that_the_next_takes_up(project: Project, site: ScriptedSite) -> None:
    project.crawl.inject([site.url("/page/1/"), site.url("/slow"), site.url("/about")])
    batch = project.crawl.generate().batch_id
    site.on("/slow", Reply(body=b"<p>slow", hang=60), Reply(body=b"<p>slow"))
    command = project.command("batch", "-s", f"NUTCH2PY_BATCH={batch}", "-s", "CONCURRENT_REQUESTS_PER_DOMAIN=8")
    with subprocess.Popen(command, cwd=_PROJECT, env=project.environment, stderr=subprocess.PIPE, text=True) as spider:
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


def test_a_batch_that_is_not_there_is_refused(project: Project, site: ScriptedSite) -> None:
    project.crawl.inject([site.url("/page/1/")])
    done = subprocess.run(
        project.command("batch", "-a", "batch=1-1"),
        cwd=_PROJECT, env=project.environment, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert "there is no batch 1-1" in done.stderr
    assert site.seen == []
