"""The HTML of the search page, by templates. Everything that comes from a page or a query is escaped."""

from __future__ import annotations

import re
import unicodedata
from typing import Any, NamedTuple
from urllib.parse import unquote

from jinja2 import BaseLoader, ChoiceLoader, Environment, FileSystemLoader, PackageLoader, StrictUndefined
from markupsafe import Markup

from nutch2py.search.facets import Counted
from nutch2py.search.results import MAX_START, Hit, SearchResult, html
from nutch2py.search.snippet import Snippet
from nutch2py.server.asked import MAX_QUERY, Asked, link
from nutch2py.server.look import Look
from nutch2py.server.wording import Wording
from nutch2py.url.keys import unreverse_url

ROWS = 10
_AROUND = 9  # numbers of pages that are linked at once
_TAG = re.compile("[a-z]{2,3}(?:-[A-Za-z]{2,8})?")
_LETTERS = re.compile("(?:%[89A-Fa-f][0-9A-Fa-f])+")


class Turn(NamedTuple):
    """A link to a page of results: ``start`` is the number of its first one; ``relation``: ``next``, ``prev`` or ""."""

    text: str
    start: int
    relation: str = ""
    current: bool = False


class Pages:
    """Makes pages that look as a :class:`Look` says; its folder's templates stand in for ours of the same name."""

    def __init__(self, look: Look) -> None:
        self.look = look
        loaders: list[BaseLoader] = [PackageLoader("nutch2py.server")]
        if look.templates is not None:
            loaders.insert(0, FileSystemLoader(look.templates))
        made = Environment(
            loader=ChoiceLoader(loaders),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        made.filters |= {
            "marked": _marked,
            "readable": readable,
            "opens": opens,
            "lang": _language,
            "date": _date,
            "cached": _has_copy,
            "crawled": _crawled,
        }
        made.globals |= {"link": link, "look": look, "max_query": MAX_QUERY, "max_start": MAX_START, "query": ""}
        self._environment = made

    def render(self, template: str, words: Wording, **values: Any) -> str:
        """Return a page in a language."""
        return self._environment.get_template(template).render(words=words, **values)

    def home(self, words: Wording, documents: int) -> str:
        """Return the page without a query."""
        return self.render("home.html", words, documents=documents)

    def message(self, words: Wording, title: str, text: str, query: str = "") -> str:
        """Return a page that says one thing."""
        return self.render("message.html", words, title=title, text=text, query=query)

    def results(
        self,
        words: Wording,
        asked: Asked,
        result: SearchResult,
        facets: Counted,
        meant: str = "",
        hints: tuple[str, ...] = (),
        sorts: bool = False,
        room: bool = False,
    ) -> str:
        """Return a page of hits. ``meant``: a query that perhaps was meant; ``sorts``: the index can order by date.

        ``room``: hits lead to what the control room tells of their pages, too.
        """
        values = {
            "asked": asked,
            "query": result.query,
            "result": result,
            "facets": {name: values for name, values in facets.items() if len(values) > 1 or name in asked.filters},
            "meant": meant,
            "hints": hints,
            "sorts": sorts and result.total > 1,
            "room": room,
            "pages": turns(words, result.start, result.total if result.shown is None else result.shown),
        }
        return self.render("results.html", words, **values)


def turns(words: Wording, start: int, total: int) -> list[Turn]:
    """Return the links to pages of results, none where there is one page only."""
    current, pages = start // ROWS, min(-(-total // ROWS), MAX_START // ROWS + 1)
    if pages <= 1:
        return []
    first = max(0, min(current - _AROUND // 2, pages - _AROUND))
    found = [Turn(words("previous"), (current - 1) * ROWS, "prev")] if current > 0 else []
    found += [
        Turn(str(number + 1), number * ROWS, current=number == current)
        for number in range(first, min(pages, first + _AROUND))
    ]
    if current + 1 < pages:
        found.append(Turn(words("next"), (current + 1) * ROWS, "next"))
    return found


def readable(url: str) -> str:
    """Return a URL for the eye: escapes of letters are undone, those of anything that could deceive stay.

    >>> readable("http://a/%E5%8C%97%E4%BA%AC?x=%26%20"), readable("http://a/%E2%80%AE")
    ('http://a/北京?x=%26%20', 'http://a/%E2%80%AE')
    """
    return _LETTERS.sub(_undone, url)


def _undone(match: re.Match[str]) -> str:
    text = unquote(match.group(), errors="replace")
    safe = text.isalpha() and all(unicodedata.bidirectional(letter) == "L" for letter in text)
    return text if safe else match.group()


def opens(url: str) -> bool:
    """Tell whether a URL may be a link: javascript: may not."""
    return url.lower().startswith(("http://", "https://", "ftp://"))


def _marked(snippet: Snippet) -> Markup:
    return Markup(html(snippet))


def _language(hit: Hit) -> str:
    lang = str(hit.fields.get("lang", ""))
    return lang if _TAG.fullmatch(lang) else ""


def _date(hit: Hit) -> str:
    return str(hit.fields.get("date", hit.fields.get("tstamp", "")))[:10]


def _crawled(hit: Hit) -> str:
    """Return the URL under which the crawl has the page of a hit; its ``url`` can be another one that stands for it."""
    try:
        return unreverse_url(hit.id)
    except ValueError:
        return hit.url


def _has_copy(hit: Hit) -> bool:
    return hit.fields.get("cache") in (None, "none")
