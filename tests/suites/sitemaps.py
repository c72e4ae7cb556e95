"""Sitemaps: what crawler-commons' tests read from its files, and from texts like those in its tests."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from nutch2py.parser.sitemap.sitemap_parser import Sitemap, parse_sitemap
from tests.suites.suite import Case, Goal, Repository

GOALS = (Goal("crawler-commons sitemaps", 1.0),)
_COMMONS = Repository(
    "crawler-commons/crawler-commons", "8e14e27cad529a35ee57010fbd63a91cfcfa3fcc", ("/src/test/resources/",)
)
_SITEMAP = "<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'>{}</urlset>"
_INDEX = "<sitemapindex>{}</sitemapindex>"
_URLS = (
    "<url><loc>http://h/</loc><lastmod>2005-01-01</lastmod><changefreq>monthly</changefreq><priority>0.8</priority></url>"
    "<url><loc>http://h/c?d=v&amp;i=12</loc><changefreq>weekly</changefreq></url>"
    "<url><loc>http://h/n</loc><lastmod>2004-12-23T18:00:15&#43;00:00</lastmod><priority>0.3</priority></url>"
)


class Expected(NamedTuple):
    """Expected entries of a sitemap: their number, and for some index the URL, date (ms) or extension."""

    count: int
    at: tuple[tuple[int, str], ...] = ()
    dates: tuple[tuple[int, int | None], ...] = ()
    extensions: tuple[tuple[int, str, str], ...] = ()


_FILES = {
    "sitemaps/sitemap.index.xml": Expected(15, ((0, "https://example.com/sitemap.jss?portalCode=10260&lang=en"),)),
    "sitemaps/sitemap.ns.xml": Expected(2),
    "sitemaps/sitemap.badns.xml": Expected(2),
    "sitemaps/sitemap.txt": Expected(2),
    "sitemaps/sitemap.txt.gz": Expected(5),
    "sitemaps/sitemap-with-bom.txt": Expected(2),
    "sitemaps/xmlSitemap.gz": Expected(5),
    "sitemaps/atom.xml": Expected(1, ((0, "http://example.org/2003/12/13/atom03"),), ((0, 1071340202000),)),
    "rss/feed.rss": Expected(
        4,
        (
            (0, "https://www.example.com/blog/post/1"), (1, "https://www.example.com/guid.html"),
            (2, "https://www.example.com/foo?q=a&l=en"), (3, "https://www.example.com/foo?q=a&l=fr"),
        ),
        ((0, 1252254000000),),
    ),
    "rss/xmlRss_pubDate.xml": Expected(
        7,
        ((0, "http://www.example.com/article_1"),),
        (
            (0, 1483619691000), (1, 1483619692000), (2, 1483619693000), (3, 1483619694000), (4, None), (5, None),
            (6, None),
        ),
    ),
    "sitemaps/extension/sitemap-videos.xml": Expected(
        3, extensions=((0, "video.title", "Grilling steaks for summer"), (0, "video.tag", "sample_tag1\nsample_tag2"))
    ),
    "sitemaps/extension/sitemap-videos-tvshow.xml": Expected(1, extensions=((0, "video.show_title", ""),)),
    "sitemaps/extension/sitemap-images.xml": Expected(1, extensions=((0, "image.loc", "http://example.com/image.jpg"),)),
    "sitemaps/extension/sitemap-links.xml": Expected(
        3, extensions=((0, "alternate", "de http://www.example.com/deutsch/"),)
    ),
    "sitemaps/extension/sitemap-news.xml": Expected(2, extensions=((0, "news.title", "Companies A, B in Merger"),)),
    "sitemaps/extension/sitemap-mobile.xml": Expected(0),
    "sitemaps/extension/pagemaps-sitemap.xml": Expected(2),
    "sitemaps/extension/shinpaideshou-news-sitemap.xml": Expected(
        3, extensions=((0, "news.publication_date", "2017"),)
    ),
    "sitemaps/extension/hebdenbridgetimes-articles-sitemap.xml": Expected(74),
}  # fmt: skip
_TEXTS = {
    "index": (
        _INDEX.format(
            "<sitemap><loc>http://h/1.xml.gz</loc><lastmod><![CDATA[2004-10-01T18:23:17+00:00]]></lastmod></sitemap>"
            "<sitemap><loc>http://h/d?date=now&amp;all=true</loc><lastmod>2004-10-01T18:23:17&#43;00:00</lastmod></sitemap>"
            "<sitemap><loc>http://h/d<![CDATA[?date=lastyear&all=false]]></loc></sitemap>"
        ).encode(),
        Expected(
            3,
            ((1, "http://h/d?date=now&all=true"), (2, "http://h/d?date=lastyear&all=false")),
            ((0, 1096654997000), (1, 1096654997000)),
        ),
    ),
    "an entity from outside": (
        b"<!DOCTYPE u [<!ENTITY t SYSTEM 'file:///etc/hostname'>]>"
        + _SITEMAP.format("<url><loc>http://h/here</loc></url><url><loc>&t;</loc></url>").encode(),
        Expected(2, ((0, "http://h/here"), (1, "&t;"))),
    ),
    "an inclusion": (
        _SITEMAP.format(
            "<url><loc>http://h/here</loc></url><url><loc><i:include xmlns:i='http://www.w3.org/2001/XInclude' "
            "href='file:///etc/hostname' parse='text'/></loc></url>"
        ).encode(),
        Expected(1, ((0, "http://h/here"),)),
    ),
    "a list": (b"http://h/c?item=1\nhttp://h/c?item=11", Expected(2)),
    "XML": (
        _SITEMAP.format(_URLS).encode(),
        Expected(3, ((1, "http://h/c?d=v&i=12"),), ((0, 1104537600000), (2, 1103824815000))),
    ),
    "a mark and white space before": (
        ("\ufeff\n \t\r\n<?xml version='1.0'?>" + _SITEMAP.format(_URLS)).encode(), Expected(3)
    ),
    "gzip of two members": (
        gzip.compress(_SITEMAP.format(_URLS).encode()[:100]) + gzip.compress(_SITEMAP.format(_URLS).encode()[100:]),
        Expected(3),
    ),
    "two locations in one entry": (
        _INDEX.format(
            "<sitemap><loc>https://h/1.xml</loc><lastmod>2004-10-01T18:23:17+00:00</lastmod><loc>https://h/2.xml</loc>"
            "<loc>https://h/3.xml</loc><lastmod>2005-11-02T19:24:18+00:00</lastmod></sitemap>"
        ).encode(),
        Expected(3, ((1, "https://h/2.xml"),), ((0, 1096654997000), (1, None), (2, 1130959458000))),
    ),
    "white space of Unicode": (
        _INDEX.format("<sitemap><loc>\n<![CDATA[\u00a0https://h/2.xml ]]> \u2000\n</loc></sitemap>").encode(),
        Expected(1, ((0, "https://h/2.xml"),)),
    ),
    "RSS 1.0": (
        (
            b"<?xml version='1.0'?>"
            b"<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns='http://purl.org/rss/1.0/'><channel>"
            b"<link>http://h/pub</link></channel><image><link>http://h</link><url>http://h/i.gif</url></image>"
            b"<item><title>t</title><link>http://h/x.html</link></item></rdf:RDF>"
        ),
        Expected(1, ((0, "http://h/x.html"),)),
    ),
    "a URL cut off": (b"<urlset><url><loc>http://h/</lo", Expected(1, ((0, "http://h/"),))),
    "an index cut off": (b"<sitemapindex><sitemap><loc>http://h/1.xml.gz</loc><las", Expected(1)),
    "a URL in a URL": (
        _SITEMAP.format("<url><loc><url><![CDATA[http://h/job]]></url></loc><lastmod>2015-04-28</lastmod></url>").encode(),
        Expected(1, ((0, "http://h/job"),), ((0, 1430179200000),)),
    ),
    "no sitemap": (b"\0\1\2 nothing of the kind", None),
}  # fmt: skip


def cases(data: Path) -> Iterator[Case]:
    """Yield all cases."""
    folder = _COMMONS.folder(data) / "src" / "test" / "resources"
    for name, expected in _FILES.items():
        yield Case("crawler-commons sitemaps", name, _left((folder / name).read_bytes(), expected))
    for name, (body, wanted) in _TEXTS.items():
        yield Case("crawler-commons sitemaps", name, _left(body, wanted))


def _left(body: bytes, expected: Expected | None) -> str:
    try:
        sitemap = parse_sitemap(body)
    except ValueError as error:
        return str(error) if expected else ""
    return "no sitemap, and read as one" if expected is None else _differing(sitemap, expected)


def _differing(sitemap: Sitemap, expected: Expected) -> str:
    entries = sitemap.entries
    if expected.count and len(entries) != expected.count:
        return f"{len(entries)} URLs, not {expected.count}"
    for place, url in expected.at:
        if entries[place].url != url:
            return f"{entries[place].url}, not {url}"
    for place, date in expected.dates:
        if entries[place].last_modified != date:
            return f"{entries[place].url}: {entries[place].last_modified}, not {date}"
    for place, name, value in expected.extensions:
        if value not in entries[place].extensions.get(name, "-"):
            return f"{name} of {entries[place].url}: {entries[place].extensions.get(name)!r}, not {value!r}"
    return ""
