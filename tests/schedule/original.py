"""Nutch 2.4's two schedules, and the part of its updatedb that calls them, as formulas.

Default values of the properties only. Times in ms, intervals in s, as in the table.
"""

from __future__ import annotations

from typing import Any

from nutch2py.records.webpage import CrawlStatus

DAY = 86400
LONGEST = 90 * DAY  # db.fetch.interval.max
SHORTENED = 81 * DAY  # 0.9 of it
RETRIES = 3


class Original:
    """A row of Nutch 2.4 under ``DefaultFetchSchedule`` or ``AdaptiveFetchSchedule``."""

    def __init__(self, name: str, scene: Any, start: int) -> None:
        self._adaptive = name == "AdaptiveFetchSchedule"
        self.next_fetch, self.interval, self.status = start, scene.interval or 30 * DAY, 0
        self.modified = self.retries = 0
        self.signatures: list[bytes] = []

    def modified_time(self) -> int:
        return self.modified

    def row(self) -> tuple[int, int, int]:
        return self.next_fetch, self.interval, self.status

    def due(self, now: int) -> bool:
        """By the time of the row: that of one too far ahead is changed after it was read, and never written."""
        return self.next_fetch <= now

    def fetched(self, now: int, reply: Any) -> None:
        self.status = reply.status
        if reply.version:
            self.signatures = [*self.signatures, reply.version][-2:]
        if reply.status == CrawlStatus.RETRY:
            self.retries += 1
            self.next_fetch = now + DAY * 1000
            self.status = CrawlStatus.UNFETCHED if self.retries < RETRIES else CrawlStatus.GONE
        elif reply.status == CrawlStatus.GONE:
            self.interval = int(self.interval * 1.5) if self.interval * 1.5 < LONGEST else SHORTENED
            self.next_fetch = now + self.interval * 1000
        else:
            self.retries = 0
            if reply.modified is not None:
                self.modified = reply.modified
            shift = self._adapt(now) if self._adaptive else 0
            self.next_fetch = now + self.interval * 1000 - shift
            if self.interval > LONGEST:  # the interval is cut, the time is left
                self.interval, self.status, self.modified = SHORTENED, CrawlStatus.UNFETCHED, 0

    def _adapt(self, now: int) -> int:
        self.modified = self.modified or now
        if len(self.signatures) == 2:
            self.interval = int(self.interval * (1.4 if self.signatures[0] == self.signatures[1] else 0.8))
        unchanged = int((now - self.modified) / 1000)
        self.interval = min(max(self.interval, unchanged, 60), 365 * DAY)
        return round(unchanged * 0.3)  # seconds, taken off milliseconds
