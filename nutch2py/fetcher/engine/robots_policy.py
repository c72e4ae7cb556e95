"""Applies robots.txt to a page before its request: denial, deferred visits, crawl delay and listed sitemaps."""

from __future__ import annotations

from collections.abc import Callable

from nutch2py.conf.configuration import Configuration
from nutch2py.fetcher.fetch_state import FetchState
from nutch2py.fetcher.protocols.fetch_response import FetchResponse
from nutch2py.fetcher.queues.fetch_queues import FetchItem
from nutch2py.fetcher.robots.robots_cache import RobotsCache, is_allowed
from nutch2py.fetcher.robots.robots_rules import RobotsRules


class RobotsPolicy:
    """Decides by robots.txt whether a page may be requested now, and sets the crawl delay of its queue.

    Args:
        conf: Configuration: ``fetcher.max.crawl.delay``, ``fetcher.min.crawl.delay`` and
            ``http.robots.503.defer.visits.*``.
        state: Progress of the fetch.
        robots: Rules by site.
        deny: Finishes a page that the rules deny; its argument is the counter of the denial.
        fail: Finishes a page whose server did not send robots.txt, with that response.
    """

    def __init__(
        self,
        conf: Configuration,
        state: FetchState,
        robots: RobotsCache,
        deny: Callable[[FetchItem, str], None],
        fail: Callable[[FetchItem, FetchResponse], None],
    ) -> None:
        self._state, self._robots, self._deny, self._fail = state, robots, deny, fail
        self._max_crawl_delay_ms = conf.get_int("fetcher.max.crawl.delay", 30) * 1000  # negative: no limit
        server_delay = conf.get_float("fetcher.server.delay", 5.0)
        self._min_crawl_delay = conf.get_float("fetcher.min.crawl.delay", server_delay)  # seconds
        self._defer_delay = conf.get_int("http.robots.503.defer.visits.delay", 300_000) / 1000
        self._defer_retries = conf.get_int("http.robots.503.defer.visits.retries", 3)

    async def admit(self, item: FetchItem) -> bool:
        """Return whether a page may be requested; if not, it was denied, failed or deferred."""
        rules = await self._robots.get_rules(item.url)
        if rules.is_deferred:
            self._defer(item)
        elif rules.fetch_failure:
            self._fail(item, FetchResponse(item.url, failure=rules.fetch_failure))
        elif not await is_allowed(rules, item.url):
            self._deny(item, "ROBOTS_DENIED")
        elif (rules.crawl_delay_ms or 0) > self._max_crawl_delay_ms >= 0:
            self._deny(item, "ROBOTS_DENIED_MAXCRAWLDELAY")
        else:
            self._apply(rules, item)
            return True
        return False

    def _apply(self, rules: RobotsRules, item: FetchItem) -> None:
        if (delay := rules.crawl_delay_ms or 0) > 0:
            self._state.queues.get_queue(item.queue_id).crawl_delay = max(delay / 1000, self._min_crawl_delay)
        if self._state.options.detect_sitemaps and rules.sitemaps and _is_home_page(item.url):
            item.page.sitemaps = dict.fromkeys(rules.sitemaps, "")

    def _defer(self, item: FetchItem) -> None:
        report = self._state.report
        report.counters["robots_defer_visits"] += 1
        if dropped := self._state.queues.defer(item, self._defer_delay, self._defer_retries):
            report.counters["robots_defer_visits_dropped"] += dropped
            report.host_failures.add("robots_defer_visits_dropped", item.url, dropped)


def _is_home_page(url: str) -> bool:
    return not url.partition("://")[2].partition("/")[2]
