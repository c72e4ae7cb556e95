"""The best entries of a stream: what a map task of the GeneratorJob keeps."""

from __future__ import annotations

import sys
from collections import Counter
from typing import NamedTuple

NO_LIMIT = sys.maxsize
SEPARATOR = "\x01"
"""Below every character of a URL, so that entries sort as (score descending, URL ascending).

The URL by which an entry sorts is that of its row, so that no entry need be known before rows that sort behind it are
passed over; the one that normalizers make of it follows, and is what counts.
"""


def format_entry(order: str, row_url: str, target_url: str = "", moved_marks: str = "") -> str:
    """Return the sort text of an entry: ``row_url`` is the URL of its row, ``target_url`` another one that stands for it."""
    return f"{order}{row_url.replace(SEPARATOR, ' ') if target_url else row_url}{SEPARATOR}{target_url}{SEPARATOR}{moved_marks}"


def get_row_url(text: str) -> str:
    """Return the URL by which an entry sorts."""
    return text[16:].partition(SEPARATOR)[0]


def get_url_and_moved_marks(text: str) -> tuple[str, str]:
    """Return the URL of an entry that counts, and what the row of another URL hands over to it."""
    own, target, moved = text[16:].split(SEPARATOR, 2)
    return target or own, moved


class CandidateEntry(NamedTuple):
    """A row that may be chosen: its sort text, the group that the cap counts, and what the reducers need."""

    text: str
    group: str


class TopNSelector:
    """The best ``limit`` entries of a stream, at most ``cap`` of a group (no cap when that is not positive).

    Of entries with the same URL, which normalizers make of several rows, the best stands for all.
    """

    def __init__(self, limit: int, group_cap: int) -> None:
        self.limit, self._group_cap = limit, group_cap
        self._entries: list[CandidateEntry] = []
        self._buffer_limit = max(2 * limit, 1000) if limit < NO_LIMIT else 100_000
        self._has_moved_entries = False  # an entry came from a row of another URL: URLs may repeat
        self.worst_score = ""
        """Sort text of the worst score that can still be chosen, empty while there is room."""

    def add(self, entry: CandidateEntry) -> None:
        """Take in an entry."""
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
        """Return the sort text of the worst entry that is chosen, empty while there is room."""
        if len(self._entries) >= self.limit:
            self._entries = self.get_best()
            if len(self._entries) == self.limit:
                self.worst_score = self._entries[-1].text[:16]
                return self._entries[-1].text
        return ""

    def get_best(self) -> list[CandidateEntry]:
        """Return the chosen entries, best first."""
        self._entries.sort()
        if self._group_cap <= 0 and not self._has_moved_entries:
            return self._entries[: self.limit]
        counts: Counter[str] = Counter()
        seen: set[str] = set()
        chosen: list[CandidateEntry] = []
        for entry in self._entries:
            if len(chosen) >= self.limit:
                break
            if self._has_moved_entries:
                url, _ = get_url_and_moved_marks(entry.text)
                if url in seen:
                    continue
                seen.add(url)
            counts[entry.group] += 1
            if self._group_cap <= 0 or counts[entry.group] <= self._group_cap:
                chosen.append(entry)
        return chosen
