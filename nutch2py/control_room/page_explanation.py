"""Explains the row of a page: status, next fetch and job history."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from nutch2py.conf.configuration import Configuration
from nutch2py.fetcher.output.page_updater import is_local_failure
from nutch2py.jobs.row_output.row_text import format_float, parse_status_name, protocol_status_name
from nutch2py.records.record import RecordField
from nutch2py.records.webpage import INJECTED_SITEMAP, CrawlStatus, Mark, MetadataKey, ProtocolStatusCode, WebPage
from nutch2py.schedule.abstract_fetch_schedule import fixed_interval
from nutch2py.schedule.fetch_schedule import create_fetch_schedule
from nutch2py.schedule.fetch_transition import TransitionLimits
from nutch2py.support.formatting import format_duration, format_time

EXPLAINED_FIELDS: frozenset[RecordField] = frozenset(
    {
        WebPage.base_url, WebPage.status, WebPage.fetch_time, WebPage.prev_fetch_time, WebPage.fetch_interval,
        WebPage.retries_since_fetch, WebPage.modified_time, WebPage.prev_modified_time, WebPage.protocol_status,
        WebPage.prev_signature, WebPage.signature, WebPage.parse_status, WebPage.title, WebPage.score,
        WebPage.page_rank, WebPage.markers, WebPage.repr_url, WebPage.batch_id, WebPage.metadata,
        WebPage.content_type, WebPage.inlinks, WebPage.outlinks,
    }
)  # fmt: skip
"""Fields read from a row: all but content, text and response headers."""

STATUS_LABELS = {
    CrawlStatus.UNFETCHED: "not fetched yet",
    CrawlStatus.FETCHED: "fetched",
    CrawlStatus.GONE: "gone",
    CrawlStatus.REDIR_TEMP: "temporary redirect",
    CrawlStatus.REDIR_PERM: "permanent redirect",
    CrawlStatus.RETRY: "failed, retry pending",
    CrawlStatus.NOTMODIFIED: "not modified",
}
_INJECTED_LABEL = "seed, not fetched yet"
_PROTOCOL_STATUS_LABELS: dict[int, str] = {
    ProtocolStatusCode.SUCCESS: "fetched",
    ProtocolStatusCode.NOTMODIFIED: "not modified",
    ProtocolStatusCode.MOVED: "permanent redirect",
    ProtocolStatusCode.TEMP_MOVED: "temporary redirect",
    ProtocolStatusCode.NOTFOUND: "not found (404)",
    ProtocolStatusCode.GONE: "gone (410, 400)",
    ProtocolStatusCode.ACCESS_DENIED: "login required (401)",
    ProtocolStatusCode.ROBOTS_DENIED: "denied by robots.txt",
    ProtocolStatusCode.EXCEPTION: "fetch failed",
    ProtocolStatusCode.RETRY: "retry pending",
}

_DOCTOR = "nutch2py doctor checks DNS, addresses and limits on this machine."
_REMEDIES: dict[int, str] = {
    ProtocolStatusCode.ACCESS_DENIED: "Configure a login in http.auth.file.",
    ProtocolStatusCode.ROBOTS_DENIED: "Only the site owner can change it; the rules for http.agent.name apply.",
    ProtocolStatusCode.EXCEPTION: _DOCTOR,
}
"""Actions by protocol status."""


class PageHistoryEntry(NamedTuple):
    """Effect of a job on the row. ``batch_id``: "" when unknown."""

    job: str
    description: str
    batch_id: str = ""


def status_label(status: int) -> str:
    """Return the label of a status."""
    try:
        return STATUS_LABELS[CrawlStatus(status)]
    except ValueError:
        return _INJECTED_LABEL if status == 0 else f"unknown status {status}"


def explain_due(url: str, page: WebPage, conf: Configuration, now: int) -> Iterator[str]:
    """Yield sentences: whether generate would select the page at ``now`` (ms), and why. May change ``page``."""
    due_time, interval = page.fetch_time, page.fetch_interval
    limits = TransitionLimits.from_conf(conf)
    batch = page.markers.get(Mark.GENERATE)
    if batch is not None:
        yield f"In batch {batch}: generate skips it until updatedb has processed that batch."
    elif create_fetch_schedule(conf).should_fetch(url, page, now):
        if page.fetch_time != due_time:
            yield f"Next fetch: now ({format_time(due_time)} is further ahead than db.fetch.interval.max allows)."
        else:
            yield f"Next fetch: now (due since {format_time(due_time)}, {format_duration(now - due_time)} ago)."
    else:
        yield f"Next fetch: {format_time(due_time)} (in {format_duration(due_time - now)})."
    if page.status == CrawlStatus.GONE:
        longest = format_duration(1000 * limits.max_interval)
        yield f"Gone: the interval grows by half after each fetch, up to {longest} (db.fetch.interval.max)."
    elif page.retries_since_fetch:
        times = page.retries_since_fetch
        yield (
            f"Failed {times} time{'s' if times > 1 else ''} in a row: retried daily, and gone "
            f"after {limits.max_retries} failures (db.fetch.retry.max)."
        )
    yield _explain_interval(page, interval, conf)


def _explain_interval(page: WebPage, interval: int, conf: Configuration) -> str:
    fixed = fixed_interval(page)
    if fixed is not None:
        return f"Interval: {format_duration(1000 * fixed)} (fixed by its seed)."
    default = conf.get_int("db.fetch.interval.default", 2592000)
    if not interval:
        return f"Interval: {format_duration(1000 * default)} (default)."
    source = "default" if interval == default else "of this page"
    return f"Interval: {format_duration(1000 * interval)} ({source}, {_schedule_name(conf)})."


def _schedule_name(conf: Configuration) -> str:
    return conf.get_trimmed("db.fetch.schedule.class", "DefaultFetchSchedule").rpartition(".")[2]


def page_history(page: WebPage) -> Iterator[PageHistoryEntry]:
    """Yield the effect of each job on a row, in order of processing. Rows keep only the last run of a job."""
    markers = page.markers
    injected = markers.get(Mark.INJECT)
    if injected is not None:
        yield PageHistoryEntry("inject", "Sitemap from a seed list." if injected == INJECTED_SITEMAP else "Seed URL.")
    batch = markers.get(Mark.GENERATE)
    if batch is not None:
        yield PageHistoryEntry("generate", "Selected for fetching.", batch)
    yield from _fetch_history(page)
    parse = page.parse_status
    if parse is not None:
        reason = f": {', '.join(parse.args)}" if parse.args else ""
        yield PageHistoryEntry(
            "parse", f"Parse status: {parse_status_name(parse)}{reason}.", markers.get(Mark.PARSE) or ""
        )
    updated = markers.get(Mark.UPDATEDB)
    distance = markers.get(Mark.DISTANCE)
    if updated is not None or distance is not None:
        description = f"Depth: {distance}." if distance is not None else "Outlinks added to the table."
        yield PageHistoryEntry("updatedb", description, updated or "")
    if page.page_rank:
        yield PageHistoryEntry("pagerank", f"PageRank: {format_float(page.page_rank)}.")
    duplicate = page.metadata.get(MetadataKey.DUPLICATE)
    if duplicate is not None:
        yield PageHistoryEntry("dedup", f"Duplicate of {duplicate.decode('utf-8', 'replace').partition(' ')[2]}.")
    indexed = markers.get(Mark.INDEX)
    if indexed is not None:
        yield PageHistoryEntry("index", "Sent to the index.", indexed)


def _fetch_history(page: WebPage) -> Iterator[PageHistoryEntry]:
    status = page.protocol_status
    if status is None:
        return
    if is_local_failure(status):
        reason = f"Not fetched for a reason of this machine, so the page stays as it is: {status.args[0]}."
        yield PageHistoryEntry("fetch", f"{reason} {_DOCTOR}")
        return
    name = protocol_status_name(status.code)
    label = _PROTOCOL_STATUS_LABELS.get(status.code, "finished")
    reason = f": {', '.join(status.args)}" if status.args else ""
    batch_id = page.markers.get(Mark.FETCH) or page.batch_id or ""
    remedy = f" {_REMEDIES[status.code]}" if status.code in _REMEDIES else ""
    yield PageHistoryEntry("fetch", f"{label[0].upper()}{label[1:]} ({name}){reason}.{remedy}", batch_id)
