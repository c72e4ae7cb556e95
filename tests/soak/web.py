"""The generated web: what each of many hosts answers to a path, and in which shares the hosts are good or bad.

A page depends on the seed, its host and its path alone. Sizes of pages and of sites are log-normal. Links lead on in
the site and to hosts drawn from all, so the web is infinite: calendars and sites with session paths have no end.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from tests.site.hostile.server import TRICKS
from tests.site.hostile.trick import Request, Sent, Trick, page
from tests.site.hosts import paper, report
from tests.site.server import Reply

HONEST, CALENDAR, SESSIONS, REDIRECTS, HOSTILE, GATED = (
    "honest", "calendar", "sessions", "redirects", "hostile", "gated",
)  # fmt: skip
SHARES: Mapping[str, float] = {
    HONEST: 0.72, CALENDAR: 0.05, SESSIONS: 0.05, REDIRECTS: 0.05, HOSTILE: 0.12, GATED: 0.01,
}  # fmt: skip
"""Kinds of hosts. hostile: does a trick of :mod:`tests.site.hostile`; gated: at an address that is excluded."""
HOSTILE_TRICKS = tuple(trick for trick in TRICKS if trick.scheme == "http" and not trick.sitemap)
ROBOTS: Mapping[str, float] = {
    "plain": 0.7, "none": 0.2, "forbidden": 0.01, "failing": 0.01, "many-rules": 0.02, "many-stars": 0.01,
    "redirects": 0.02, "other": 0.03,
}  # fmt: skip
"""Kinds of robots.txt."""
_GATED_ADDRESS = "10.9.8.7"
_MEDIAN_SIZE, _SPREAD_SIZE = 9.0, 1.0  # of the logarithm of a page's characters: 8 KB, and 64 KB for one in 50
_MEDIAN_SITE, _SPREAD_SITE = 3.0, 1.5  # of that of a site's pages: 20, and 400 for one in 50
_MOST_CHARACTERS, _MOST_PAGES = 1 << 21, 50_000
_SYLLABLES = ("ka", "lo", "mi", "ter", "an", "dus", "re", "vo", "shi", "pel", "qua", "ost", "ing", "bra", "eth", "u")


class Place(NamedTuple):
    """A host of the web: its number, its kind, and how many pages it has."""

    number: int
    kind: str
    pages: int


class Web:
    """``hosts``: how many there are; ``tricks``: what the hostile ones do, one each.

    Names are ``h0.example`` and so on, all on the port that is given.
    """

    def __init__(self, seed: int, hosts: int, tricks: Sequence[Trick] = HOSTILE_TRICKS) -> None:
        self.seed, self.count, self.tricks = seed, hosts, tricks

    @classmethod
    def of(cls, asked: Mapping[str, Any]) -> Web:
        """Return the web that :meth:`to_json` describes."""
        names = set(asked["tricks"])
        return cls(asked["seed"], asked["hosts"], [trick for trick in HOSTILE_TRICKS if trick.name in names])

    def to_json(self) -> dict[str, Any]:
        """Return what another process needs to make the same web."""
        return {"seed": self.seed, "hosts": self.count, "tricks": [trick.name for trick in self.tricks]}

    def prepare(self) -> None:
        """Make what takes seconds to make, so that no host waits for it."""
        self.text(self._drawn(), 1)
        for trick in self.tricks:
            if trick.make is not None:
                trick.make()

    @staticmethod
    def name(number: int) -> str:
        """Return the name of a host."""
        return f"h{number}.example"

    def base(self, number: int, port: int) -> str:
        """Return the URL of a host, without a slash at the end."""
        return f"http://{self.name(number)}:{port}"

    def place(self, number: int) -> Place:
        """Return what a host is."""
        drawn = self._drawn("host", number)
        kind = _choice(drawn, SHARES)
        pages = min(1 + int(drawn.lognormvariate(_MEDIAN_SITE, _SPREAD_SITE)), _MOST_PAGES)
        return Place(number, kind, pages)

    def found(self, host: str) -> tuple[Place, Trick | None]:
        """Return what the host of a name is, and the trick that it does."""
        place = self.place(int(host[1:].partition(".")[0]))
        return place, self._trick(place)

    def _trick(self, place: Place) -> Trick | None:
        return self._drawn("trick", place.number).choice(self.tricks) if place.kind == HOSTILE else None

    def hosts_file(self) -> Iterator[str]:
        """Yield the lines of a hosts file that leads to the server, or to an address that no crawl may ask."""
        for number in range(self.count):
            gated = self.place(number).kind == GATED
            yield f"{_GATED_ADDRESS if gated else '127.0.0.1'} {self.name(number)}\n"

    def seeds(self, port: int, most: int) -> Iterator[str]:
        """Yield URLs that are spread over all hosts."""
        drawn = self._drawn("seeds")
        for _ in range(most):
            yield self._somewhere(drawn, port)

    def is_good(self, host: str, path: str) -> bool:
        """Return whether a page must be fetched and parsed: of an honest host, with status 200, and allowed."""
        place, _ = self.found(host)
        if place.kind != HONEST or path == "/robots.txt" or self._robots_kind(place.number) != "plain":
            return False
        number = _page_number(path)
        return number is not None and number < place.pages and self._slip(place.number, number) == ""

    def answer(self, host: str, path: str, port: int) -> Reply | Sent:
        """Return the answer of a host to a path: a reply, or what a hostile host does."""
        place, trick = self.found(host)
        number, base = place.number, self.base(place.number, port)
        if trick is not None:
            request = Request(path, base, self.name(number), port)
            if path.partition("?")[0] != "/robots.txt":
                return trick.answer(request)
            return (trick.robots or _no_robots)(request)
        if path == "/robots.txt":
            reply = self._robots(number, base)
        elif place.kind == REDIRECTS and (drawn := self._drawn(number, path)).random() < 0.8:
            target = base if drawn.random() < 0.5 else self.base(drawn.randrange(self.count), port)
            reply = Reply(
                drawn.choice((301, 302, 303, 307)), headers=[("Location", f"{target}/p/{drawn.randrange(9)}.html")]
            )
        else:
            reply = self._page(place, path, port)
        reply.keep = True
        return reply

    def _somewhere(self, drawn: random.Random, port: int) -> str:
        """Return a URL of any host."""
        place = self.place(drawn.randrange(self.count))
        base = self.base(place.number, port)
        if (trick := self._trick(place)) is not None:
            return base + trick.first
        return f"{base}/" if drawn.random() < 0.6 else f"{base}/p/{drawn.randrange(20)}.html"

    def _drawn(self, *of: object) -> random.Random:
        return random.Random(f"{self.seed} {' '.join(map(str, of))}")

    def _robots_kind(self, number: int) -> str:
        return _choice(self._drawn("robots", number), ROBOTS)

    def _robots(self, number: int, base: str) -> Reply:
        kind = self._robots_kind(number)
        if kind == "none":
            return Reply(404)
        if kind == "failing":
            return Reply(500)
        if kind == "redirects":
            return Reply(301, headers=[("Location", f"{base}/robots.txt")])
        text = {
            "forbidden": "User-agent: *\nDisallow: /\n",
            "many-rules": "".join(f"User-agent: a{n}\nDisallow: /{n}\n" for n in range(5000))
            + "User-agent: *\n" + "".join(f"Disallow: /no/{number}/{n}\n" for n in range(10_000)),
            "many-stars": "User-agent: *\n" + "".join(f"Disallow: /*a*{number}*{n}$\n" for n in range(2000)),
            "other": f"<html>{'x' * 600_000}",
        }.get(kind, f"User-agent: *\nDisallow: /private/\nSitemap: {base}/sitemap.xml\n")  # fmt: skip
        return Reply(body=text.encode(), content_type="text/plain")

    def _slip(self, host: int, page: int) -> str:
        """Return the defect of a page of an honest host, "" for most."""
        return _choice(self._drawn("slip", host, page), _SLIPS)

    def _page(self, place: Place, path: str, port: int) -> Reply:
        drawn = self._drawn(place.number, path)
        asked = _page_number(path)
        if place.kind == CALENDAR:
            month = int(path.rpartition("/")[2]) if path.rpartition("/")[2].isdigit() else 24_300
            links = [f"/calendar/{month + 1}", f"/calendar/{month - 1}", f"/calendar/{month}/day/{drawn.randrange(31)}"]
        elif place.kind == SESSIONS:
            links = [f"/s{drawn.getrandbits(48):012x}/p/{drawn.randrange(place.pages)}.html" for _ in range(5)]
            links += [f"/p/{n};jsessionid={drawn.getrandbits(64):016x}" for n in range(3)]
        else:
            if asked is None or asked >= place.pages:
                return Reply(404, b"none", reason="Not Found")
            if reply := self._slipped(self._slip(place.number, asked), place, asked):
                return reply
            links = [f"/p/{drawn.randrange(place.pages)}.html" for _ in range(6)]
        links += [self._somewhere(drawn, port) for _ in range(6)]
        anchors = " ".join(f'<a href="{link}">{drawn.choice(self._words)}</a>' for link in links)
        size = min(int(drawn.lognormvariate(_MEDIAN_SIZE, _SPREAD_SIZE)), _MOST_CHARACTERS)
        head = f"<title>{path} of {place.number}</title>{anchors}<p>token{drawn.getrandbits(40):x} "
        text = head + self.text(drawn, size)
        etag = f'"{zlib.crc32(path.encode()):x}"'
        return Reply(body=text.encode(), headers=[("ETag", etag)], content_type="text/html; charset=utf-8")

    @staticmethod
    def _slipped(slip: str, place: Place, page: int) -> Reply | None:
        match slip:
            case "gone":
                return Reply(410, b"gone")
            case "failed":
                return Reply(500, b"failed")
            case "moved":
                return Reply(301, headers=[("Location", f"/p/{(page + 1) % place.pages}.html")])
            case "paper":
                return Reply(body=paper(), content_type="application/pdf")
            case "report":
                return Reply(body=report(), content_type=_DOCX)
        return None

    @cached_property
    def _words(self) -> list[str]:
        drawn = self._drawn("words")
        return ["".join(drawn.choices(_SYLLABLES, k=drawn.randint(1, 4))) for _ in range(5000)]

    @cached_property
    def _paragraphs(self) -> list[str]:
        drawn = self._drawn("paragraphs")
        return [f"<p>{' '.join(drawn.choices(self._words, k=60))}.</p>\n" for _ in range(2000)]

    def text(self, drawn: random.Random, size: int) -> str:
        """Return about ``size`` characters of text."""
        return "".join(drawn.choices(self._paragraphs, k=1 + size // len(self._paragraphs[0])))


_SLIPS: Mapping[str, float] = {
    "": 0.9, "gone": 0.02, "failed": 0.02, "moved": 0.03, "paper": 0.02, "report": 0.01,
}  # fmt: skip
_DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"


def _page_number(path: str) -> int | None:
    """Return the number of a page of an honest host, None when the path is another."""
    name = "0" if path == "/" else path.removeprefix("/p/").removesuffix(".html")
    return int(name) if name.isdecimal() and len(name) < 9 else None


def _choice(drawn: random.Random, shares: Mapping[str, float]) -> str:
    return drawn.choices(list(shares), list(shares.values()))[0]


def _no_robots(_: Request) -> Sent:
    return page(b"none", "text/plain", status="404 Not Found")
