"""DefaultFetchSchedule: every page again after its own interval, whether it changed or not."""

from __future__ import annotations

from nutch2py.schedule.abstract import AbstractFetchSchedule
from nutch2py.webpage import WebPage


class DefaultFetchSchedule(AbstractFetchSchedule):
    """Next fetch = this fetch + ``f:fi``."""

    java_class = "org.apache.nutch.crawl.DefaultFetchSchedule"

    def set_fetch_schedule(
        self, url: str, page: WebPage, prev_fetch: int, prev_modified: int, fetched: int, modified: int, state: int
    ) -> None:
        """Set the next fetch and both modified times; the interval stays."""
        super().set_fetch_schedule(url, page, prev_fetch, prev_modified, fetched, modified, state)
        interval = self.interval_of(page)
        if interval != page.fetch_interval:
            page.fetch_interval = interval
        page.fetch_time = fetched + interval * 1000
        page.modified_time = modified
        page.prev_modified_time = prev_modified
