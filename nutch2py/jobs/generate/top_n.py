"""Selection of the best entries of a stream, as a map task of the GeneratorJob does it."""

from __future__ import annotations

import sys
from collections import Counter
from typing import NamedTuple

NO_LIMIT = sys.maxsize
SEPARATOR = "\x01"
"""Lower than every character of a URL, so that entries sort as (score descending, URL ascending).

An entry sorts by the URL of its row, so that rows that sort later can be skipped without normalizing them. The
normalized URL follows; it is the one that is fetched.
"""


def format_entry(order: str, row_url: str, target_url: str = "", moved_marks: str = "") -> str:
    """Return the sort text of an entry.

    Args:
        order: The sort value, as :func:`nutch2py.mapreduce.mrjob_protocols.descending_sort_key` writes it.
        row_url: The URL of the row.
        target_url: The normalized URL if it differs, else "".
        moved_marks: The marks, as JSON, that the row of ``target_url`` takes over.
    """
    own_url = row_url.replace(SEPARATOR, " ") if target_url else row_url
    return f"{order}{own_url}{SEPARATOR}{target_url}{SEPARATOR}{moved_marks}"


def get_row_url(text: str) -> str:
    """Return the URL of the row, by which an entry sorts."""
    return text[16:].partition(SEPARATOR)[0]


def get_url_and_moved_marks(text: str) -> tuple[str, str]:
    """Return the URL to fetch, and the marks that its row takes over from the row of another URL."""
    own, target, moved = text[16:].split(SEPARATOR, 2)
    return target or own, moved


class CandidateEntry(NamedTuple):
    """A row that may be selected: its sort text, and the host or domain that the cap counts."""

    text: str
    group: str


class TopNSelector:
    """The best ``limit`` entries of a stream, at most ``group_cap`` per group (unlimited if not positive).

    Normalizers can turn several rows into one URL; the best of them represents all.
    """

    def __init__(self, limit: int, group_cap: int) -> None:
        self.limit, self._group_cap = limit, group_cap
        self._entries: list[CandidateEntry] = []
        self._buffer_limit = max(2 * limit, 1000) if limit < NO_LIMIT else 100_000
        self._has_moved_entries = False  # some entries have the URL of another row: URLs may repeat
        self.worst_score = ""
        """Sort text of the worst score that can still be selected, empty while there is room."""

    def add(self, entry: CandidateEntry) -> None:
        """Add an entry."""
        self._entries.append(entry)
        if not entry.text.endswith(SEPARATOR):
            self._has_moved_entries = True
        if len(self._entries) >= self._buffer_limit:
            self._entries = self.get_best()
            if len(self._entries) == self.limit:
                self.worst_score = self._entries[-1].text[:16]
            elif len(self._entries) > self._buffer_limit // 2:
                self._buffer_limit = 2 * len(self._entries)

    def find_worst(self) -> str:
        """Return the sort text of the worst selected entry, empty while there is room."""
        if len(self._entries) >= self.limit:
            self._entries = self.get_best()
            if len(self._entries) == self.limit:
                self.worst_score = self._entries[-1].text[:16]
                return self._entries[-1].text
        return ""

    def get_best(self) -> list[CandidateEntry]:
        """Return the selected entries, best first."""
        self._entries.sort()
        if self._group_cap <= 0 and not self._has_moved_entries:
            return self._entries[: self.limit]
        counts: Counter[str] = Counter()
        seen: set[str] = set()
        selected: list[CandidateEntry] = []
        for entry in self._entries:
            if len(selected) >= self.limit:
                break
            if self._has_moved_entries:
                url, _ = get_url_and_moved_marks(entry.text)
                if url in seen:
                    continue
                seen.add(url)
            counts[entry.group] += 1
            if self._group_cap <= 0 or counts[entry.group] <= self._group_cap:
                selected.append(entry)
        return selected
