"""Jobs after pages failed for a reason of this machine: their rows, the exit code, and the next crawl."""

from __future__ import annotations

import re
import socket
from pathlib import Path
from typing import Any

import pytest

from nutch2py.cli import main
from nutch2py.conf.configuration import Configuration
from nutch2py.crawl import Crawl
from nutch2py.errors import LocalFailuresError, UsageError
from nutch2py.jobs.fetch.fetch_job import fetch
from nutch2py.jobs.generate.generate_job import generate
from nutch2py.jobs.index.index_job import index
from nutch2py.jobs.inject.inject_job import inject
from nutch2py.jobs.parse_job import parse
from nutch2py.jobs.updatedb.updatedb_job import updatedb
from nutch2py.mapreduce.driver import JobResult
from nutch2py.records.webpage import CrawlStatus, Mark, WebPage
from nutch2py.search.search_backends import search
from tests.conftest import MAP_SIZE
from tests.jobs import rows
from tests.site.server import Reply, ScriptedSite

FIELDS = frozenset(
    {WebPage.status, WebPage.retries_since_fetch, WebPage.fetch_time, WebPage.markers, WebPage.text, WebPage.outlinks}
)


@pytest.fixture
def dead_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        return int(unused.getsockname()[1])


@pytest.fixture
def crawled(conf: Configuration, site: ScriptedSite, tmp_path: Path) -> Configuration:
    """Crawl four pages of two hosts once, and index them."""
    hosts = tmp_path / "hosts"
    hosts.write_text("127.0.0.1 a.test b.test c.test\n")
    for name, value in {
        "http.filter.ipaddress.exclude": "", "http.hosts.file": str(hosts), "fetcher.server.delay": "0",
        "fetcher.store.content": "false", "fetcher.parse": "true",
    }.items():  # fmt: skip
        conf.set(name, value)
    urls = [site.url(path, host) for host in ("a.test", "b.test") for path in ("/1", "/2")]
    for path in ("/1", "/2"):
        body = f"<title>T</title><body><p>plankton {path}</p><a href='/2'>x</a>".encode()
        site.on(path, Reply(body=body, content_type="text/html"))
    (tmp_path / "seeds").write_text("\n".join(urls))
    inject(conf, str(tmp_path / "seeds"))
    work(conf, "first")
    assert found(conf) == set(urls)
    return conf


def work(conf: Configuration, batch: str) -> None:
    generate(conf, batch_id=batch, add_days=400)
    fetch(conf, batch)
    if not conf.get_bool("fetcher.parse"):
        parse(conf, batch)
    updatedb(conf, batch)
    index(conf, batch)


def found(conf: Configuration) -> set[str]:
    return {hit.url for hit in search(conf, "plankton", rows=50).hits}


def test_rows_after_local_failures_keep_everything(
    crawled: Configuration, dead_port: int, capsys: pytest.CaptureFixture[str]
) -> None:
    before, documents = rows.pages(crawled, FIELDS), found(crawled)
    crawled.set("http.proxy.host", "127.0.0.1")
    crawled.set("http.proxy.port", str(dead_port))
    crawled.set("fetcher.local.failure.share", "1")
    capsys.readouterr()
    for number in range(5):
        work(crawled, f"later-{number}")
        assert "4 of 4 pages not fetched for reasons of this machine" in capsys.readouterr().err
    after = rows.pages(crawled, FIELDS)
    assert after.keys() == before.keys()
    for url, page in after.items():
        old = before[url]
        assert (page.status, page.retries_since_fetch) == (CrawlStatus.FETCHED, 0)
        assert (page.text, [*page.outlinks]) == (old.text, [*old.outlinks])
        assert Mark.GENERATE not in page.markers
    assert found(crawled) == documents


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({}, "http.filter.ipaddress.exclude"),  # as shipped
        ({"http.filter.ipaddress.include": "192.0.2.0/24"}, "http.filter.ipaddress.include"),
        ({"http.proxy.host": "127.0.0.1", "http.proxy.port": "{0}"}, "http.proxy.host"),
        ({"http.dns.servers": "127.0.0.1:{0}", "http.dns.timeout": "0.1"}, "http.dns.servers"),
    ],
    ids=lambda given: given if isinstance(given, str) else "",
)
def test_first_crawl_from_python_says_which_property_prevents_it(
    tmp_path: Path, dead_port: int, settings: dict[str, str], named: str
) -> None:
    warnings: list[str] = []
    common = {"storage.embedded.map.size": MAP_SIZE, "http.agent.name": "x"}
    given = common | {name: value.format(dead_port) for name, value in settings.items()}
    with Crawl(f"embedded:{tmp_path / 'crawldata'}", given, on_warning=warnings.append) as crawl:
        host = "127.0.0.1" if "ipaddress" in named else "host.test"
        crawl.inject([f"http://{host}:{dead_port}/"])
        batch = crawl.generate()
        with pytest.raises(LocalFailuresError, match=re.escape(named)):
            crawl.fetch(batch.batch_id)
    assert [warning for warning in warnings if named in warning] != []


@pytest.mark.parametrize(("share", "fails"), [("0.5", False), ("0.4", True), ("1", False), ("0", True)])
def test_fetch_fails_when_local_failures_exceed_share(
    crawled: Configuration, dead_port: int, share: str, fails: bool
) -> None:
    crawled.set("http.proxy.host", "127.0.0.1")
    crawled.set("http.proxy.port", str(dead_port))
    crawled.set("http.proxy.exception.list", "a.test")
    crawled.set("fetcher.local.failure.share", share)
    generate(crawled, batch_id="two", add_days=400)
    if fails:
        with pytest.raises(LocalFailuresError, match=r"http\.proxy\.host, http\.proxy\.port") as raised:
            fetch(crawled, "two")
        assert raised.value.exit_code == 11
    else:
        result = fetch(crawled, "two")
        assert result.count("FetcherStatus", "LOCAL_FAILURE") == 2
        assert result.count("FetcherStatus", "exception_proxy_failed") == 2
    assert len(rows.marked(crawled, Mark.FETCH, "two")) == 2
    crawled.set("http.proxy.host", "")
    assert fetch(crawled, "two", resume=True).count("FetcherStatus", "SUCCESS") == 2  # the same batch, repaired


@pytest.mark.parametrize(("share", "fails"), [(1, False), (0.5, False), (0.4, True)])
def test_share_of_call_replaces_property(crawled: Configuration, dead_port: int, share: float, fails: bool) -> None:
    crawled.set("http.proxy.host", "127.0.0.1")
    crawled.set("http.proxy.port", str(dead_port))
    crawled.set("http.proxy.exception.list", "a.test")
    crawled.set("fetcher.local.failure.share", "0" if not fails else "1")
    before = crawled.get("fetcher.local.failure.share")
    crawl = Crawl(crawled)
    batch = crawl.generate(add_days=400).batch_id
    if fails:
        with pytest.raises(LocalFailuresError, match=r"more than fetcher\.local\.failure\.share \(0\.4\)"):
            crawl.fetch(batch, max_local_failure_share=share)
    else:
        assert crawl.fetch(batch, max_local_failure_share=share).count("FetcherStatus", "LOCAL_FAILURE") == 2
    assert crawled.get("fetcher.local.failure.share") == before


@pytest.mark.parametrize("share", [-0.1, 1.1, "1", True])
def test_share_of_call_outside_range_is_rejected(crawled: Configuration, share: float) -> None:
    with pytest.raises(UsageError, match="max_local_failure_share"):
        Crawl(crawled).fetch("two", max_local_failure_share=share)


def test_rounds_of_crawl_see_property_unchanged(
    site: ScriptedSite, tmp_path: Path, dead_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of two rounds fails; the whole crawl is checked by the property, which no round may change."""
    seen = []
    original = Crawl.fetch

    def watched(self: Crawl, *words: Any, **options: Any) -> JobResult:
        seen.append(self.conf.get("fetcher.local.failure.share"))
        return original(self, *words, **options)

    monkeypatch.setattr(Crawl, "fetch", watched)
    for path in ("/1", "/2"):
        site.on(path, Reply(body=b"<title>T</title>", content_type="text/html"))
    hosts = tmp_path / "hosts"
    hosts.write_text("127.0.0.1 a.test b.test\n")
    words = ["crawl", site.url("/1", "a.test"), site.url("/2", "b.test"), "-data", str(tmp_path / "data")]
    for name, value in {
        "storage.embedded.map.size": MAP_SIZE, "http.filter.ipaddress.exclude": "", "fetcher.server.delay": "0",
        "http.hosts.file": str(hosts), "http.agent.name": "x", "fetcher.local.failure.share": "0.3",
        "http.proxy.host": "127.0.0.1", "http.proxy.port": str(dead_port), "http.proxy.exception.list": "a.test",
        "index.embedded.path": str(tmp_path / "index"),
    }.items():  # fmt: skip
        words += ["-D", f"{name}={value}"]
    assert main([*words, "-pages", "10"]) == 11
    assert set(seen) == {"0.3"}


@pytest.mark.parametrize("at_once", ["0", "3"])
def test_redirect_target_behind_address_filter_gets_a_row_without_failure(
    crawled: Configuration, site: ScriptedSite, at_once: str
) -> None:
    """The target has no address that is allowed; with ``http.redirect.max`` it is requested in the same fetch."""
    target = site.url("/2", "inside.test")
    Path(crawled.get_trimmed("http.hosts.file")).write_text("127.0.0.1 a.test b.test\n127.0.0.2 inside.test\n")
    crawled.set("http.filter.ipaddress.exclude", "127.0.0.2")
    crawled.set("http.redirect.max", at_once)
    site.on("/1", Reply(302, headers=[("Location", target)]))
    work(crawled, "two")
    page = rows.pages(crawled, FIELDS)[target]
    assert (page.status, page.retries_since_fetch) == (CrawlStatus.UNFETCHED, 0)
    assert Mark.GENERATE not in page.markers
    work(crawled, "three")
    assert rows.pages(crawled, FIELDS)[target].status == CrawlStatus.UNFETCHED


def test_crawl_stops_with_reason_and_continues_at_once_after_repair(
    site: ScriptedSite, tmp_path: Path, dead_port: int, capsys: pytest.CaptureFixture[str]
) -> None:
    site.on("/", Reply(body=b"<title>T</title><body><p>plankton</p><a href='/next'>x</a>", content_type="text/html"))
    site.on("/next", Reply(body=b"<title>N</title><body><p>plankton</p>", content_type="text/html"))
    common = ["crawl", site.url("/"), "-data", str(tmp_path / "data")]
    for name, value in {
        "storage.embedded.map.size": MAP_SIZE, "http.filter.ipaddress.exclude": "", "fetcher.server.delay": "0",
        "db.fetch.interval.default": "1", "index.embedded.path": str(tmp_path / "index"), "http.agent.name": "x",
    }.items():  # fmt: skip
        common += ["-D", f"{name}={value}"]
    assert main([*common, "-pages", "2"]) == 0
    capsys.readouterr()
    proxy = ["-D", "http.proxy.host=127.0.0.1", "-D", f"http.proxy.port={dead_port}"]
    seen = len(site.seen)
    assert main([*common, "-pages", "50", *proxy]) == 11
    captured = capsys.readouterr()
    assert "Stopped: every URL of a round failed for a reason of this machine" in captured.out
    assert "the proxy cannot be used" in captured.out
    assert "http.proxy.host" in captured.err
    assert len(site.seen) == seen
    assert main([*common, "-pages", "2"]) == 0  # the pages need not wait for fetcher.local.failure.interval
    assert len(site.seen) > seen
