"""Search quality by the search log: frequent queries, queries without results or clicks, click positions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from statistics import median

from msgspec import Struct

from nutch2py.conf.configuration import Configuration
from nutch2py.search.search_log.logged_search import SearchSource
from nutch2py.search.search_log.search_log_store import SearchWithClicks, open_log_store, read_searches
from nutch2py.support.clock import MS_PER_DAY, now_ms


class QueryStats(Struct, frozen=True, kw_only=True):
    """Statistics of a query.

    Attributes:
        query: The query as it was written last.
        searches: Number of searches; further pages of results are not counted.
        clicked: Number of searches with a click.
        click_through: ``clicked`` / ``searches``.
        mean_click_position: Mean position of the clicks, None without clicks.
        total: Number of matching documents at the last search.
    """

    query: str
    searches: int
    clicked: int
    click_through: float
    mean_click_position: float | None
    total: int


class SearchQuality(Struct, frozen=True, kw_only=True):
    """Statistics of the search log.

    Attributes:
        days: Number of days that the statistics cover.
        searches: Number of searches; further pages of results are not counted.
        queries: Number of different queries, without regard to case and spaces.
        sessions: Number of different sessions; only searches and clicks with a script have one.
        without_hits: Number of searches without results.
        clicked: Number of searches with a click.
        clicks: Number of clicked results.
        click_through: Share of the searches with results that have a click, None without such searches.
        mean_click_position: Mean position of the clicks, None without clicks.
        median_dwell_ms: Median time until users came back from a result, in ms; None when unknown.
        frequent: The most frequent queries.
        no_hits: The most frequent queries without results.
        no_clicks: The most frequent queries with results and without any click.
    """

    days: float
    searches: int
    queries: int
    sessions: int
    without_hits: int
    clicked: int
    clicks: int
    click_through: float | None
    mean_click_position: float | None
    median_dwell_ms: float | None
    frequent: list[QueryStats]
    no_hits: list[QueryStats]
    no_clicks: list[QueryStats]


class _QueryCounts:
    """Counts of one query. The first added search is the newest."""

    __slots__ = ("clicked", "clicks", "position_sum", "query", "searches", "total")

    def __init__(self, query: str, total: int) -> None:
        self.query, self.total = query, total
        self.searches = self.clicked = self.clicks = self.position_sum = 0

    def to_stats(self) -> QueryStats:
        return QueryStats(
            query=self.query,
            searches=self.searches,
            clicked=self.clicked,
            click_through=min(1.0, self.clicked / self.searches) if self.searches else 0.0,
            mean_click_position=self.position_sum / self.clicks if self.clicks else None,
            total=self.total,
        )


def normalize_query(query: str) -> str:
    """Return a query without differences of case and spaces.

    >>> normalize_query(" Web  Crawler")
    'web crawler'
    """
    return " ".join(query.casefold().split())


def measure_search_quality(searches: Iterable[SearchWithClicks], days: float, top: int) -> SearchQuality:
    """Return the statistics of logged searches, which come newest first. ``top``: number of queries per list."""
    counts = dict[str, _QueryCounts]()
    sessions, dwells = set[str](), list[int]()
    searches_with_hits = without_hits = clicked_with_hits = 0
    for search, _, clicks in searches:
        key = normalize_query(search.query)
        count = counts.get(key)
        if count is None:
            count = counts[key] = _QueryCounts(search.query, search.total)
        if search.start == 0:  # further pages belong to the same search
            count.searches += 1
            without_hits += not search.total
            searches_with_hits += bool(search.total)
            clicked_with_hits += bool(clicks)
            count.clicked += bool(clicks)
        count.clicks += len(clicks)
        count.position_sum += sum(click.position for click in clicks)
        sessions.update(filter(None, (search.session, *(click.session for click in clicks))))
        dwells.extend(click.dwell_ms for click in clicks if click.dwell_ms is not None)
    clicks_in_all = sum(each.clicks for each in counts.values())
    return SearchQuality(
        days=days,
        searches=sum(each.searches for each in counts.values()),
        queries=len(counts),
        sessions=len(sessions),
        without_hits=without_hits,
        clicked=clicked_with_hits,
        clicks=clicks_in_all,
        click_through=clicked_with_hits / searches_with_hits if searches_with_hits else None,
        mean_click_position=sum(each.position_sum for each in counts.values()) / clicks_in_all
        if clicks_in_all
        else None,
        median_dwell_ms=float(median(dwells)) if dwells else None,
        frequent=_most_frequent(counts, counts, top),
        no_hits=_most_frequent(counts, (key for key, each in counts.items() if not each.total), top),
        no_clicks=_most_frequent(counts, (key for key, each in counts.items() if each.total and not each.clicks), top),
    )


def _most_frequent(counts: Mapping[str, _QueryCounts], keys: Iterable[str], top: int) -> list[QueryStats]:
    ordered = sorted(keys, key=lambda key: (-counts[key].searches, key))
    return [counts[key].to_stats() for key in ordered if counts[key].searches][:top]


def read_search_quality(
    conf: Configuration, days: float, top: int, source: SearchSource | None = None, limit: int | None = None
) -> SearchQuality:
    """Return the statistics of a crawl's search log.

    Args:
        conf: The configuration of the crawl.
        days: Number of days before now.
        top: Number of queries per list.
        source: Only searches of the search page, or of the search API.
        limit: Maximum number of searches to read, the newest first.
    """
    store = open_log_store(conf)
    try:
        since = max(0, now_ms() - int(days * MS_PER_DAY))
        searches = (each for each in read_searches(store, since, limit) if source in (None, each.search.source))
        return measure_search_quality(searches, days, top)
    finally:
        store.close()
