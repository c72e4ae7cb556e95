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
        """Facet filters: value by facet."""
        return {name: self.arguments[name][:_MAX_FILTER_LENGTH] for name in FACET_NAMES if self.arguments.get(name)}

    @property
    def sort(self) -> str:
        """``date`` for newest first, "" for best first."""
        return "date" if self.arguments.get("sort") == "date" else ""

    @property
    def start(self) -> int:
        """Index of the first result."""
        return self.get_number("start", 0)

    def get_number(self, name: str, default: int) -> int:
        """Return a numeric argument."""
        text = self.arguments.get(name, "")
        return int(text) if text.isdecimal() and len(text) < 10 else default

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
