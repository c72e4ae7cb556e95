"""Fetch schedule that fetches every page again after its interval, whether it changed or not."""

from __future__ import annotations

from nutch2py.records.webpage import WebPage
from nutch2py.schedule.abstract_fetch_schedule import AbstractFetchSchedule


class DefaultFetchSchedule(AbstractFetchSchedule):
    """Next fetch = this fetch + ``f:fi``."""

    java_class = "org.apache.nutch.crawl.DefaultFetchSchedule"

    def set_next_fetch(self, url: str, page: WebPage, fetch_time: int, modified_time: int, state: int) -> None:
        """Set the next fetch and the modified time; keep the interval."""
        interval = self.get_interval(page)
        if interval != page.fetch_interval:
            page.fetch_interval = interval
        page.fetch_time = fetch_time + interval * 1000
        page.modified_time = modified_time
