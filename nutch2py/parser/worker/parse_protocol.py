"""Messages between :mod:`nutch2py.parser.worker.parse_worker` and its client.

Both sides check the types of what they receive, since a hostile page may control the worker.
"""

from __future__ import annotations

from typing import Self

import msgspec

from nutch2py.interfaces import Outlink, Parse
from nutch2py.parser.row_parser import ParseOutcome
from nutch2py.parser.sitemap.sitemap_parser import SitemapEntry
from nutch2py.records.cells import ParseStatus
from nutch2py.records.record import Cells, Mutation
from nutch2py.records.webpage import Mark, ParseStatusCode, WebPage
from nutch2py.support.formatting import valid_utf8
from nutch2py.support.invariants import not_none

MAX_RESPONSE_BYTES = 64 << 20


class ParseRequest(msgspec.Struct, array_like=True):
    """A page to parse.

    ``kind``: ``page`` or ``sitemap`` (``key_or_url`` is a row key), or ``parse`` (a URL). ``cpu_seconds`` and
    ``wall_seconds``: limits of the parse in CPU time of the worker and by the clock, 0 for none.
    """

    kind: str
    key_or_url: str
    cells: Cells
    cpu_seconds: float
    wall_seconds: float


class WireSitemapEntry(msgspec.Struct, array_like=True):
    """A sitemap's entry for one row."""

    key: str
    entry: tuple[str, int | None, str | None, float, dict[str, str]]

    @classmethod
    def from_entry(cls, key: str, entry: SitemapEntry) -> Self:
        """Return the wire form of an entry."""
        extensions = {valid_utf8(name): valid_utf8(value) for name, value in entry.extensions.items()}
        fields = valid_utf8(entry.url), entry.last_modified, entry.change_frequency, entry.priority, extensions
        return cls(valid_utf8(key), fields)

    def to_pair(self) -> tuple[str, SitemapEntry]:
        """Return row key and entry."""
        return self.key, SitemapEntry(*self.entry)


class WireParseOutcome(msgspec.Struct, array_like=True):
    """The wire form of :class:`nutch2py.parser.row_parser.ParseOutcome`."""

    label: str
    status: tuple[int, int, tuple[str, ...]] | None
    removed_outlinks: tuple[str, ...]
    message: str
    failed_plugin: str
    skipped_links: tuple[tuple[str, int], ...] = ()

    @classmethod
    def from_outcome(cls, outcome: ParseOutcome) -> Self:
        """Return the wire form of an outcome."""
        label, status, removed, message, plugin, skipped = outcome
        if status is None:
            wire_status = None
        else:
            wire_status = int(status.major), int(status.minor), tuple(map(valid_utf8, status.args))
        return cls(label, wire_status, tuple(map(valid_utf8, removed)), valid_utf8(message), plugin, skipped)

    def to_outcome(self) -> ParseOutcome:
        """Return the outcome that was sent."""
        status = None if self.status is None else ParseStatus(*self.status)
        return ParseOutcome(
            self.label, status, self.removed_outlinks, self.message, self.failed_plugin, self.skipped_links
        )


class WireParse(msgspec.Struct, array_like=True):
    """The wire form of :class:`nutch2py.interfaces.Parse`."""

    text: str
    title: str
    outlinks: list[tuple[str, str]]
    major: int
    minor: int
    args: tuple[str, ...]
    metadata: dict[str, bytes]
    nofollow: int = 0

    @classmethod
    def from_parse(cls, parse: Parse) -> Self:
        """Return the wire form of a parse."""
        return cls(
            valid_utf8(parse.text),
            valid_utf8(parse.title),
            [(valid_utf8(url), valid_utf8(anchor)) for url, anchor in parse.outlinks],
            int(parse.major),
            int(parse.minor),
            tuple(map(valid_utf8, parse.args)),
            {valid_utf8(name): value for name, value in parse.metadata.items()},
            parse.nofollow,
        )

    def to_parse(self) -> Parse:
        """Return the parse that was sent."""
        links = [Outlink(*link) for link in self.outlinks]
        return Parse(self.text, self.title, links, self.major, self.minor, self.args, self.metadata, self.nofollow)


class ParseResponse(msgspec.Struct, array_like=True):
    """Result of one request. ``is_last``: the worker exits and has not processed the requests after it.

    ``error``: class and message of an error that no page caused (:class:`nutch2py.errors.NutchError`).
    """

    puts: Cells = {}
    deletes: dict[bytes, list[bytes]] = {}
    cleared: list[bytes] = []
    outcome: WireParseOutcome | None = None
    sitemap_entries: list[WireSitemapEntry] = []
    parse: WireParse | None = None
    printed_warnings: str = ""
    error: tuple[str, str] | None = None
    is_last: bool = False


def failed_parse_status(reason: str) -> ParseStatus:
    """Return the status of a page whose parse was stopped."""
    return ParseStatus(ParseStatusCode.FAILED, ParseStatusCode.EXCEPTION, (reason,))


def failed_row(url: str, reason: str, plugin: str = "") -> tuple[Mutation, ParseOutcome]:
    """Return the row changes and the outcome of a page whose parse was stopped.

    The parse mark that a parse of the same fetch may have set is removed, so that ``-resume`` tries the page again.
    """
    row = WebPage(fields=frozenset())
    row.parse_status = status = failed_parse_status(reason)
    mutation = not_none(row.mutation(), "mutation of a failed parse")._replace(
        deletes={WebPage.markers.family: [Mark.PARSE.encode()]}
    )
    message = "" if plugin else f"Unable to successfully parse content {url}: {reason}"
    return mutation, ParseOutcome("failed", status, message=message, failed_plugin=plugin)
