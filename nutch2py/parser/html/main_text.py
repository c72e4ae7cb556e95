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
from itertools import islice
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

    ``full_length``: characters of the page's full text. If the result is short in comparison, other algorithms read the
    page again.
    """
    return extract_with_second_try(html, full_length, _extract_plain, _extract_lines)


def extract_markdown(html: str, url: str, full_length: int = 0) -> str:
    """Return the main text as Markdown: headings, lists, tables, emphasis, links. ``url``: URL of the page."""

    def convert(html: str, **options: Any) -> str:
        return _convert_to_markdown(html, url, **options)

    return extract_with_second_try(html, full_length, convert, lambda summary: convert(summary, favor_recall=True))


def extract_with_second_try(
    html: str, full_length: int, extract: Callable[..., str], extract_summary: Callable[[str], str]
) -> str:
    """Return the text that ``extract`` finds, or that of a second try when it found little.

    A short text is replaced by that of readability if this is much longer and contains it: both saw the same article,
    and one saw more. If the text is a small share of the page, all algorithms of trafilatura read the page, with its
    sections as paragraphs and hidden parts visible. This finds e.g. the articles of WeChat, which scripts unhide.
    """
    found = extract(html)
    if len(found) < _SHORT_TEXT and len(found) * _MIN_GAIN < full_length <= _MAX_SECOND_CHARS:
        second = extract_summary(_summarize(html))
        if len(second) > _MIN_GAIN * len(found) and _is_contained(found, second):
            return second
    if len(found) * _MAX_TEXT_RATIO < full_length:
        second = extract(_unhide(html), fast=full_length > _MAX_SECOND_CHARS)
        if len(second) > _MIN_GAIN * len(found):
            return second
    return found


def _extract_plain(html: str, **options: Any) -> str:
    from trafilatura import load_html

    return _extract_bounded(load_html(html), **options)


def _unhide(html: str) -> str:
    return _SECTION_TAG.sub(r"<\1div", _HIDDEN_STYLE.sub("", html))


def _summarize(html: str) -> str:
    """Return the article of a page as XHTML, by trafilatura's version of readability; "" when the page is too large."""
    from trafilatura import load_html

    tree = load_html(html)
    if tree is None or sum(1 for _ in islice(tree.iter(), _MAX_SECOND_ELEMENTS + 1)) > _MAX_SECOND_ELEMENTS:
        return ""
    try:
        return str(load_readability()(tree, min_text_length=_MIN_PARAGRAPH).summary() or "")
    except Exception:  # noqa: BLE001 - trafilatura expects any error of it, too, e.g. of a tree without an article
        return ""


def _extract_lines(summary: str) -> str:
    """Return the text of a summary, a line per block element."""
    from lxml.etree import iterwalk
    from lxml.html import fragment_fromstring

    if not summary:
        return ""
    pieces: list[str] = []
    for event, element in iterwalk(fragment_fromstring(summary, create_parent=True), events=("start", "end")):
        if element.tag not in _INLINE_TAGS and element.tag not in ("a", "code"):
            pieces.append("\n")
        text = element.text if event == "start" else element.tail
        pieces.append(_WHITE_SPACE.sub(" ", text or ""))
    lines = (_WHITE_SPACE.sub(" ", line).strip() for line in "".join(pieces).split("\n"))
    return "\n".join(line for line in lines if line)


def _is_contained(text: str, other: str) -> bool:
    runs = _word_runs(text)
    return len(runs & _word_runs(other)) >= _CONTAINED_SHARE * len(runs)


def _word_runs(text: str) -> set[tuple[str, ...]]:
    """Return the runs of four words of a text; a character of Chinese or Japanese is a word."""
    words = _WORD.findall(text)
    return {tuple(words[start : start + 4]) for start in range(max(1, len(words) - 3))} if words else set()


def _convert_to_markdown(html: str, url: str, **options: Any) -> str:
    from lxml.etree import ParserError
    from lxml.html import HTMLParser, document_fromstring

    try:
        tree = document_fromstring(html.encode("utf-8", "replace"), parser=HTMLParser(encoding="utf-8"))
    except ParserError:  # an empty document
        return ""
    tree.make_links_absolute(url, handle_failures="ignore")  # trafilatura resolves relative links against the host only
    options |= {"output_format": "markdown", "include_formatting": True, "include_links": True}
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
    count = sum(1 for _ in tree.iter())
    if count > _MAX_ELEMENTS:
        return ""
    _flatten_wide_tables(tree)
    options = _TRAFILATURA_OPTIONS | options
    options["fast"] |= count > _MAX_SECOND_ELEMENTS
    return str(load_extractor()(tree, **options) or "")


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
        load_readability()
    except ImportError as error:
        raise ConfigurationError(
            f"{property_name} needs trafilatura, which is not installed ({error}): pip install 'nutch2py[main-text]'"
        ) from None


_MAX_TEXT_RATIO = 10  # full text of this many characters per character of main text triggers all algorithms
_SHORT_TEXT = 800  # characters; readability reads the page, too, when less was found
_MIN_GAIN = 1.5  # a second try counts if its text is longer by this factor
_CONTAINED_SHARE = 0.9  # of the word runs of a text, for another text to contain it
_MIN_PARAGRAPH = 25  # characters of a paragraph that readability scores
_MAX_SECOND_CHARS, _MAX_SECOND_ELEMENTS = 100_000, 10_000  # of a page that the slower algorithms read
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W\u3040-\u30ff\u3400-\u9fff]+")
_WHITE_SPACE = re.compile(r"\s+")
_SECTION_TAG = re.compile(r"<(/?)section(?=[\s>])", re.IGNORECASE)
_HIDDEN_STYLE = re.compile(r"visibility\s{0,9}:\s{0,9}hidden", re.IGNORECASE)
# fast: skips the fallback algorithms, which are worth their time only where little was found
_TRAFILATURA_OPTIONS: dict[str, Any] = {
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


@cache
def load_readability() -> Callable[..., Any]:
    """Return trafilatura's version of readability, imported at the first use."""
    from trafilatura.readability_lxml import Document

    return Document
