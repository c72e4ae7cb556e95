"""The time of patterns and scans of the parsers is linear in the page's size."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import nutch2py.parser
from nutch2py.parser.charset.encoding_detector import guess_encoding, header_charset
from nutch2py.parser.charset.encoding_names import resolve_label
from nutch2py.parser.charset.prescan import sniff_label
from nutch2py.parser.filters.creativecommons import find_in_comments
from nutch2py.parser.formats.javascript import extract_script_links
from nutch2py.parser.html import html_limits
from nutch2py.parser.html.dom import collapse, parse_tree
from nutch2py.parser.html.html_limits import HtmlLimits
from nutch2py.parser.links.text_link_extractor import extract_links
from nutch2py.parser.xml_sanitizer import sanitize_xml
from tests.growth import assert_linear, patterns_of, repetitions

PIECES = [
    "<", "<a", "<a ", "<a x=", "<a x='", "<b<", "<b id=1>", "<b/", "<iframe ", "<iframe", "<html a=1>", "<script>",
    "</", "<!--", "-->", "<!-- RDF ", "<![CDATA[", "<!DOCTYPE [",
    "<?", "]", "&", "&a", "&#", " ", "\n", "\0", "a", "a.",
    "a b",
    "=", "= ", "'", '"', "\\", "\\'", "'x", "/", "./", ":", "0", "-", "http:", "%", "#", "=?u?q?", "HYPERLINK ", "\\a ",
    "From x\n", "charset=", "<meta charset=x", "<meta http-equiv=content-type", "http-equiv=content-type ", "<License ",
    "<License rdf:about='", "rdf:about =", "<dc:type ", "rdf:resource= ", " onload ",
    "D:2020", "{", "}", "中", "\u00ad",
]  # fmt: skip
PATTERNS = patterns_of(nutch2py.parser)
ANCHORED = {
    "charset.encoding_detector:_TOP_LEVEL_DOMAIN", "charset.encoding_names:_LABEL_PATTERN",
    "charset.prescan:_ATTRIBUTE",
    "charset.prescan:_XML_DECLARATION", "formats.javascript:_PATH", "html.head_directives:_REFRESH_CONTENT",
    "html.html_limits:_ATTRIBUTES", "html.html_limits:_ATTRIBUTE_PARTS", "html.html_limits:_COMPLETE_FORMATTING_TAG",
    "html.html_limits:_UP_TO_END_TAG", "mime.mime_table:_TYPE_NAME", "mime.text_start:_CUT_TOKEN",
    "mime.text_start:_JSON_TOKEN", "mime.text_start:_MISC", "mime.text_start:_ROOT",
    "mime.mime_types:_STARTS_WITH_TAG", "xml_sanitizer:_DECLARATION",
}  # fmt: skip
"""Patterns that are matched at one position, not searched."""


def test_parser_patterns_are_listed() -> None:
    assert {"html.dom:_SELF_CLOSED_IFRAME", "filters.creativecommons:_RDF_LICENSE"} <= set(PATTERNS)
    assert set(PATTERNS) >= ANCHORED


@pytest.mark.parametrize("name", PATTERNS)
def test_parser_pattern_time_is_linear(name: str) -> None:
    pattern = PATTERNS[name]

    def everything(text: str) -> None:
        whole = text if isinstance(pattern.pattern, str) else text.encode()
        if name in ANCHORED:
            pattern.match(whole)  # type: ignore[call-overload]
            return
        for _ in pattern.finditer(whole):  # type: ignore[call-overload]
            pass

    assert_linear(everything, repetitions(PIECES, ["", "<iframe "], [""]), 4096)


RDF = "<!-- RDF http://web.resource.org/cc/ "
SCANS: dict[str, Callable[[str], object]] = {
    "limits": HtmlLimits(attributes=100, copies=1, depth=100).apply,
    "limits and tree": lambda html: parse_tree(HtmlLimits(attributes=100, copies=1, depth=100).apply(html)[0]),
    "licence": lambda html: find_in_comments(f"{RDF}{html}-->{html}".encode()),
    "charset": lambda html: sniff_label(html.encode(), resolve_label),
    "charset of tags": lambda html: sniff_label(b"<meta charset=0>" + html.encode() + b"<meta ", resolve_label),
    "charset of a header": header_charset,
    "charset by its look": lambda text: guess_encoding(b"\xe9" + text.encode(), "http://h.test/"),
    "charset by the look of a host": lambda text: guess_encoding(b"\xe9", f"http://{text}"),
    "script": lambda text: [*extract_script_links(text, "http://h.test/")],
    "links": extract_links,
    "text": collapse,
    "entities": lambda text: sanitize_xml(text.encode()),
}


@pytest.mark.parametrize("name", SCANS)
def test_scan_time_is_linear(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for size in ("SHORT_PAGE_CHARS", "MANY_TAGS"):  # smaller pages are not scanned
        monkeypatch.setattr(html_limits, size, 0)
    assert_linear(SCANS[name], repetitions(PIECES, [""], [""]))
