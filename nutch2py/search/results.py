"""What a search finds, and how it is shown: as JSON types, as HTML, on a terminal."""

from __future__ import annotations

from typing import Any, NamedTuple

from nutch2py.document import clean_text
from nutch2py.search.snippet import Snippet

MAX_ROWS = 1_000
MAX_START = 100_000
"""Results beyond are not given: sorting that many for one page is what crawlers of search pages ask for."""


class Found(NamedTuple):
    """A document that matches: its fields as they were sent, and relevance × weight."""

    score: float
    fields: dict[str, Any]


class Hit(NamedTuple):
    """One document that was found.

    ``id``, ``url``: the document's. ``title``, ``snippet``: texts (``text``) that know which words to mark (``marks``).
    ``score``: higher is better, within one query. ``fields``: those of the document, as JSON types.
    """

    id: str
    url: str
    title: Snippet
    snippet: Snippet
    score: float
    fields: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Return the hit as JSON types, marked words within ``<em>`` and the rest escaped for HTML."""
        return {
            "id": self.id,
            "url": self.url,
            "title": html(self.title),
            "snippet": html(self.snippet),
            "score": round(self.score, 6),
            "fields": {name: value for name, value in self.fields.items() if name != "content"},
        }


class SearchResult(NamedTuple):
    """What was found: ``total`` documents match ``query``.

    ``hits``: those from ``start`` on, the best first. ``millis``: how long the search took.
    """

    query: str
    start: int
    total: int
    hits: list[Hit]
    millis: float

    def to_json(self) -> str:
        """Return the result as one line of JSON."""
        import orjson

        return orjson.dumps(self.to_dict()).decode()

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON types; the content of the documents is left out."""
        return {
            "query": clean_text(self.query),
            "start": self.start,
            "total": self.total,
            "millis": round(self.millis, 3),
            "hits": [hit.to_dict() for hit in self.hits],
        }


def html(snippet: Snippet) -> str:
    """Return a snippet as HTML: marked words within ``<em>``, everything else escaped.

    >>> html(Snippet("a <b>", ((0, 1),)))
    '<em>a</em> &lt;b&gt;'
    """
    escaped: list[str] = []
    at = 0
    for start, end in snippet.marks:
        escaped += [_escape(snippet.text[at:start]), "<em>", _escape(snippet.text[start:end]), "</em>"]
        at = end
    return "".join([*escaped, _escape(snippet.text[at:])])


def _escape(text: str) -> str:
    from html import escape

    return escape(text)


def render(result: SearchResult, color: bool = False) -> str:
    """Return the result for a terminal: title, URL, snippet and score of each hit, marked words bold when ``color``.

    Control characters of page texts are left out, so that no page can write to the terminal what it wants.
    """
    if not result.hits:
        more = f"no hit from {result.start + 1} on, of {result.total}" if result.total else "no document matches"
        return f"{more} {_printable(result.query)!r} ({result.millis:.1f} ms)\n"
    bold, link, dim, plain = ("\x1b[1m", "\x1b[36m", "\x1b[2m", "\x1b[0m") if color else ("", "", "", "")
    before, after = ("\x1b[1;33m", "\x1b[0m") if color else ("", "")
    first = result.start + 1
    noun = "document" if result.total == 1 else "documents"
    lines = [f"{result.total} {noun}, {first}–{first + len(result.hits) - 1} ({result.millis:.1f} ms)"]
    for number, hit in enumerate(result.hits, first):
        title = _safe(hit.title)
        snippet = _safe(hit.snippet)
        heading = title.marked(after + before, plain + bold) if color else title.text
        lines += [
            "",
            f"{bold}{number}. {heading}{plain}",
            f"   {link}{_printable(hit.url)}{plain}  {dim}{hit.score:.3f}{plain}",
        ]
        if snippet.text:
            lines.append(f"   {snippet.marked(before, after)}")
    return "\n".join(lines) + "\n"


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text)


def _safe(snippet: Snippet) -> Snippet:
    return Snippet(_printable(snippet.text), snippet.marks)


def values_of(fields: dict[str, Any], name: str) -> list[str]:
    """Return the values of a field that may be absent, one, or several; of ``type`` the whole type alone."""
    value = fields.get(name, [])
    values = [str(each) for each in (value if isinstance(value, list) else [value])]
    return [each for each in values if "/" in each] if name == "type" else values
