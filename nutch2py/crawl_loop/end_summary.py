"""Final summary of a crawl: fetched pages, skipped URLs with their reasons, and the next commands."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence

from nutch2py.conf.configuration import Configuration
from nutch2py.crawl_loop.crawl_plan import PREFIX_FILTER, CrawlPlan, CrawlScope
from nutch2py.crawl_loop.loop import StopReason
from nutch2py.jobs.monitoring.counter_totals import CounterTotals
from nutch2py.jobs.monitoring.skip_reasons import iter_skipped_urls
from nutch2py.parser.links.outlink_filter import IGNORE_EXTERNAL_LINKS
from nutch2py.support.formatting import format_bytes, format_duration
from nutch2py.url.filters.url_filters import SKIPPED_LINKS_GROUP

_SCOPE_REASONS = {
    CrawlScope.HOST: (IGNORE_EXTERNAL_LINKS,),
    CrawlScope.DOMAIN: (IGNORE_EXTERNAL_LINKS,),
    CrawlScope.PATH: (IGNORE_EXTERNAL_LINKS, PREFIX_FILTER),
}
"""Counters of the links that the scope of a crawl rejected."""


def summary_lines(
    totals: CounterTotals,
    plan: CrawlPlan,
    stop_reason: StopReason,
    location_options: Sequence[str],
    conf: Configuration,
) -> Iterator[str]:
    """Yield the lines of the summary.

    Args:
        totals: The counters of the crawl.
        plan: Its plan.
        stop_reason: Why it stopped.
        location_options: Options with which later commands find the crawl and its index.
        conf: The configuration of the crawl.
    """
    links, new = totals.link_counts
    size = f" ({format_bytes(totals.downloaded_bytes)})" if totals.downloaded_bytes else ""
    duration = f"{_plural(totals.rounds, 'round')}, {format_duration(1000 * totals.elapsed_seconds)}"
    pages, documents = _plural(totals.fetched_count, "page"), _plural(totals.indexed_documents, "document")
    yield f"{pages} fetched{size} in {duration}; {documents} in the index."
    if links:
        yield f"Links found on them: {links:,}, to {_plural(new, 'page')} not known before."
    if totals.rank_message:
        yield f"{totals.rank_message[0].upper()}{totals.rank_message[1:]}."
    skipped = [*iter_skipped_urls(totals, conf)]
    if skipped:
        yield "Skipped:"
        yield from (f"  {each.number:>7,} {each}" for each in skipped)
    yield from _limit_lines(totals, plan, stop_reason)
    if totals.indexed_documents:
        yield "Search it:"
        yield f"  {shell_command(location_options, 'search', 'WORDS')}"
        yield f"  {shell_command(location_options, 'serve')}"
    if totals.rounds:
        yield "Write a report with charts:"
        yield f"  {shell_command(location_options, 'report', '-o', 'crawl.html')}"


def _limit_lines(totals: CounterTotals, plan: CrawlPlan, stop_reason: StopReason) -> Iterator[str]:
    if stop_reason == StopReason.PAGE_LIMIT:
        yield f"Stopped at -pages {plan.max_pages}. Run the same command again to continue."
    elif stop_reason == StopReason.TIME_LIMIT:
        yield f"Stopped at -time {plan.max_minutes}. Run the same command again to continue."
    elif stop_reason == StopReason.LOCAL_FAILURES:
        yield "Stopped: every URL of a round failed for a reason of this machine. Remove the cause and run it again."
    elif stop_reason == StopReason.HELD_HOSTS:
        yield "Stopped: only hosts without a readable robots.txt are left. Run the same command later to continue."
    skipped = totals.totals.group(SKIPPED_LINKS_GROUP)
    if any(skipped.get(reason) for reason in _SCOPE_REASONS.get(plan.scope, ())):
        scope = {CrawlScope.HOST: "host", CrawlScope.DOMAIN: "domain", CrawlScope.PATH: "folder"}[plan.scope]
        yield f"Links to another {scope} were not followed: see -stay."


def _plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def shell_command(location_options: Sequence[str], *words: str) -> str:
    """Return a command, quoted for a shell. ``location_options``: the options that locate the crawl."""
    name, *rest = words
    line = shlex.join([os.environ.get("NUTCH2PY_COMMAND", "nutch2py"), name, *location_options])
    return " ".join([line, *rest])
