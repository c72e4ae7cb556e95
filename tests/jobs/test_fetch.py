"""The FetcherJob with what belongs to it: sitemaps from robots.txt to rows, the host table, WARC files, a terminal."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from nutch2py.cli import main
from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError
from nutch2py.jobs.batches.batch_lists import BatchListStore
from nutch2py.jobs.fetch.fetch_job import HostSettingsReader, fetch
from nutch2py.jobs.generate.generate_job import generate
from nutch2py.jobs.hostdb.hostdb_jobs import hostinject
from nutch2py.jobs.index.index_job import index
from nutch2py.jobs.inject.inject_job import inject
from nutch2py.jobs.parse_job import parse
from nutch2py.jobs.updatedb.updatedb_job import updatedb
from nutch2py.records.cells import encode_text
from nutch2py.records.webpage import INJECTED_SITEMAP, CrawlStatus, Host, Mark, WebPage
from nutch2py.search.search_backends import search
from nutch2py.support.clock import MS_PER_DAY, now_ms
from nutch2py.table import TableQuery, open_store
from nutch2py.url.keys import reverse_url
from tests.jobs.rows import put
from tests.site.server import Reply, ScriptedSite

PAGE = b"<html><body>hello</body></html>"


@pytest.fixture
def crawl(conf: Configuration) -> Configuration:
    conf.set("http.filter.ipaddress.exclude", "")
    conf.set("fetcher.server.delay", "0")
    return conf


def seeds(folder: Path, *lines: str) -> str:
    path = folder / "seeds.txt"
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return str(path)


def rows(conf: Configuration) -> dict[str, WebPage]:
    return dict(open_store(conf, WebPage).scan(TableQuery()))


def test_sitemaps_of_robots_txt_are_stored(site: ScriptedSite, crawl: Configuration, tmp_path: Path) -> None:
    site.on(
        "/robots.txt",
        Reply(body=b"User-agent: *\nAllow: /\nSitemap: http://s.test/1.xml\nSITEMAP: http://s.test/2.xml"),
    )
    site.on("/", Reply(body=PAGE))
    site.on("/p", Reply(body=PAGE))
    inject(crawl, seeds(tmp_path, site.url("/"), site.url("/p")))
    generate(crawl, batch_id="b-1")
    fetch(crawl, "b-1", detect_sitemaps=True)
    found = rows(crawl)
    home, other = found[reverse_url(site.url("/"))], found[reverse_url(site.url("/p"))]
    assert dict(home.sitemaps.decoded_items()) == {"http://s.test/1.xml": "", "http://s.test/2.xml": ""}
    assert dict(other.sitemaps.decoded_items()) == {}


def test_sitemaps_are_fetched_and_parsed(site: ScriptedSite, crawl: Configuration, tmp_path: Path) -> None:
    """A sitemap of two megabytes, more than a page may have, packed; no page is fetched with it."""
    entries = "".join(
        f"<url><loc>{site.url(f'/{number}')}</loc><lastmod>2020-09-13</lastmod><changefreq>daily</changefreq>"
        f"<priority>0.8</priority></url><!--{'x' * 1000}-->"
        for number in range(2000)
    )
    text = f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{entries}</urlset>'.encode()
    assert len(text) > 2_000_000
    site.on("/map.xml", Reply(body=gzip.compress(text), content_type="application/gzip"))
    site.on("/p", Reply(body=PAGE))
    inject(crawl, seeds(tmp_path, f"{site.url('/map.xml')}\t-sitemap", site.url("/p")))
    generate(crawl, batch_id="b-1", sitemap=True)
    fetch(crawl, "b-1", sitemap=True)
    assert site.gets("/p") == 0
    parse(crawl, "b-1", sitemap=True)
    found = rows(crawl)
    sitemap = found[reverse_url(site.url("/map.xml"))]
    assert sitemap.markers.get(Mark.INJECT) == INJECTED_SITEMAP
    assert sitemap.status == CrawlStatus.FETCHED
    listed = found[reverse_url(site.url("/7"))]
    assert listed.fetch_interval == 86_400
    assert listed.stm_priority == pytest.approx(0.8)
    assert len(found) == 2002


URLSET = '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>{}</loc></url></urlset>'
INDEX = '<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{}</sitemapindex>'


def round_of_sitemaps(crawl: Configuration, batch: str) -> int:
    """Run the jobs of a round over sitemaps; return the number of generated URLs."""
    urls = generate(crawl, batch_id=batch, sitemap=True).urls
    if urls:
        fetch(crawl, batch, sitemap=True)
        parse(crawl, batch, sitemap=True)
        updatedb(crawl, batch)
    return urls


def test_sitemaps_of_sitemap_index_are_read(site: ScriptedSite, crawl: Configuration, tmp_path: Path) -> None:
    """In the next rounds, those of an index in an index, too; what they list are pages."""
    sub = INDEX.format(f"<sitemap><loc>{site.url('/deep.xml')}</loc></sitemap>")
    top = INDEX.format("".join(f"<sitemap><loc>{site.url(path)}</loc></sitemap>" for path in ("/a.xml", "/sub.xml")))
    bodies = {"/top.xml": top, "/sub.xml": sub, "/a.xml": URLSET.format(site.url("/a")),
              "/deep.xml": URLSET.format(site.url("/deep"))}  # fmt: skip
    for path, body in bodies.items():
        site.on(path, Reply(body=body.encode(), content_type="application/xml"))
    inject(crawl, seeds(tmp_path, f"{site.url('/top.xml')}\t-sitemap"))
    assert [round_of_sitemaps(crawl, f"s-{number}") for number in range(4)] == [1, 2, 1, 0]
    found = rows(crawl)
    marks = {path: found[reverse_url(site.url(path))].markers.get(Mark.INJECT) for path in [*bodies, "/a", "/deep"]}
    assert marks == {**dict.fromkeys(bodies, INJECTED_SITEMAP), "/a": "y", "/deep": "y"}
    assert generate(crawl, batch_id="pages").urls == 2


def test_detected_sitemaps_are_generated_as_sitemaps(site: ScriptedSite, crawl: Configuration, tmp_path: Path) -> None:
    """A page of robots.txt that is crawled as a page already, is injected or in a batch stays one."""
    paths = ["/new.xml", "/page", "/injected", "/open", "/known"]
    listed = "".join(f"Sitemap: {site.url(path)}\n" for path in paths) + "Sitemap: http://other.test/map.xml\n"
    site.on("/robots.txt", Reply(body=f"User-agent: *\n{listed}".encode(), content_type="text/plain"))
    site.on("/new.xml", Reply(body=URLSET.format(site.url("/found")).encode(), content_type="application/xml"))
    site.on("/", Reply(body=PAGE))
    inject(crawl, seeds(tmp_path, site.url("/"), site.url("/injected")))
    put(crawl, {site.url("/page"): {"status": CrawlStatus.FETCHED, "fetch_time": 1 << 50},
                site.url("/known"): {"status": CrawlStatus.UNFETCHED, "fetch_time": now_ms() + 10 * MS_PER_DAY},
                site.url("/open"): {"status": CrawlStatus.UNFETCHED, "marks": {Mark.GENERATE: "other"}}})  # fmt: skip
    generate(crawl, batch_id="b-1")
    fetch(crawl, "b-1", detect_sitemaps=True)
    parse(crawl, "b-1")
    result = updatedb(crawl, "b-1")
    found = rows(crawl)
    marks = {path: found[reverse_url(site.url(path))].markers.get(Mark.INJECT) for path in paths}
    assert marks == {"/new.xml": INJECTED_SITEMAP, "/page": None, "/injected": "y", "/open": None,
                     "/known": INJECTED_SITEMAP}  # fmt: skip
    assert result.count("updatedb", "sitemaps_found") == 2
    assert found[reverse_url("http://other.test/map.xml")].markers.get(Mark.INJECT) is None
    assert round_of_sitemaps(crawl, "s-1") == 1
    assert rows(crawl)[reverse_url(site.url("/found"))].markers.get(Mark.INJECT) == "y"


def test_host_table_settings_are_applied(site: ScriptedSite, crawl: Configuration, tmp_path: Path) -> None:
    path = tmp_path / "hosts.tsv"
    path.write_text("127.0.0.1\tq_mt=4\tq_cd=250\nhalf.test\tq_mcd=7\n", encoding="utf-8")
    hostinject(crawl, str(path))
    table = HostSettingsReader(crawl)
    first, half = table("127.0.0.1"), table("half.test")
    assert first is not None
    assert (first.max_threads, first.crawl_delay_ms, first.min_crawl_delay_ms) == (4, 250, None)
    assert half is not None
    assert (half.max_threads, half.min_crawl_delay_ms) == (None, 7)
    assert table("unknown.test") is None
    for number in range(4):
        site.on(f"/{number}", Reply(body=PAGE, hang=0.3))
    inject(crawl, seeds(tmp_path, *(site.url(f"/{number}") for number in range(4))))
    generate(crawl, batch_id="b-1")
    crawl.set("fetcher.queue.use.host.settings", "true")
    fetch(crawl, "b-1")
    assert site.most_at_once == 4


def test_malformed_host_setting_is_ignored(crawl: Configuration, capsys: pytest.CaptureFixture[str]) -> None:
    store = open_store(crawl, Host)
    store.create()
    record = Host({}, frozenset())
    record.metadata["q_mt"] = encode_text("many")
    record.metadata["q_cd"] = encode_text("5")
    with store.batch() as batch:
        batch.put("test.x", record)
    found = HostSettingsReader(crawl)("x.test")
    assert found is not None
    assert (found.max_threads, found.crawl_delay_ms) == (None, 5)
    assert "q_mt of x.test is b'many'" in capsys.readouterr().err


def test_warc_files_are_written(site: ScriptedSite, crawl: Configuration, tmp_path: Path) -> None:
    site.on("/p", Reply(body=PAGE))
    inject(crawl, seeds(tmp_path, site.url("/p")))
    generate(crawl, batch_id="b-1")
    values = {name: value for name, value in crawl.raw_properties().items() if name.startswith(("http.", "storage."))}
    options = [part for name, value in values.items() for part in ("-D", f"{name}={value}")]
    assert main(["fetch", "b-1", "-warc", str(tmp_path / "warc"), *options]) == 0
    (path,) = (tmp_path / "warc").glob("*.warc.gz")
    assert b"WARC/1.1" in gzip.decompress(path.read_bytes())


def test_remote_tasks_write_no_warc_files(crawl: Configuration, tmp_path: Path) -> None:
    inject(crawl, seeds(tmp_path, "http://a.test/"))
    generate(crawl, batch_id="b-1")
    crawl.set("mapreduce.runner", "hadoop")
    with pytest.raises(ConfigurationError):
        fetch(crawl, "b-1", warc=str(tmp_path / "warc"))


def test_fetch_counters_are_reported(site: ScriptedSite, crawl: Configuration, tmp_path: Path) -> None:
    site.on("/p", Reply(body=PAGE))
    site.on("/q", Reply(500))
    inject(crawl, seeds(tmp_path, site.url("/p"), site.url("/q"), site.url("/r")))
    generate(crawl, batch_id="b-1")
    result = fetch(crawl, "b-1")
    counts = result.counters["FetcherStatus"]
    assert counts["SUCCESS"] == counts["EXCEPTION"] == counts["NOTFOUND"] == 1
    assert counts["bytes_downloaded"] == len(PAGE) + len(b"not here")


def test_redirect_target_stays_in_its_batch(site: ScriptedSite, crawl: Configuration, tmp_path: Path) -> None:
    """It is fetched once, with its own batch; the redirect leads to it, and to rows without a batch."""
    crawl.set("http.redirect.max", "3")
    site.on("/from", Reply(301, headers=[("Location", "/taken")]))
    site.on("/other", Reply(301, headers=[("Location", "/free")]))
    site.on("/taken", Reply(body=PAGE))
    site.on("/free", Reply(body=PAGE))
    inject(crawl, seeds(tmp_path, site.url("/taken")))
    generate(crawl, batch_id="theirs")
    inject(crawl, seeds(tmp_path, site.url("/from"), site.url("/other")))
    generate(crawl, batch_id="ours")
    fetch(crawl, "ours")
    found = {key: page.markers for key, page in rows(crawl).items()}
    taken, free = found[reverse_url(site.url("/taken"))], found[reverse_url(site.url("/free"))]
    assert (taken[Mark.GENERATE], taken.get(Mark.FETCH), free[Mark.GENERATE]) == ("theirs", None, "ours")
    fetch(crawl, "theirs")
    for batch in ("ours", "theirs"):
        parse(crawl, batch)
        updatedb(crawl, batch)
    assert all(Mark.GENERATE not in page.markers for page in rows(crawl).values())
    assert [site.gets(path) for path in ("/from", "/other", "/taken", "/free")] == [1, 1, 1, 1]


@pytest.mark.parametrize("target", ["mailto:x@y", "/now?filtered", "/page", "http://[", ""])
@pytest.mark.parametrize("parsing", ["false", "true"])
def test_page_redirecting_nowhere_keeps_its_links(
    site: ScriptedSite, crawl: Configuration, tmp_path: Path, target: str, parsing: str
) -> None:
    crawl.set("fetcher.parse", parsing)
    site.on("/page", Reply(301, headers=[("Location", target)]))
    inject(crawl, seeds(tmp_path, site.url("/page")))
    key = reverse_url(site.url("/page"))
    with open_store(crawl, WebPage).batch() as batch:
        page = WebPage()
        page.outlinks = {"http://a.test/": "a"}
        batch.put(key, page)
    generate(crawl, batch_id="b-1")
    result = fetch(crawl, "b-1")
    assert sum(result.counters["FetcherStatus"].values()) >= 1
    assert dict(rows(crawl)[key].outlinks) == {"http://a.test/": "a"}
    assert rows(crawl)[key].markers[Mark.FETCH] == "b-1"


@pytest.mark.parametrize("parsing", ["false", "true"])
def test_redirect_targets_pass_all_jobs_with_batch(
    site: ScriptedSite, crawl: Configuration, tmp_path: Path, parsing: str
) -> None:
    crawl.set("http.redirect.max", "3")
    crawl.set("fetcher.parse", parsing)
    site.on("/from", Reply(302, headers=[("Location", "/between")]))
    site.on("/between", Reply(301, headers=[("Location", "/to")]))
    site.on("/to", Reply(body=b"<title>To</title><p>arrived <a href=/next>next</a>"))
    inject(crawl, seeds(tmp_path, site.url("/from")))
    generate(crawl, batch_id="b")
    fetch(crawl, "b")
    lists = BatchListStore(crawl)
    assert lists.is_complete("b")
    if parsing == "false":
        parse(crawl, "b")
    updatedb(crawl, "b")
    index(crawl, "b")
    found = rows(crawl)
    arrived = found[reverse_url(site.url("/to"))]
    assert arrived.title == "To"
    assert (arrived.markers.get(Mark.UPDATEDB), arrived.markers.get(Mark.INDEX)) == ("b", "b")
    assert reverse_url(site.url("/next")) in found
    stranded = [key for key, row in found.items() if row.markers.get(Mark.GENERATE) or row.markers.get(Mark.FETCH)]
    assert stranded == []
    assert [hit.url for hit in search(crawl, "arrived").hits] == [site.url("/to")]
    assert lists.list_records() == []
