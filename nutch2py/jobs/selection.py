"""The best entries of a stream: what a map task of the GeneratorJob keeps."""

from __future__ import annotations

import sys
from collections import Counter
from typing import NamedTuple

NO_LIMIT = sys.maxsize
SEPARATOR = "\x01"
"""Below every character of a URL, so that entries sort as (score descending, URL ascending)."""


class Entry(NamedTuple):
    """A row that may be chosen: its sort text, the group that the cap counts, and what the reducers need."""

    text: str
    group: str


class Selection:
    """The best ``limit`` entries of a stream, at most ``cap`` of a group (no cap when that is not positive).

    Of entries with the same URL, which normalizers make of several rows, the best stands for all.
    """

    def __init__(self, limit: int, cap: int) -> None:
        self._limit, self._cap = limit, cap
        self._entries: list[Entry] = []
        self._room = max(2 * limit, 1000) if limit < NO_LIMIT else 100_000
        self._moved = False  # an entry came from a row of another URL: URLs may repeat
        self.worst_score = ""
        """Sort text of the worst score that can still be chosen, empty while there is room."""

    def add(self, entry: Entry) -> None:
        """Take in an entry."""
        self._entries.append(entry)
        if not entry.text.endswith(SEPARATOR):
            self._moved = True
        if len(self._entries) >= self._room:
            self._entries = self.best()
            if len(self._entries) == self._limit:
                self.worst_score = self._entries[-1].text[:16]
            elif len(self._entries) > self._room // 2:
                self._room = 2 * len(self._entries)

    def best(self) -> list[Entry]:
        """Return the chosen entries, best first."""
        self._entries.sort()
        if self._cap <= 0 and not self._moved:
            return self._entries[: self._limit]
        counts: Counter[str] = Counter()
        seen: set[str] = set()
        chosen: list[Entry] = []
        for entry in self._entries:
            if len(chosen) >= self._limit:
                break
            if self._moved:
                url = entry.text[16:].partition(SEPARATOR)[0]
                if url in seen:
                    continue
                seen.add(url)
            counts[entry.group] += 1
            if self._cap <= 0 or counts[entry.group] <= self._cap:
                chosen.append(entry)
        return chosen
