"""Arguments of a search page request, and URLs of related searches."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import parse_qs, urlencode

from nutch2py.backends.index_fields import FACET_NAMES
from nutch2py.errors import InputError

MAX_QUERY = 1000
"""Characters of a query."""
_MAX_ARGUMENTS = 50
_MAX_FILTER_LENGTH = 300
_MAX_DIGITS = 9


class SearchRequest(NamedTuple):
    """Arguments of a request."""

    arguments: dict[str, str]

    @classmethod
    def from_query_string(cls, query_string: bytes) -> SearchRequest:
        """Parse a query string; raise InputError for an invalid one."""
        try:
            values = parse_qs(query_string.decode("ascii"), max_num_fields=_MAX_ARGUMENTS)
        except ValueError:
            raise InputError("Invalid query string.") from None
        request = cls({name: texts[0] for name, texts in values.items()})
        if len(request.arguments.get("q", "")) > MAX_QUERY:
            raise InputError(f"A query has at most {MAX_QUERY:,} characters.")
        return request

    @property
    def query(self) -> str:
        """The query without surrounding white space."""
        return self.arguments.get("q", "").strip()

    @property
    def key(self) -> str:
        """The id of a document."""
        return self.arguments.get("id", "")

    @property
    def filters(self) -> dict[str, str]:
        """Facet filters: value by facet; InputError for one that is too long."""
        filters = {name: self.arguments[name] for name in FACET_NAMES if self.arguments.get(name)}
        for name, value in filters.items():
            if len(value) > _MAX_FILTER_LENGTH:
                raise InputError(f"The value of {name} has at most {_MAX_FILTER_LENGTH} characters.")
        return filters

    @property
    def sort(self) -> str:
        """``date`` for newest first, "" for best first."""
        return "date" if self.arguments.get("sort") == "date" else ""

    @property
    def start(self) -> int:
        """Index of the first result."""
        return self.get_number("start", 0)

    def get_number(self, name: str, default: int) -> int:
        """Return a numeric argument, ``default`` for one that is no number."""
        text = self.arguments.get(name, "")
        return int(text) if text.isdecimal() and len(text) <= _MAX_DIGITS else default

    def check_values(self) -> None:
        """Raise InputError for numbers and an order that are none; a page for people shows its default for these."""
        for name in ("start", "rows"):
            if self.arguments.get(name) and self.get_number(name, -1) < 0:
                raise InputError(f"The value of {name} is a whole number of at most {_MAX_DIGITS} digits.")
        if self.arguments.get("sort", "") not in ("", "date", "relevance"):
            raise InputError("The value of sort is date or relevance.")

    def url(self, **changed: str | int) -> str:
        """Return the URL of these results with changed arguments."""
        arguments: dict[str, str | int] = {"q": self.query, "start": self.start, "sort": self.sort, **self.filters}
        return build_url("/", **{**arguments, **changed})

    def url_with_filter(self, facet: str, value: str) -> str:
        """Return the URL of the results with one more filter."""
        changed: dict[str, str | int] = {"start": 0, facet: value}
        return self.url(**changed)

    def url_without_filter(self, facet: str) -> str:
        """Return the URL of the results without the filter of a facet."""
        return self.url_with_filter(facet, "")

    def url_for_query(self, query: str) -> str:
        """Return the URL of another query's results."""
        return build_url("/", q=query)


def build_url(path: str, /, **arguments: str | int) -> str:
    """Return a URL; empty and zero arguments are omitted.

    >>> build_url("/", q="a&b", start=0)
    '/?q=a%26b'
    """
    query = {name: value for name, value in arguments.items() if value not in ("", 0)}
    return path + (f"?{urlencode(query)}" if query else "")
