"""What is said at the end of a crawl: what came, what was left out and what decides that, what to type next."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence

from nutch2py.conf.configuration import Configuration
from nutch2py.crawl_loop.crawl_plan import CrawlPlan, CrawlScope
from nutch2py.crawl_loop.loop import StopReason
from nutch2py.jobs.monitoring.counter_totals import CounterTotals
from nutch2py.jobs.monitoring.skip_reasons import iter_skipped_urls
from nutch2py.support.formatting import format_bytes, format_duration


def summary_lines(
    totals: CounterTotals,
    plan: CrawlPlan,
    stop_reason: StopReason,
    location_options: Sequence[str],
    conf: Configuration,
) -> Iterator[str]:
    """Yield the lines. ``location_options``: options by which later commands find the crawl and its index; ``conf``: its own."""
    links, new = totals.link_counts
    came = f" ({format_bytes(totals.downloaded_bytes)})" if totals.downloaded_bytes else ""
    took = f"{_plural(totals.rounds, 'round')}, {format_duration(1000 * totals.elapsed_seconds)}"
    yield f"{_plural(totals.fetched_count, 'page')} fetched{came} in {took}; {_plural(totals.indexed_documents, 'document')} in the index."
    if links:
        yield f"Links found on them: {links:,}, to {_plural(new, 'page')} not known before."
    if totals.rank_message:
        yield f"{totals.rank_message[0].upper()}{totals.rank_message[1:]}."
    found = [*iter_skipped_urls(totals, conf)]
    if found:
        yield "Left out:"
        yield from (f"  {each.number:>7,} {each}" for each in found)
    yield from _limit_lines(totals, plan, stop_reason)
    if totals.indexed_documents:
        yield "Search it:"
        yield f"  {shell_command(location_options, 'search', 'WORDS')}"
        yield f"  {shell_command(location_options, 'serve')}"
    if totals.rounds:
        yield "See how it went, in pictures:"
        yield f"  {shell_command(location_options, 'report', '-o', 'crawl.html')}"


def _limit_lines(tally: CounterTotals, plan: CrawlPlan, end: StopReason) -> Iterator[str]:
    if end == StopReason.PAGE_LIMIT:
        yield f"Ended at -pages {plan.max_pages}: the same command again goes on."
    elif end == StopReason.TIME_LIMIT:
        yield f"Ended at -time {plan.max_minutes}: the same command again goes on."
    if plan.scope != CrawlScope.ANYWHERE:
        what = {CrawlScope.HOST: "host", CrawlScope.DOMAIN: "domain", CrawlScope.PATH: "folder"}[plan.scope]
        yield f"Links that leave the {what} of a page were not followed: -stay chooses."


def _plural(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def shell_command(place: Sequence[str], *words: str) -> str:
    """Return a command as a shell reads it; ``place``: the options that say where the crawl is."""
    name, *rest = words
    line = shlex.join([os.environ.get("NUTCH2PY_COMMAND", "nutch2py"), name, *place])
    return " ".join([line, *rest])
