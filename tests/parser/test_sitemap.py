import gzip
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.parser.row_parser import RowParser
from nutch2py.parser.sitemap import sitemap_parser as sitemap_module
from nutch2py.parser.sitemap.sitemap_parser import SitemapEntry, parse_sitemap, parse_w3c_time
from nutch2py.parser.sitemap.sitemap_row_parser import SitemapOutcome, SitemapRowParser, entry_to_row
from nutch2py.records.webpage import Mark, WebPage
from tests.growth import assert_linear, repetitions

from .pages import fetched

XMLNS = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
KEY = "test.h:http/sitemap.xml"


def process(page: WebPage, conf: Configuration) -> SitemapOutcome:
    return SitemapRowParser(conf, RowParser(conf)).parse_row(KEY, page)


def sitemap(*entries: str) -> bytes:
    return f"<?xml version='1.0'?><urlset {XMLNS}>{''.join(f'<url>{e}</url>' for e in entries)}</urlset>".encode()


def test_sitemap_cases(cases: Callable[[str], list[dict[str, Any]]]) -> None:
    conf = Configuration.load(overrides={"plugin.includes": "parse-html"})
    passed = 0
    for case in (found := cases("sitemap")):
        expect, page = case["expect"], fetched(case["input"].encode(), case["args"]["content_type"])
        outcome, listed = process(page, conf)
        assert outcome.label == expect["parse_status"], case
        if expect["outlinks"] is None:
            assert (listed, sorted(page.sitemaps)) == ({}, expect["page.sitemaps"]), case
        else:
            assert [*listed] == [url.replace("http://localhost/", "localhost:http/") for url in expect["outlinks"]]
            day = datetime.fromisoformat(expect["lastmod"]).replace(tzinfo=UTC)
            for row in map(entry_to_row, listed.values()):
                assert row.modified_time == int(day.timestamp()) * 1000
                assert row.metadata["changeFrequency"].decode() == expect["changefreq"].upper()
                assert row.stm_priority == pytest.approx(expect["priority"])
        passed += 1
    print(f"sitemap: {passed}/{len(found)}")


def test_location_over_two_lines_is_joined() -> None:
    assert [entry.url for entry in parse_sitemap(sitemap("<loc>\n http://h/a\n/b\t</loc>")).entries] == ["http://h/a/b"]


def test_listed_url_and_sitemap_cells_are_written(conf: Configuration) -> None:
    page = fetched(sitemap(
        "<loc>http://d.test/ok.html</loc><lastmod>2020-08-01</lastmod><changefreq>daily</changefreq>"
        "<priority>0.8</priority>", "<loc>http://d.test/pic.gif</loc>", "<loc>http://d.test/bare</loc>"
    ))  # fmt: skip
    outcome, listed = process(page, conf)
    assert outcome.label == "success"
    assert page.markers[Mark.PARSE] == "b1"
    assert page.signature is not None
    assert [*listed] == ["test.d:http/ok.html", "test.d:http/bare"]
    mutation = entry_to_row(listed["test.d:http/ok.html"]).mutation()
    assert mutation is not None
    assert (mutation.deletes, mutation.cleared_families) == ({}, [])  # no other mark and no cash is lost
    assert mutation.puts == {
        b"f": {b"fi": b"\x00\x01\x51\x80", b"mod": (1_596_240_000_000).to_bytes(8, "big")},
        b"s": {b"sp": b"\x3f\x4c\xcc\xcd"},
        b"mk": {b"_injmrk_": b"y"},
        b"mtdt": {b"changeFrequency": b"DAILY", b"lastModified": b"1596240000000", b"priority": b"0.8"},
    }
    other = entry_to_row(listed["test.d:http/bare"], None)
    assert other.stm_priority == 0.5
    mutation = other.mutation()
    assert mutation is not None
    assert b"mk" not in mutation.puts  # one that was injected before keeps its mark


def test_invalid_sitemap_fails(conf: Configuration) -> None:
    for body in (b"<html><body>404</body></html>", b"", b"nothing", b"\x1f\x8bbroken", b"<"):
        page = fetched(body)
        outcome, listed = process(page, conf)
        assert (outcome.label, listed) == ("failed", {}), body
        assert page.parse_status is not None
        assert page.parse_status.args[0].startswith("sitemap: ")
        assert Mark.PARSE not in page.markers


def test_broken_entries_do_not_affect_others() -> None:
    body = sitemap(
        "<loc> http://h/1 </loc><priority>9</priority><lastmod>soon</lastmod><changefreq>often</changefreq>",
        "<lastmod>2020</lastmod>",
        "<loc>http://h/2</loc>",
    )
    assert parse_sitemap(body).entries == [SitemapEntry("http://h/1"), SitemapEntry("http://h/2")]
    assert len(parse_sitemap(body[:-20]).entries) >= 1  # cut off


def test_gzip_lists_and_feeds_are_read() -> None:
    assert parse_sitemap(gzip.compress(sitemap("<loc>http://h/1</loc>"))).entries == [SitemapEntry("http://h/1")]
    assert [e.url for e in parse_sitemap(b"\xef\xbb\xbfhttp://h/1\r\n# no\nhttps://h/2").entries] == [
        "http://h/1", "https://h/2"
    ]  # fmt: skip
    rss = b"<rss><channel><link>http://h/</link><item><link>http://h/1</link></item></channel></rss>"
    assert [e.url for e in parse_sitemap(rss).entries] == ["http://h/1"]
    atom = b"<feed xmlns='http://www.w3.org/2005/Atom'><entry><link href='http://h/1'/><updated>2020</updated></entry></feed>"
    assert parse_sitemap(atom).entries == [SitemapEntry("http://h/1", 1_577_836_800_000)]


def urls(body: bytes) -> list[str]:
    return [entry.url for entry in parse_sitemap(body).entries]


def test_lenient_forms_are_accepted() -> None:
    whole = sitemap("<loc>http://h/1</loc>", "<loc><url>http://h/2</url></loc>", "<loc>\xa0 http://h/3 </loc>")
    assert urls(whole) == ["http://h/1", "http://h/2", "http://h/3"]
    assert urls(gzip.compress(whole[:50]) + gzip.compress(whole[50:]) + b"\0\0") == urls(whole)
    two = b"<sitemapindex><sitemap><loc>http://h/1</loc><loc>http://h/2</loc><lastmod>2020</lastmod></sitemap>"
    assert [entry.last_modified for entry in parse_sitemap(two).entries] == [None, parse_w3c_time("2020")]
    assert urls(two) == ["http://h/1", "http://h/2"]
    assert urls(b"<sitemapindex><sitemap> http://h/1 </sitemap></sitemapindex>") == ["http://h/1"]
    assert urls("http://h/ü\nhttp://h/2".encode("utf-16")) == ["http://h/ü", "http://h/2"]


def test_feed_links_and_dates_are_read() -> None:
    atom = b"""<feed xmlns="http://www.w3.org/2005/Atom"><entry><link rel="edit" href="http://h/e"/>
        <link href="http://h/a"/><link rel="enclosure" href="http://h/m"/><updated>2003-12-13T18:30:02Z</updated></entry></feed>"""
    assert urls(atom) == ["http://h/a"]
    assert parse_sitemap(atom).entries[0].last_modified == parse_w3c_time("2003-12-13T18:30:02Z")
    item = "<item><guid>http://h/g</guid><pubDate>{}</pubDate></item>"
    dates = ["Sun, 06 Sep 2009 16:20:00 +0000", "06 Sep 09 16:20 GMT", "06 Sep 2009 16:20:00", "", "x" * 100_000]
    rss = f"<rss><channel>{''.join(map(item.format, dates))}</channel></rss>".encode()
    found = parse_sitemap(rss).entries
    assert [entry.last_modified for entry in found] == [1252254000000, 1252254000000, None, None, None]
    assert {entry.url for entry in found} == {"http://h/g"}


def test_extensions_are_stored_as_metadata(conf: Configuration) -> None:
    body = b"""<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:xhtml="http://www.w3.org/1999/xhtml"
        xmlns:news="http://www.google.com/schemas/sitemap-news/0.9" xmlns:image="http://www.google.com/schemas/sitemap-image/1.1">
        <url><loc>http://h/1</loc><xhtml:link rel="alternate" hreflang="de" href="http://h/de"/>
        <xhtml:link rel="alternate" hreflang="fr" href="http://h/fr"/><news:news><news:publication><news:name>N</news:name>
        </news:publication><news:title>A  title</news:title></news:news><image:image><image:loc>http://h/i.png</image:loc>
        </image:image></url></urlset>"""
    (entry,) = parse_sitemap(body).entries
    assert entry.url == "http://h/1"
    assert entry.extensions == {
        "alternate": "de http://h/de\nfr http://h/fr", "news.name": "N", "news.title": "A title",
        "image.loc": "http://h/i.png",
    }  # fmt: skip
    outcome, listed = process(fetched(body.replace(b"http://h/", b"http://h.test/"), "application/xml"), conf)
    (listed_entry,) = listed.values()
    assert outcome.label == "success"
    assert entry_to_row(listed_entry).metadata["sitemap.news.title"] == b"A title"


def test_extensions_per_entry_are_limited() -> None:
    many = "".join(f"<n:a{n}>x</n:a{n}><n:title>{'y' * 5000}</n:title>" for n in range(1000))
    body = f"<urlset xmlns:n='http://x/sitemap-news/0.9'><url><loc>http://h/1</loc>{many}</url></urlset>".encode()
    (entry,) = parse_sitemap(body).entries
    assert len(entry.extensions) <= 101
    assert len(entry.extensions["news.title"]) <= 100 * 2001


def test_strict_mode_keeps_only_urls_of_folder(conf: Configuration) -> None:
    page = fetched(sitemap("<loc>http://h.test/1</loc>", "<loc>http://other.test/2</loc>"), "application/xml")
    assert len(process(page, conf).entries) == 2
    conf.set("sitemap.strict.parsing", "true")
    assert [*process(page, conf).entries] == ["test.h:http/1"]


def test_bombs_and_foreign_files_are_harmless() -> None:
    packed = gzip.compress(sitemap("<loc>http://h/1</loc>", *["<loc>http://h/2</loc>"] * 100_000))
    assert len(parse_sitemap(packed, max_bytes=10_000).entries) < 1_000
    assert len(parse_sitemap(sitemap(*["<loc>http://h/2</loc>"] * 60_000)).entries) == 50_000
    entity = (
        b"<!DOCTYPE u [<!ENTITY x SYSTEM 'file:///etc/passwd'>]><urlset><url><loc>http://h/&x;</loc></url></urlset>"
    )
    assert all("root" not in e.url for e in parse_sitemap(entity).entries)


def test_entries_and_url_lengths_are_limited(conf: Configuration) -> None:
    conf.set("sitemap.entries.max", "3")
    conf.set("http.url.limit", "100")
    urls = [f"http://d.test/{'sid=' * 100_000}", *(f"http://d.test/{number}" for number in range(5))]
    for body in (sitemap(*(f"<loc>{url}</loc>" for url in urls)), "\n".join(urls).encode()):
        outcome, listed = process(fetched(body), conf)
        assert outcome.label == "success"
        assert [*listed] == ["test.d:http/0", "test.d:http/1", "test.d:http/2"]


@pytest.mark.parametrize(("root", "entry"), [("urlset", "url"), ("sitemapindex", "sitemap")])
def test_self_reference_is_ignored(conf: Configuration, root: str, entry: str) -> None:
    urls = ("http://h.test/sitemap.xml", "http://h.test/other.xml")
    page = fetched(f"<{root}>{''.join(f'<{entry}><loc>{url}</loc></{entry}>' for url in urls)}</{root}>".encode())
    _, listed = process(page, conf)
    assert [*listed, *page.sitemaps] == (["test.h:http/other.xml"] if entry == "url" else [urls[1]])


def test_content_between_and_inside_entries_is_ignored() -> None:
    odd = "<x:image xmlns:x='i'><x:loc>http://h/no</x:loc></x:image><!-- http://h/no --><?no http://h/no?>"
    pieces = sitemap(f"{odd}<loc>http://h/1</loc>{odd}<priority>0.1</priority>{odd}", f"<loc>http://h/2</loc>{odd}")
    body = pieces.replace(b"<url>", f"{odd}<loc>http://h/no</loc><url>".encode())
    assert parse_sitemap(body).entries == [SitemapEntry("http://h/1", priority=0.1), SitemapEntry("http://h/2")]


XML_SHAPES = {
    name: (lambda length, shape=shape: shape(length).encode())
    for name, shape in repetitions(
        ["<url><loc>http://h/1</loc></url>", "<url>", "<url><url/>", "<a/>", "<a>", "<!-- a -->", "<?a?>", "a", "&amp;",
         "&", "<", "<url><loc>", "</url>", "<loc>http://h/1</loc>"],
        ["<urlset>", "<urlset><url>", "<urlset><url><loc>http://h/"], [""],
    ).items()
}  # fmt: skip
TEXT_SHAPES = {
    name: (lambda length, shape=shape: shape(length).encode())
    for name, shape in repetitions(["a", "http://h/1\n", "\n", " ", "http://", "\r"], ["http://h/\n", ""], [""]).items()
}


def test_parsing_time_is_linear() -> None:
    assert_linear(parse_sitemap, {**XML_SHAPES, **TEXT_SHAPES}, longest=131_072)


@pytest.mark.parametrize("piece", ["<a/>", "<url><loc>http://h/1</loc></url>", "<!--a-->", "<?a?>"])
@pytest.mark.parametrize("head", ["<urlset>", "<urlset><url>"])
def test_sitemap_is_streamed_without_tree(monkeypatch: pytest.MonkeyPatch, head: str, piece: str) -> None:
    most = 0

    def counted(element: Any) -> None:
        nonlocal most
        most = max(most, sum(1 for _ in element.getroottree().iter()))
        forget(element)

    forget = sitemap_module.free_element
    monkeypatch.setattr(sitemap_module, "free_element", counted)
    monkeypatch.setattr(sitemap_module, "FEED_BYTES", 100)
    parse_sitemap((head + piece * 500).encode())
    assert most < 60


@pytest.mark.parametrize(
    ("text", "iso"),
    [
        ("2020", "2020-01-01T00:00:00+00:00"),
        ("2020-08-02T10:00Z", "2020-08-02T10:00:00+00:00"),
        ("2020-08-02T10:00:30.5+02:00", "2020-08-02T08:00:30+00:00"),
        ("2020-08-02T10:00:30-0130", "2020-08-02T11:30:30+00:00"),
    ],
)
def test_w3c_times_are_parsed(text: str, iso: str) -> None:
    assert parse_w3c_time(text) == int(datetime.fromisoformat(iso).timestamp()) * 1000


def test_malformed_times_are_rejected() -> None:
    assert [parse_w3c_time(text) for text in ("", "2020-13", "2020-02-30", "02.08.2020")] == [None] * 4
