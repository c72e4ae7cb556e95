"""What a request for the search page asks, and the addresses of pages that ask something else."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import parse_qs, urlencode

from nutch2py.backends.embedded_index.index_directory import FACET_NAMES
from nutch2py.errors import InputError

MAX_QUERY = 1000
"""Characters of a query."""
_MAX_ARGUMENTS = 50
_MAX_FILTER_LENGTH = 300


class SearchRequest(NamedTuple):
    """The arguments of a request."""

    arguments: dict[str, str]

    @classmethod
    def from_query_string(cls, query_string: bytes) -> SearchRequest:
        """Read what stands behind the question mark; raise InputError for what is none of ours."""
        try:
            found = parse_qs(query_string.decode("ascii"), max_num_fields=_MAX_ARGUMENTS)
        except ValueError:
            raise InputError("The address of this page is not one of ours.") from None
        asked = cls({name: values[0] for name, values in found.items()})
        if len(asked.arguments.get("q", "")) > MAX_QUERY:
            raise InputError(f"A query has at most {MAX_QUERY:,} characters.")
        return asked

    @property
    def query(self) -> str:
        """The query, without blanks about it."""
        return self.arguments.get("q", "").strip()

    @property
    def key(self) -> str:
        """The id of a document."""
        return self.arguments.get("id", "")

    @property
    def filters(self) -> dict[str, str]:
        """What the result is narrowed by: value by facet."""
        return {name: self.arguments[name][:_MAX_FILTER_LENGTH] for name in FACET_NAMES if self.arguments.get(name)}

    @property
    def sort(self) -> str:
        """``date``: the newest first; "": the best first."""
        return "date" if self.arguments.get("sort") == "date" else ""

    @property
    def start(self) -> int:
        """The number of the first result, from 0 on."""
        return self.get_number("start", 0)

    def get_number(self, name: str, default: int) -> int:
        """Return an argument that is a number."""
        text = self.arguments.get(name, "")
        return int(text) if text.isdecimal() and len(text) < 10 else default

    def url(self, **changed: str | int) -> str:
        """Return the address of these results in another order, or of another page of them."""
        asked: dict[str, str | int] = {"q": self.query, "start": self.start, "sort": self.sort, **self.filters}
        return build_url("/", **{**asked, **changed})

    def url_with_filter(self, facet: str, value: str) -> str:
        """Return the address of the results narrowed by one value more."""
        changed: dict[str, str | int] = {"start": 0, facet: value}
        return self.url(**changed)

    def url_without_filter(self, facet: str) -> str:
        """Return the address of the results not narrowed by a facet."""
        return self.url_with_filter(facet, "")

    def url_for_query(self, query: str) -> str:
        """Return the address of another query's results."""
        return build_url("/", q=query)


def build_url(path: str, /, **arguments: str | int) -> str:
    """Return an address; arguments that are empty or 0 are left out.

    >>> link("/", q="a&b", start=0)
    '/?q=a%26b'
    """
    named = {name: value for name, value in arguments.items() if value not in ("", 0)}
    return path + (f"?{urlencode(named)}" if named else "")
