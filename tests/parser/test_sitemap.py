import gzip
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from nutch2py.conf import Configuration
from nutch2py.parser import sitemap as sitemap_module
from nutch2py.parser.parsing import Parsing
from nutch2py.parser.sitemap import SitemapEntry, parse_sitemap, parse_w3c_time
from nutch2py.parser.sitemap_parsing import SitemapOutcome, SitemapParsing, row_of
from nutch2py.webpage import Mark, WebPage
from tests.growth import assert_linear, repetitions

from .pages import fetched

XMLNS = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
KEY = "test.h:http/sitemap.xml"


def process(page: WebPage, conf: Configuration) -> SitemapOutcome:
    return SitemapParsing(conf, Parsing(conf)).process(KEY, page)


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
            for row in map(row_of, listed.values()):
                assert row.modified_time == int(day.timestamp()) * 1000
                assert row.metadata["changeFrequency"].decode() == expect["changefreq"].upper()
                assert row.stm_priority == pytest.approx(expect["priority"])
        passed += 1
    print(f"sitemap: {passed}/{len(found)}")


def test_the_cells_of_a_listed_url_and_of_the_sitemap(conf: Configuration) -> None:
    page = fetched(sitemap(
        "<loc>http://d.test/ok.html</loc><lastmod>2020-08-01</lastmod><changefreq>daily</changefreq>"
        "<priority>0.8</priority>", "<loc>http://d.test/pic.gif</loc>", "<loc>http://d.test/bare</loc>"
    ))  # fmt: skip
    outcome, listed = process(page, conf)
    assert outcome.label == "success"
    assert page.markers[Mark.PARSE] == "b1"
    assert page.signature is not None
    assert [*listed] == ["test.d:http/ok.html", "test.d:http/bare"]
    mutation = row_of(listed["test.d:http/ok.html"]).mutation()
    assert mutation is not None
    assert (mutation.deletes, mutation.cleared) == ({}, [])  # no other mark and no cash is lost
    assert mutation.puts == {
        b"f": {b"fi": b"\x00\x01\x51\x80", b"mod": (1_596_240_000_000).to_bytes(8, "big")},
        b"s": {b"sp": b"\x3f\x4c\xcc\xcd"},
        b"mk": {b"_injmrk_": b"y"},
        b"mtdt": {b"changeFrequency": b"DAILY", b"lastModified": b"1596240000000", b"priority": b"0.8"},
    }
    other = row_of(listed["test.d:http/bare"], None)
    assert other.stm_priority == 0.5
    mutation = other.mutation()
    assert mutation is not None
    assert b"mk" not in mutation.puts  # one that was injected before keeps its mark


def test_what_is_no_sitemap_fails(conf: Configuration) -> None:
    for body in (b"<html><body>404</body></html>", b"", b"nothing", b"\x1f\x8bbroken", b"<"):
        page = fetched(body)
        outcome, listed = process(page, conf)
        assert (outcome.label, listed) == ("failed", {}), body
        assert page.parse_status is not None
        assert page.parse_status.args[0].startswith("sitemap: ")
        assert Mark.PARSE not in page.markers


def test_broken_entries_do_not_cost_the_others() -> None:
    body = sitemap(
        "<loc> http://h/1 </loc><priority>9</priority><lastmod>soon</lastmod><changefreq>often</changefreq>",
        "<lastmod>2020</lastmod>",
        "<loc>http://h/2</loc>",
    )
    assert parse_sitemap(body).entries == [SitemapEntry("http://h/1"), SitemapEntry("http://h/2")]
    assert len(parse_sitemap(body[:-20]).entries) >= 1  # cut off


def test_gzip_lists_and_feeds() -> None:
    assert parse_sitemap(gzip.compress(sitemap("<loc>http://h/1</loc>"))).entries == [SitemapEntry("http://h/1")]
    assert [e.url for e in parse_sitemap(b"\xef\xbb\xbfhttp://h/1\r\n# no\nhttps://h/2").entries] == [
        "http://h/1", "https://h/2"
    ]  # fmt: skip
    rss = b"<rss><channel><link>http://h/</link><item><link>http://h/1</link></item></channel></rss>"
    assert [e.url for e in parse_sitemap(rss).entries] == ["http://h/1"]
    atom = b"<feed xmlns='http://www.w3.org/2005/Atom'><entry><link href='http://h/1'/><updated>2020</updated></entry></feed>"
    assert parse_sitemap(atom).entries == [SitemapEntry("http://h/1", 1_577_836_800_000)]


def test_bombs_and_foreign_files_are_harmless() -> None:
    packed = gzip.compress(sitemap("<loc>http://h/1</loc>", *["<loc>http://h/2</loc>"] * 100_000))
    assert len(parse_sitemap(packed, max_bytes=10_000).entries) < 1_000
    assert len(parse_sitemap(sitemap(*["<loc>http://h/2</loc>"] * 60_000)).entries) == 50_000
    entity = (
        b"<!DOCTYPE u [<!ENTITY x SYSTEM 'file:///etc/passwd'>]><urlset><url><loc>http://h/&x;</loc></url></urlset>"
    )
    assert all("root" not in e.url for e in parse_sitemap(entity).entries)


def test_entries_and_the_length_of_their_urls_are_limited(conf: Configuration) -> None:
    conf.set("sitemap.entries.max", "3")
    conf.set("http.url.limit", "100")
    urls = [f"http://d.test/{'sid=' * 100_000}", *(f"http://d.test/{number}" for number in range(5))]
    for body in (sitemap(*(f"<loc>{url}</loc>" for url in urls)), "\n".join(urls).encode()):
        outcome, listed = process(fetched(body), conf)
        assert outcome.label == "success"
        assert [*listed] == ["test.d:http/0", "test.d:http/1", "test.d:http/2"]


@pytest.mark.parametrize(("root", "entry"), [("urlset", "url"), ("sitemapindex", "sitemap")])
def test_a_sitemap_that_names_itself_is_not_its_own_entry(conf: Configuration, root: str, entry: str) -> None:
    urls = ("http://h.test/sitemap.xml", "http://h.test/other.xml")
    page = fetched(f"<{root}>{''.join(f'<{entry}><loc>{url}</loc></{entry}>' for url in urls)}</{root}>".encode())
    _, listed = process(page, conf)
    assert [*listed, *page.sitemaps] == (["test.h:http/other.xml"] if entry == "url" else [urls[1]])


def test_what_stands_between_and_inside_entries_changes_nothing() -> None:
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


def test_reading_takes_time_that_grows_with_the_sitemap() -> None:
    assert_linear(parse_sitemap, {**XML_SHAPES, **TEXT_SHAPES}, longest=131_072)


@pytest.mark.parametrize("piece", ["<a/>", "<url><loc>http://h/1</loc></url>", "<!--a-->", "<?a?>"])
@pytest.mark.parametrize("head", ["<urlset>", "<urlset><url>"])
def test_a_sitemap_is_never_held_as_a_whole_tree(monkeypatch: pytest.MonkeyPatch, head: str, piece: str) -> None:
    most = 0

    def counted(element: Any) -> None:
        nonlocal most
        most = max(most, sum(1 for _ in element.getroottree().iter()))
        forget(element)

    forget = sitemap_module._forget
    monkeypatch.setattr(sitemap_module, "_forget", counted)
    monkeypatch.setattr(sitemap_module, "_PIECE", 100)
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
def test_w3c_times(text: str, iso: str) -> None:
    assert parse_w3c_time(text) == int(datetime.fromisoformat(iso).timestamp()) * 1000


def test_malformed_times() -> None:
    assert [parse_w3c_time(text) for text in ("", "2020-13", "2020-02-30", "02.08.2020")] == [None] * 4
