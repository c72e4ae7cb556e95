"""Misbehaving projects: the table stays intact, and rows record what happened."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from nutch2py.records.webpage import CrawlStatus, Mark
from nutch2py.records.webpage import ProtocolStatusCode as Code
from tests.scrapy_projects.conftest import Project
from tests.site.server import Reply, ScriptedSite

PAGE = b"<html><title>T</title><body>words</body></html>"


@pytest.fixture
def site() -> Iterator[ScriptedSite]:
    with ScriptedSite() as running:
        running.on("/robots.txt", Reply(404))
        for path in ("/a", "/b", "/c"):
            running.on(path, Reply(body=PAGE))
        yield running


def test_unrequested_url_is_not_a_failure(project: Project, site: ScriptedSite) -> None:
    """robots.txt denies it, a middleware ignores it, or a redirect leads to a denied URL."""
    site.on("/robots.txt", Reply(body=b"User-agent: *\nDisallow: /private\n", content_type="text/plain"))
    site.on("/moved", Reply(302, headers=[("Location", "/private/b")]))
    site.on("/broken", Reply(reset=True))
    project.crawl.inject([site.url(path) for path in ("/a", "/private/a", "/moved", "/ignored", "/broken")])
    batch = project.crawl.generate().batch_id
    project.write(
        settings="""
            RETRY_ENABLED = False
            DOWNLOADER_MIDDLEWARES = {"tutorial.spiders.more.Ignores": 543}
        """,
        spiders="""
            from scrapy.exceptions import IgnoreRequest

            class Ignores:
                def process_request(self, request):
                    if request.url.endswith("/ignored"):
                        raise IgnoreRequest("not today")
        """,
    )
    _, log = project.run("batch", "-a", f"batch={batch}")
    rows = project.rows()
    found = {path: (page.status, page.markers.get(Mark.FETCH) == batch) for path, page in rows.items()}
    assert found == {
        "/a": (CrawlStatus.FETCHED, True),
        "/private/a": (CrawlStatus.GONE, True),
        "/moved": (CrawlStatus.REDIR_TEMP, True),
        "/private/b": (CrawlStatus.GONE, True),
        "/ignored": (0, False),
        "/broken": (CrawlStatus.RETRY, True),
    }
    denied = rows["/private/a"].protocol_status
    assert denied is not None
    assert denied.code == Code.ROBOTS_DENIED
    assert "'nutch2py/left': 1" in log
    project.crawl.updatedb(batch)
    assert site.gets("/ignored") == site.gets("/private/a") == 0


@pytest.mark.parametrize("count", [5_000, pytest.param(100_000, marks=pytest.mark.long)])
def test_items_of_any_kind_and_number_are_stored(project: Project, site: ScriptedSite, count: int) -> None:
    """Unstorable items are counted; reserved names are not overwritten."""
    project.write(
        spiders="""
            import scrapy

            class Angry:
                def __str__(self):
                    raise OSError("angry")

            class Many(scrapy.Spider):
                name = "many"
                start_urls = [SITE + "/a"]

                def parse(self, response):
                    loop = {}
                    loop["self"] = loop
                    yield {"cycle": loop}
                    yield {"angry": Angry()}
                    nested = []
                    for _ in range(100_000):
                        nested = [nested]
                    yield {"deep": nested}
                    yield {"half": "\\ud800", 7: "seven", "": "nameless", "_csh_": "stolen", "\\ud801": "x"}
                    for number in range(COUNT):
                        yield {"number": number}
        """.replace("SITE", repr(site.url(""))).replace("COUNT", str(count)),
    )
    _, log = project.run("many", "-s", "LOG_LEVEL=INFO", quiet=False)
    page = project.rows()["/a"]
    assert page.status == CrawlStatus.FETCHED
    assert page.metadata["half"] == b"?"
    assert page.metadata["7"] == b"seven"
    assert page.metadata.get("_csh_") != b"stolen"
    numbers = (page.metadata["number"] or b"").split(b"\t")
    assert numbers == [b"%d" % number for number in range(count)]
    assert "'nutch2py/items_failed': 3" in log
    assert "'nutch2py/rows': 1" in log


def test_links_outside_web_create_no_rows(project: Project, site: ScriptedSite) -> None:
    site.on("/a", Reply(body=b"<a href='file:///etc/passwd'>x</a><a href='data:,words'>y</a><a href='/b'>z</a>"))
    project.write(
        spiders="""
            import scrapy

            class Follows(scrapy.Spider):
                name = "follows"
                start_urls = [SITE + "/a"]

                def parse(self, response):
                    yield from response.follow_all(css="a")
                    yield response.follow("/" + "x" * 9000)
        """.replace("SITE", repr(site.url(""))),
    )
    _, log = project.run("follows", "-s", "HTTPERROR_ALLOW_ALL=True", quiet=False)
    assert set(project.rows()) == {"/a", "/b"}
    assert "'nutch2py/other_protocol': 1" in log


def test_failing_or_closing_spider_leaves_complete_rows(project: Project, site: ScriptedSite) -> None:
    project.write(
        spiders="""
            import scrapy
            from scrapy.exceptions import CloseSpider

            class Fails(scrapy.Spider):
                name = "fails"
                start_urls = [SITE + path for path in ("/a", "/b", "/c")]

                def parse(self, response):
                    yield {"letter": response.url[-1]}
                    if response.url.endswith("/a"):
                        raise ZeroDivisionError
                    if response.url.endswith("/b"):
                        raise CloseSpider("enough")
        """.replace("SITE", repr(site.url(""))),
    )
    batch, _ = project.run("fails", quiet=False)
    rows = project.rows()
    for path in ("/a", "/b"):
        assert (rows[path].status, rows[path].metadata["letter"]) == (CrawlStatus.FETCHED, path[-1:].encode())
    project.crawl.updatedb(batch)


@pytest.mark.parametrize("times", [1, 2])
def test_ctrl_c_once_waits_and_twice_stops(project: Project, site: ScriptedSite, times: int) -> None:
    """Once: active requests finish. Twice: they are cancelled. The table is intact, and the next command resumes."""
    site.on("/slow", Reply(body=PAGE, hang=3), Reply(body=PAGE))
    project.crawl.inject([site.url(path) for path in ("/a", "/slow")])
    batch = project.crawl.generate().batch_id
    with project.process("batch", "-a", f"batch={batch}", "-s", "CONCURRENT_REQUESTS_PER_DOMAIN=8") as spider:
        assert spider.stderr is not None
        for line in spider.stderr:
            if "GET" in line and "/a" in line:
                break
        spider.send_signal(signal.SIGINT)
        for line in spider.stderr:
            if "Received SIGINT" in line:
                break
        if times == 2:
            spider.send_signal(signal.SIGINT)
        spider.stderr.read()
    if times == 1:
        rows = project.rows()
        assert {path: rows[path].status for path in ("/a", "/slow")} == dict.fromkeys(("/a", "/slow"), 2)
    project.run("batch", "-a", f"batch={batch}")
    rows = project.rows()
    assert {path: rows[path].status for path in ("/a", "/slow")} == dict.fromkeys(("/a", "/slow"), 2)
    project.crawl.updatedb(batch)


@pytest.mark.parametrize(
    "settings",
    ["TWISTED_REACTOR = 'twisted.internet.selectreactor.SelectReactor'", "TWISTED_REACTOR_ENABLED = False"],
)
def test_other_ways_of_running_project_work(project: Project, site: ScriptedSite, settings: str) -> None:
    """Without asyncio the spider does not start; without a reactor everything works."""
    project.write(settings=settings, spiders="")
    log = project.run_rejected("quotes", "-a", "start_url=x")
    if "Select" in settings:
        assert "needs asyncio" in log
        assert site.seen == []
    else:
        assert "'nutch2py/rows'" in log


def test_second_spider_on_table_is_rejected(project: Project, site: ScriptedSite) -> None:
    project.write(
        spiders="""
            import scrapy

            class First(scrapy.Spider):
                name = "first"
                start_urls = [SITE + "/a", SITE + "/c"]

            class Second(scrapy.Spider):
                name = "second"
                start_urls = [SITE + "/b", SITE + "/c"]

            for kind in (First, Second):
                kind.parse = lambda self, response: None
        """.replace("SITE", repr(site.url(""))),
    )
    (project.place / "both.py").write_text(
        """
from scrapy.crawler import AsyncCrawlerProcess
from scrapy.utils.project import get_project_settings

process = AsyncCrawlerProcess(get_project_settings())
process.crawl("first")
process.crawl("second")
process.start()
"""
    )
    log = project.script("both.py")
    first, second = project.rows().keys() & {"/a"}, project.rows().keys() & {"/b"}
    assert len(first) + len(second) == 1, log
    assert "cannot run at the same time" in log
    assert {page.status for page in project.rows().values()} == {CrawlStatus.FETCHED}
