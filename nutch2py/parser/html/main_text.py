"""The main text of a page without boilerplate, extracted by trafilatura as text or Markdown.

trafilatura is the best of the libraries compared on the article-extraction-benchmark (``scripts/test suites
main-text``). It is optional: the extra ``main-text`` installs it.
"""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Callable
from functools import cache
from typing import Any

from nutch2py.errors import ConfigurationError
from nutch2py.records.webpage import WebPage

MAIN_TEXT_KEY = "main.text"
"""Metadata entry: the main text of a page (``parser.html.main.text``)."""
MAIN_TEXT_FORMS = ("text", "markdown")
"""Values of ``parser.html.main.text.form``."""
_MAX_TABLE_COLUMNS, _MAX_TABLE_CELLS = 2000, 500_000  # of the tables of a page
_MAX_ELEMENTS = 30_000  # of a page; a larger one has its full text only
_INLINE_TAGS = (
    *("abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "data", "dfn", "em", "font", "i", "ins", "kbd", "mark", "q"),
    *("rp", "rt", "ruby", "s", "samp", "small", "span", "strong", "sub", "sup", "tt", "u", "var", "wbr"),
)
_MAX_INLINE_TAGS = 1000  # in one element
_MAX_SPAN = 1000  # the limit of trafilatura and of the HTML standard


def main_or_full_text(page: WebPage) -> str:
    """Return the main text of a row, or its full text when there is no main text."""
    return page.metadata.get(MAIN_TEXT_KEY, b"").decode("utf-8", "replace") or page.text or ""


def extract_main_text(html: str, full_length: int = 0) -> str:
    """Return the main text of a page, a paragraph per line; "" when there is none.

    ``full_length``: characters of the page's full text. If the result is much shorter, the page is read again with its
    sections as paragraphs and hidden parts visible. This finds e.g. the articles of WeChat, which scripts unhide.
    """
    found = _extract_plain(html)
    if len(found) * _MAX_TEXT_RATIO < full_length and (shown := _unhide(html)) != html:
        return max(found, _extract_plain(shown), key=len)
    return found


def _extract_plain(html: str) -> str:
    from trafilatura import load_html

    return _extract_bounded(load_html(html))


def _unhide(html: str) -> str:
    return _SECTION_TAG.sub(r"<\1div", _HIDDEN_STYLE.sub("", html))


def extract_markdown(html: str, url: str, full_length: int = 0) -> str:
    """Return the main text as Markdown: headings, lists, tables, emphasis, links. ``url``: URL of the page."""
    found = _convert_to_markdown(html, url)
    if len(found) * _MAX_TEXT_RATIO < full_length and (shown := _unhide(html)) != html:
        return max(found, _convert_to_markdown(shown, url), key=len)
    return found


def _convert_to_markdown(html: str, url: str) -> str:
    from lxml.etree import ParserError
    from lxml.html import HTMLParser, document_fromstring

    try:
        tree = document_fromstring(html.encode("utf-8", "replace"), parser=HTMLParser(encoding="utf-8"))
    except ParserError:  # an empty document
        return ""
    tree.make_links_absolute(url, handle_failures="ignore")  # trafilatura resolves relative links against the host only
    options = {"output_format": "markdown", "include_formatting": True, "include_links": True}
    return _extract_bounded(tree, **options)


def _extract_bounded(tree: Any, **options: Any) -> str:
    """Run trafilatura in time linear in the page's size; return "" for a page of too many elements.

    trafilatura takes quadratic time for inline elements of one parent (lxml's ``strip_tags`` copies the joined text),
    and more for elements of one kind.
    """
    if tree is None:  # an empty document
        return ""
    elements = Counter(element.getparent() for element in tree.iter(*_INLINE_TAGS))
    for parent in [parent for parent, marks in elements.items() if marks > _MAX_INLINE_TAGS]:
        _flatten_inline_tags(parent)
    if sum(1 for _ in tree.iter()) > _MAX_ELEMENTS:
        return ""
    _flatten_wide_tables(tree)
    return str(load_extractor()(tree, **options, **_TRAFILATURA_OPTIONS) or "")


def _flatten_inline_tags(parent: Any) -> None:
    """Move the text of inline children into their parent."""
    before, texts = None, [parent.text or ""]
    for child in [*parent, None]:
        if child is not None and child.tag in _INLINE_TAGS and not len(child):
            texts += child.text or "", child.tail or ""
            parent.remove(child)
            continue
        if before is None:
            parent.text = "".join(texts)
        else:
            before.tail = "".join(texts)
        if child is not None:
            before, texts = child, [child.tail or ""]


def _flatten_wide_tables(tree: Any) -> None:
    """Turn cells into paragraphs in tables that trafilatura would pad too much.

    It pads all rows of a table to equal width, adds a cell for each position of a span, and takes quadratic time per
    row.
    """
    rows = width = widest = spanned = 0
    for element in tree.iter("tr", "td", "th"):
        if element.tag == "tr":
            rows, width = rows + 1, 0
            continue
        across, down = (_parse_span(element.get(name)) for name in ("colspan", "rowspan"))
        width += across
        spanned += across * down
        widest = max(widest, width)
    if widest > _MAX_TABLE_COLUMNS or rows * widest + spanned > _MAX_TABLE_CELLS:
        for element in list(tree.iter("table", "tr", "td", "th")):
            element.tag = "p" if element.tag in ("td", "th") else "div"


def _parse_span(written: str | None) -> int:
    try:
        return min(max(int(written or 1), 1), _MAX_SPAN)
    except ValueError:
        return 1


def require_trafilatura(property_name: str) -> None:
    """Raise a ConfigurationError with installation instructions when trafilatura is not installed."""
    try:
        load_extractor()
    except ImportError as error:
        raise ConfigurationError(
            f"{property_name} needs trafilatura, which is not installed ({error}): pip install 'nutch2py[main-text]'"
        ) from None


_MAX_TEXT_RATIO = 10  # full text of this many characters per character of main text triggers the second try
_SECTION_TAG = re.compile(r"<(/?)section(?=[\s>])", re.IGNORECASE)
_HIDDEN_STYLE = re.compile(r"visibility\s{0,9}:\s{0,9}hidden", re.IGNORECASE)
# fast: skips the fallback algorithms; as accurate here, and a third cheaper
_TRAFILATURA_OPTIONS: dict[str, object] = {
    "fast": True,
    "include_comments": False,
    "include_tables": True,
    "deduplicate": False,
}


@cache
def load_extractor() -> Callable[..., str | None]:
    """Return the extractor of trafilatura, imported at the first use; ``load_extractor.cache_clear()`` forgets it."""
    from trafilatura import extract

    logging.getLogger("trafilatura").setLevel(logging.CRITICAL)  # it logs a warning for every page without text
    return extract
