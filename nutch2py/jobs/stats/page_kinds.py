"""Fetched pages by content type and by language, counted by tasks that scan the table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from nutch2py.parser.filters.language_identifier import LANGUAGE_KEY
from nutch2py.records.cells import decode_text
from nutch2py.records.record import RecordField
from nutch2py.records.webpage import FETCHED_STATUSES, WebPage
from nutch2py.support.formatting import valid_utf8

CONTENT_TYPE, LANGUAGE = "content_type", "language"
UNKNOWN = "unknown"
PAGE_KIND_FIELDS: frozenset[RecordField] = frozenset({WebPage.status, WebPage.content_type, WebPage.metadata})
_MAX_NAMES, _MAX_COUNTED_NAMES = 30, 1000
_MAX_NAME_LENGTH = 100  # characters: servers and pages choose them


class PageKinds:
    """Row counts by content type and language; of very many names, only the most frequent stay."""

    def __init__(self) -> None:
        self._counts = {CONTENT_TYPE: Counter[str](), LANGUAGE: Counter[str]()}

    def add(self, page: WebPage) -> None:
        """Count a row, unless it was never fetched."""
        if page.status not in FETCHED_STATUSES:
            return
        language = page.metadata.get(LANGUAGE_KEY)
        self._add(CONTENT_TYPE, page.content_type or "", 1)
        self._add(LANGUAGE, decode_text(language) if language else "", 1)

    def _add(self, kind: str, name: str, count: int) -> None:
        counts = self._counts[kind]
        counts[valid_utf8(name[:_MAX_NAME_LENGTH]) or UNKNOWN] += count
        if len(counts) > _MAX_COUNTED_NAMES:
            self._counts[kind] = Counter(dict(counts.most_common(_MAX_COUNTED_NAMES // 2)))

    def to_json(self) -> dict[str, list[tuple[str, int]]]:
        """Return the counts as JSON types for :meth:`merge`."""
        return {kind: [*counts.items()] for kind, counts in self._counts.items() if counts}

    def merge(self, other_counts: Mapping[str, Iterable[tuple[str, int]]]) -> None:
        """Add the counts of another collector."""
        for kind, counts in other_counts.items():
            for name, count in counts:
                self._add(kind, name, count)

    def most_common(self) -> dict[str, dict[str, int]]:
        """Return the most frequent names of each kind with their counts."""
        return {kind: dict(counts.most_common(_MAX_NAMES)) for kind, counts in self._counts.items() if counts}
