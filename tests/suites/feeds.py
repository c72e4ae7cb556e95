"""Feeds: titles, links, descriptions and entities as feedparser's own tests expect them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from nutch2py.conf.configuration import Configuration
from nutch2py.interfaces import Parse
from nutch2py.parser.formats.feed import FeedParser, resolve_target, strip_markup
from nutch2py.records.webpage import ParseStatusCode, WebPage
from tests.suites.suite import Case, Goal, Repository

GOALS = (
    Goal("entry titles", 0.97), Goal("entry links", 0.97), Goal("descriptions", 0.97), Goal("feed titles", 0.97),
    Goal("feed links", 0.97), Goal("entities", 1.0),
)  # fmt: skip
_FEEDPARSER = Repository("kurtmckee/feedparser", "a22c5521cbb109871f1a2318948581901bd47e26", ("/tests/",))
_EXPECT = re.compile(r"Expect:\s*(.*?)\s*-->", re.DOTALL)
_HEADER = re.compile(r"^(?:Header:\s+)?Content-(Location|Type):\s*(\S.*)$", re.MULTILINE)
_EQUAL = re.compile(
    r"(?:^|and )\s*(entries\[0\]|feed)\.(title|link|description|summary|subtitle|tagline|content\[0\])"
    r"(?:_detail)?(?:\.value)?\s*==\s*u?(.+?)(?= and (?:entries|feed|bozo|not )|$)",
    re.DOTALL,
)
_KEY = re.compile(r"\[u?['\"](\w+)['\"]\]")
_URL = "http://127.0.0.1:8097/feed.xml"
_PARTS = {
    "title": "titles", "link": "links", "description": "descriptions", "summary": "descriptions",
    "content[0]": "descriptions", "subtitle": "descriptions", "tagline": "descriptions",
}  # fmt: skip
# HTML 4 and HTML 5 call two other characters lang and rang
_BRACKETS = str.maketrans({"〈": "⟨", "〉": "⟩", "\u2329": "⟨", "\u232a": "⟩"})


def cases(data: Path) -> Iterator[Case]:
    """Yield a case for each value of the tests that this program gives, too."""
    folder = _FEEDPARSER.folder(data) / "tests"
    parser = FeedParser(Configuration.load())
    for file in sorted(
        [*folder.glob("wellformed/*/*.xml"), *folder.glob("illformed/*.xml"), *folder.glob("entities/*.xml")]
    ):
        body = file.read_bytes()
        head = body.decode("utf-8", "replace")[:4000]
        expect = _EXPECT.search(head)
        if expect is None:
            continue
        for part, value in _values(" ".join(expect[1].split())):
            parse = _parse(parser, body, head)
            name = f"{file.parent.name}/{file.name}"
            yield Case("entities" if file.parent.name == "entities" else part, name, _left(part, value, parse))


def _values(expression: str) -> Iterator[tuple[str, str]]:
    for what, key, literal in _EQUAL.findall(_KEY.sub(r".\1", expression)):
        part, value = _PARTS[key], _string(literal)
        if value is not None:
            yield part if part == "descriptions" else f"{'feed' if what == 'feed' else 'entry'} {part}", value


def _string(literal: str) -> str | None:
    try:
        value = ast.literal_eval(literal.strip())
    except (SyntaxError, ValueError):
        return None
    return value if isinstance(value, str) else None


def _parse(parser: FeedParser, body: bytes, head: str) -> Parse:
    headers = {name: value.strip() for name, value in _HEADER.findall(head)}
    page = WebPage()
    location = resolve_target(_URL, headers.get("Location", ""))
    page.base_url = location if location.startswith("http") else _URL
    page.content, page.content_type, page.headers = body, "application/rss+xml", {}
    if "Type" in headers:
        page.headers = {"Content-Type": headers["Type"]}
    return parser.parse(page.base_url, page)


def _left(part: str, value: str, parse: Parse) -> str:
    if parse.major != ParseStatusCode.SUCCESS:
        return f"failed: {parse.args}"
    wanted = _plain(value)
    if part.endswith("links"):
        found = [link.url for link in parse.outlinks]
        return "" if not value or resolve_target(_URL, value.strip()) in found else f"{found}, not {value!r}"
    if part == "feed titles":
        return "" if wanted in (_plain(parse.title), parse.title) else f"{parse.title!r}, not {wanted!r}"
    text = " ".join(parse.text.split()).translate(_BRACKETS)
    return "" if wanted in text else f"{wanted!r} is not in {text[:120]!r}"


def _plain(value: str) -> str:
    """Return the words of a value, which may be HTML: this program keeps text."""
    return " ".join(strip_markup(value).split()).translate(_BRACKETS)
