"""Every page of seven packages of documentation: no failure, every link, every Chinese character.

The reference is Python's own ``html.parser``, which shares no code with the parser tested. About 8,600 pages, a million
links; ``NUTCH2PY_TREES`` names the packages to read when not all are wanted.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from html.parser import HTMLParser

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.parser.charset.encoding_detector import decode
from nutch2py.parser.parsechecker import create_page
from nutch2py.parser.row_parser import RowParser
from nutch2py.records.webpage import MetadataKey, ParseStatusCode

from .trees import TREES, pages

SCHEME = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]*):")
FOLLOWED = {"http", "https", "ftp", "file", "mailto"}  # what Java has a protocol for
CJK = re.compile("[\u3400-\u9fff]")
ONLY_A = "area,frame,iframe,script,link,img,form"


class Reference(HTMLParser):
    """Counts ``a`` elements with a target that can be followed and something between their tags, and characters."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.links = 0
        self.chinese: Counter[str] = Counter()
        self._is_link = self._filled = False
        self._hidden = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag != "a":
            self._filled = True
            if tag in ("script", "style"):
                self._hidden = tag
            return
        self.end_link()
        found = dict(reversed(attrs))
        scheme = SCHEME.match((found.get("href") or "").strip())
        follow = "nofollow" not in (found.get("rel") or "").lower().split()
        self._is_link = "href" in found and follow and (scheme is None or scheme[1].lower() in FOLLOWED)
        self._filled = False

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self._hidden = ""

    def handle_endtag(self, tag: str) -> None:
        if tag == self._hidden:
            self._hidden = ""
        if tag == "a":
            self.end_link()

    def handle_data(self, data: str) -> None:
        self._filled = self._filled or bool(data)
        if not self._hidden:
            self.chinese.update(CJK.findall(data))

    def end_link(self) -> None:
        self.links += self._is_link and self._filled
        self._is_link = False


@pytest.mark.parametrize("package", os.environ.get("NUTCH2PY_TREES", " ".join(TREES)).split())
def test_every_page_link_and_character_of_tree_is_parsed(package: str) -> None:
    conf = Configuration.load(
        overrides={"parser.html.outlinks.ignore_tags": ONLY_A, "http.agent.name": "x", "parser.timeout": "60"}
    )
    parsing = RowParser(conf)
    links = characters = 0
    files = pages(package)
    for path in files:
        url = f"http://h.test/d/{path.name}"
        page = create_page(url, path.read_bytes(), "text/html", conf)
        parse = parsing.parse(url, page)
        assert parse.major == ParseStatusCode.SUCCESS, (path, parse.args)
        reference = Reference()
        reference.feed(decode(page.content or b"", page.metadata[MetadataKey.CHARSET].decode()))
        reference.close()
        reference.end_link()
        assert len(parse.outlinks) == reference.links, path
        assert Counter(CJK.findall(parse.text)) == reference.chinese, path
        links += reference.links
        characters += reference.chinese.total()
    print(f"{package}: {len(files)} pages, {links} links, {characters} Chinese characters")
    assert files
    if "zh" in package:
        assert characters > 50_000
