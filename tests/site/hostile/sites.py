"""Endless sites: calendars, session ids, unlimited robots.txt and sitemaps."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from functools import cache
from itertools import count

from tests.site.hostile.trick import Request, Sent, Tricks, head, page

tricks = Tricks()
_numbers = count(1)
_GOOD = b"<title>A page</title><p>hello"


def _anchors(*urls: str) -> bytes:
    return b"<title>more</title>" + "".join(f"<a href='{url}'>on</a> " for url in urls).encode()


@tricks.trick("a calendar: every day links to the next and to its hours", "SUCCESS", "success")
def calendar(request: Request) -> Sent:
    day = request.path.rpartition("/")[2]
    number = int(day) if day.isdigit() else 0
    return page(_anchors(*(f"/calendar/{number + step}" for step in (1, 7, 30, 365))))


@tricks.trick("a new session id in every link", "SUCCESS", "success")
def session_ids(request: Request) -> Sent:
    number = next(_numbers)
    return page(
        _anchors(*(f"/session-ids/{n};jsessionid={number:032X}" for n in range(20)), f"/s?PHPSESSID={number:x}")
    )


@tricks.trick("links that are one directory deeper on every page", "SUCCESS", "success")
def deeper(request: Request) -> Sent:
    return page(_anchors(f"{request.path}/deeper/", f"{request.path}/deeper/deeper/"))


@tricks.trick("every path is the same page", "SUCCESS", "success")
def same(_: Request) -> Sent:
    number = next(_numbers)
    return page(_anchors(*(f"/same/{number}/{n}" for n in range(50))))


@tricks.trick("every page of the site is 404, with links to more", "NOTFOUND")
def missing(_: Request) -> Sent:
    return page(_anchors("/a", "/b"), status="404 Not Found")


def _robots(name: str, what: str, answer: object, fetched: str = "SUCCESS", parsed: str = "success") -> None:
    def made(request: Request) -> Sent:
        return answer(request) if callable(answer) else answer  # type: ignore[return-value]

    tricks.add(f"robots-{name}", f"robots.txt: {what}", page(_GOOD), fetched, parsed, robots=made)


def _text(body: bytes) -> Sent:
    return tuple(page(body, "text/plain"))


@cache
def _rules() -> Sent:
    return _text(b"User-agent: *\n" + b"".join(b"Disallow: /*%d$\n" % n for n in range(30_000)))


def _repeated(first: bytes, rest: bytes, pause: float = 0.0) -> Iterator[bytes | float]:
    yield first
    while True:
        if pause:
            yield pause
        yield rest


def _robots_head() -> bytes:
    return head("text/plain")


_robots("rules", "30,000 rules with *", lambda _: _rules())
_robots("stars", "rules of 5,000 stars", _text(b"User-agent: *\n" + b"Disallow: /" + b"*a" * 5000 + b"$\n" * 9))
_robots("line", "one line of a megabyte", _text(b"User-agent: *\nDisallow: /" + b"y" * 1_000_000), parsed="success")
_robots(
    "agents",
    "40,000 agents of one group",
    _text(b"".join(b"User-agent: a%d\n" % n for n in range(30_000)) + b"Disallow: /"),
)
_robots("endless", "without end", lambda _: _repeated(_robots_head(), b"Disallow: /x\n" * 5000))
_robots("drip", "a byte every second", lambda _: _repeated(_robots_head(), b"D", 1), "SUCCESS|EXCEPTION", "success|")
_robots("silent", "no answer", lambda _: (3600.0,), "SUCCESS|EXCEPTION", "success|")
_robots(
    "redirects",
    "redirects to itself",
    lambda _: (head(status="302 Found").replace(b"\r\n\r\n", b"\r\nLocation: /robots.txt\r\n\r\n"),),
)
_robots(
    "redirect-new",
    "redirects for ever",
    lambda _: (head("text/plain", f"Location: /robots.txt?{next(_numbers)}", status="302 Found"),),
)
_robots(
    "redirect-dots",
    "redirects to a host of 60 dots",
    lambda _: (head("text/plain", "Location: a" + "." * 60 + "!:x", status="302 Found"),),
)
_robots(
    "redirect-file",
    "redirects to a file",
    lambda _: (head("text/plain", "Location: file:///etc/passwd", status="302 Found"),),
)
_robots("failing", "500, always", lambda _: page(b"", status="500 Failed"), "", "")
_robots(
    "delay",
    "a Crawl-delay of 10^400",
    _text(b"User-agent: *\nCrawl-delay: " + b"9" * 400),
    "SUCCESS|ROBOTS_DENIED",
    "success|",
)
_robots("delay-long", "a Crawl-delay of a year", _text(b"User-agent: *\nCrawl-delay: 31536000"), "ROBOTS_DENIED", "")
_robots("sitemaps", "20,000 sitemaps", _text(b"".join(b"Sitemap: /s%d\n" % n for n in range(20_000))))
_robots("sitemap-dots", "a sitemap at a host of 60 dots", _text(b"Sitemap: a" + b"." * 60 + b"!:x\n"))
_robots("bomb", "300 MB in gzip", lambda _: page(_gzip_rules(), "text/plain", "Content-Encoding: gzip"))
_robots("html", "a page of 400 KB of tags", _text(b"<html>" + b"<" * 200_000 + b"<br" * 60_000))
_robots("utf16", "UTF-32 of half characters", _text(b"\xff\xfe\0\0" + b"\x01" * 400_001))
_robots(
    "blanks", "lines of 100,000 blanks", _text(b"User-agent" + b" " * 200_000 + b"\nDisallow" + b"\t" * 200_000 + b"x")
)
_robots("bytes", "every byte", _text(bytes(range(256)) * 1500))


@cache
def _gzip_rules() -> bytes:
    return gzip.compress(b"Disallow: /x\n" * 5_000_000)


def _urlset(inside: str) -> bytes:
    return f"<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'>{inside}</urlset>".encode()


def _sitemap(
    name: str, what: str, answer: object, content_type: str = "application/xml", parsed: str = "success|failed"
) -> None:
    def made(request: Request) -> Sent:
        body = answer(request) if callable(answer) else answer
        return page(body, content_type) if isinstance(body, bytes) else body  # type: ignore[return-value]

    tricks.add(
        f"sitemap-{name}",
        f"sitemap: {what}",
        made,
        "SUCCESS|EXCEPTION",
        parsed,
        sitemap=True,
        path=f"/sitemap-{name}.xml",
    )


def _index(request: Request) -> bytes:
    number = next(_numbers)
    locations = "".join(f"<sitemap><loc>{request.site}/i{number}-{n}.xml</loc></sitemap>" for n in range(50))
    return f"<sitemapindex xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'>{locations}</sitemapindex>".encode()


@cache
def _many() -> bytes:
    return _urlset("".join(f"<url><loc>http://127.0.0.1:1/{n}</loc></url>" for n in range(60_000)))


_sitemap("index", "an index of indexes without end", _index)
_sitemap("many", "60,000 locations", lambda _: _many())
_sitemap(
    "sids",
    "a location of 100,000 session ids",
    _urlset(f"<url><loc>http://127.0.0.1:1/?{'sid=a&amp;' * 100_000}</loc></url>"),
)
_sitemap("dots", "a location of 60 dots", _urlset(f"<url><loc>a{'.' * 60}!:x</loc></url>"))
_sitemap("bomb", "a sitemap of 300 MB in 300 KB of gzip", lambda _: page(_zeros(), "application/x-gzip"))
_sitemap(
    "entities",
    "10^9 entities",
    lambda _: (
        b"<!DOCTYPE x [<!ENTITY e0 'ha'>"
        + "".join(f"<!ENTITY e{n} '{f'&e{n - 1};' * 10}'>" for n in range(1, 10)).encode()
        + b"]>"
        + _urlset("<url><loc>&e9;</loc></url>")
    ),
)
_sitemap("deep", "300,000 elements deep", lambda _: _urlset("<url>" * 300_000))
_sitemap(
    "images",
    "a location with 50,000 images",
    lambda _: _urlset(
        "<url><loc>http://127.0.0.1:1/</loc>"
        + "<image:image><image:loc>/x</image:loc></image:image>" * 50_000
        + "</url>"
    ),
)
_sitemap(
    "dates",
    "dates and priorities of 50,000 digits",
    _urlset(
        f"<url><loc>http://127.0.0.1:1/</loc><lastmod>{'9' * 50_000}</lastmod><priority>{'9' * 50_000}</priority></url>"
    ),
)
_sitemap("text", "a list of 200,000 lines", lambda _: page(b"http://127.0.0.1:1/\n" * 200_000, "text/plain"))
_sitemap(
    "endless",
    "without end",
    lambda _: _repeated(head("application/xml") + b"<urlset>", b"<url><loc>http://127.0.0.1:1/</loc></url>" * 1000),
)


@cache
def _zeros() -> bytes:
    return gzip.compress(b"<urlset>" + b"<url></url>" * 27_000_000)
