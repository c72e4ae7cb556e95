"""Results of a search, and their formats: JSON types, HTML and text for a terminal."""

from __future__ import annotations

from typing import Any, NamedTuple

from nutch2py.records.document import clean_text
from nutch2py.search.results.facets import FacetCounts
from nutch2py.search.results.snippet import Snippet
from nutch2py.support.terminal import StyledText
from nutch2py.url.display_url import display_url

MAX_ROWS = 1_000
MAX_START = 100_000
"""Limit of ``start``: crawlers of search pages request more, which requires sorting all these documents."""

_BIDI_CONTROLS = dict.fromkeys((*range(0x202A, 0x202F), *range(0x2066, 0x206A)))
"""Embeddings, overrides and isolates of text direction."""


class ScoredDocument(NamedTuple):
    """A matching document with its fields as sent; ``score`` is relevance × weight.

    ``sketch``: sketch of its text, "" when unknown. ``more``: number of other hits in its group; ``others``: title and
    URL of some of them.
    """

    score: float
    fields: dict[str, Any]
    sketch: str = ""
    more: int = 0
    others: tuple[tuple[str, str], ...] = ()


class Hit(NamedTuple):
    """One hit of a search.

    Attributes:
        id: Id of the document.
        url: URL of the document.
        title: Title with highlights.
        snippet: Passages of the text with highlights.
        score: Higher is better, within one query.
        fields: Fields of the document, as JSON types.
        sketch: Sketch of the text, for near duplicates.
        more: Number of further hits that this one stands for.
        others: Title and URL of some of those.
    """

    id: str
    url: str
    title: Snippet
    snippet: Snippet
    score: float
    fields: dict[str, Any]
    sketch: str = ""
    more: int = 0
    others: tuple[tuple[str, str], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the hit as JSON types, escaped for HTML, with highlights in ``<em>``."""
        return {
            "id": self.id,
            "url": self.url,
            "title": format_html(self.title),
            "snippet": format_html(self.snippet),
            "score": round(self.score, 6),
            "fields": {name: value for name, value in self.fields.items() if name != "content"},
            **({"more": self.more} if self.more else {}),
        }


class SearchResult(NamedTuple):
    """Result of a search.

    Attributes:
        query: The query.
        start: Number of hits before these.
        total: Number of matching documents.
        hits: Hits from ``start`` on, the best first.
        millis: Duration of the search in milliseconds.
        collapsed_total: Number of hits after collapsing; None without collapsing.
        note: Reason why a requested option had no effect.
        is_relaxed: Whether quotes, ``+`` and ``AND`` of the query were ignored, since nothing matches with them.
        unknown_words: Words of the query that no document has.
        corrected_query: The query with similar words for words that the index does not know or hardly knows, whose
            hits are included; "" if there are none.
        cursor: Continues after the hits of a request with a cursor or without collapsing, "" after the last hit.
        facets: Values of requested facets that can filter the result, from the same commit as ``total``.

    """

    query: str
    start: int
    total: int
    hits: list[Hit]
    millis: float
    collapsed_total: int | None = None
    note: str = ""
    is_relaxed: bool = False
    unknown_words: tuple[str, ...] = ()
    corrected_query: str = ""
    cursor: str = ""
    facets: FacetCounts = {}  # noqa: RUF012  # never changed

    def to_json(self) -> str:
        """Return the result as one line of JSON."""
        import orjson

        return orjson.dumps(self.to_dict()).decode()

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON types, without the content of the documents."""
        return {
            "query": clean_text(self.query),
            "start": self.start,
            "total": self.total,
            "millis": round(self.millis, 3),
            "hits": [hit.to_dict() for hit in self.hits],
            **({"corrected_query": clean_text(self.corrected_query)} if self.corrected_query else {}),
            **({"note": self.note} if self.note else {}),
        }


def format_html(snippet: Snippet) -> str:
    r"""Return a snippet as escaped HTML, with highlights in ``<em>`` and without bidi controls.

    >>> format_html(Snippet("a <b> \u202egnp.exe", ((0, 1),)))
    '<em>a</em> &lt;b&gt; gnp.exe'
    """
    escaped: list[str] = []
    at = 0
    for start, end in snippet.highlights:
        escaped += [_escape(snippet.text[at:start]), "<em>", _escape(snippet.text[start:end]), "</em>"]
        at = end
    return "".join([*escaped, _escape(snippet.text[at:])])


def _escape(text: str) -> str:
    from html import escape

    return escape(strip_bidi_controls(text))


def strip_bidi_controls(text: str) -> str:
    """Return text without bidi control characters, which could disguise it (gnp.exe shown as exe.png)."""
    return text if text.isascii() else text.translate(_BIDI_CONTROLS)


def format_for_terminal(result: SearchResult, color: bool = False) -> StyledText:
    """Return the result as text: title, URL, snippet and score of each hit, with bold highlights if ``color``.

    Control characters of page texts are replaced, so that a page cannot control the terminal.
    """
    if not result.hits:
        more = f"no hit from {result.start + 1} on, of {result.total}" if result.total else "no document matches"
        return StyledText(f"{more} {replace_unprintable(result.query)!r} ({result.millis:.1f} ms)\n")
    bold, link, dim, plain = ("\x1b[1m", "\x1b[36m", "\x1b[2m", "\x1b[0m") if color else ("", "", "", "")
    before, after = ("\x1b[1;33m", "\x1b[0m") if color else ("", "")
    first = result.start + 1
    noun = "document" if result.total == 1 else "documents"
    lines = [f"{result.total} {noun}, {first}–{first + len(result.hits) - 1} ({result.millis:.1f} ms)"]
    for number, hit in enumerate(result.hits, first):
        title = _printable_snippet(hit.title)
        snippet = _printable_snippet(hit.snippet)
        heading = title.highlight(after + before, plain + bold) if color else title.text
        lines += [
            "",
            f"{bold}{number}. {heading}{plain}",
            f"   {link}{replace_unprintable(display_url(hit.url))}{plain}  {dim}{hit.score:.3f}{plain}",
        ]
        if snippet.text:
            lines.append(f"   {snippet.highlight(before, after)}")
        if hit.more:
            lines.append(f"   {dim}{hit.more:,} more like this{plain}")
    return StyledText("\n".join([*lines, *(["", result.note] if result.note else [])]) + "\n")


def replace_unprintable(text: str) -> str:
    """Return a text with a space for each character that a terminal must not receive."""
    return "".join(c if c.isprintable() else " " for c in text)


def _printable_snippet(snippet: Snippet) -> Snippet:
    return Snippet(replace_unprintable(snippet.text), snippet.highlights)


def field_values(fields: dict[str, Any], name: str) -> list[str]:
    """Return the values of a field that may be absent, single or a list."""
    value = fields.get(name, [])
    return [str(each) for each in (value if isinstance(value, list) else [value])]


def first_value(fields: dict[str, Any], name: str) -> str:
    """Return the first value of a field, "" when it is absent."""
    return next(iter(field_values(fields, name)), "")
