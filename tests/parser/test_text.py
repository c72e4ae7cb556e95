from collections.abc import Callable
from typing import Any

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.parser.formats.text import TextParser
from nutch2py.parser.links.text_link_extractor import extract_links
from nutch2py.parser.row_parser import RowParser

from .pages import KEY, fetched


def test_outlink_extractor_cases(cases: Callable[[str], list[dict[str, Any]]], conf: Configuration) -> None:
    passed = 0
    for case in (found := cases("outlink_extractor")):
        expect, args = case["expect"], case["args"]
        if "conf" in args:
            for name, value in args["conf"].items():
                conf.set(name, value)
            page = fetched(case["input"].encode(), args["content_type"], args["url"])
            RowParser(conf).parse_row(KEY, page)
            assert set(page.outlinks) == set(expect["set"]), case
        else:
            links = extract_links(case["input"], args.get("anchor", ""))
            assert all(link.anchor == args.get("anchor", "") for link in links)
            wanted = expect if isinstance(expect, list) else expect["starts_with"]
            assert len(links) == len(wanted), case
            for link, url in zip(links, wanted, strict=True):
                assert link.url == url if isinstance(expect, list) else link.url.startswith(url), case
        passed += 1
    print(f"outlink_extractor: {passed}/{len(found)}")


@pytest.mark.parametrize(
    ("text", "urls"),
    [
        ("mail mailto:x@y.z now", ["mailto:x@y.z"]),
        ("a:b http://x/%41#frag-1 z", ["http://x/%41#frag-1"]),
        ("http: //x", []),
        ("x" * 100_000, []),
    ],
)
def test_urls_in_text_are_outlinks(text: str, urls: list[str]) -> None:
    assert [link.url for link in extract_links(text)] == urls


@pytest.mark.parametrize(
    ("body", "header", "text", "encoding"),
    [
        ("中 é".encode(), "text/plain", "中 é", b"utf-8"),
        ("中 é".encode()[:-1], "text/plain", "中 \ufffd", b"utf-8"),
        ("é".encode("latin-1"), "text/plain", "é", b"windows-1252"),
        ("é".encode("latin-1"), "text/plain; charset=iso-8859-1", "é", b"windows-1252"),
        (b"a\0b", "text/plain", "ab", b"windows-1252"),
    ],
)
def test_text_is_kept_unchanged(conf: Configuration, body: bytes, header: str, text: str, encoding: bytes) -> None:
    page = fetched(body, "text/plain", Content_Type=header)
    assert TextParser(conf).parse("http://h/", page).text == text
    assert page.metadata["OriginalCharEncoding"] == encoding
