"""The row of a page in words: what it is, why it is due or not, what each job did to it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from nutch2py.conf.configuration import Configuration
from nutch2py.jobs.row_output.row_text import format_float, parse_status_name, protocol_status_name
from nutch2py.records.record import Field
from nutch2py.records.webpage import INJECTED_SITEMAP, CrawlStatus, Mark, MetadataKey, ProtocolStatusCode, WebPage
from nutch2py.schedule.abstract_fetch_schedule import fixed_interval
from nutch2py.schedule.fetch_schedule import create_fetch_schedule
from nutch2py.schedule.fetch_transition import TransitionLimits
from nutch2py.support.formatting import format_duration, format_time

EXPLAINED_FIELDS: frozenset[Field[Any]] = frozenset(
    {
        WebPage.base_url, WebPage.status, WebPage.fetch_time, WebPage.prev_fetch_time, WebPage.fetch_interval,
        WebPage.retries_since_fetch, WebPage.modified_time, WebPage.prev_modified_time, WebPage.protocol_status,
        WebPage.prev_signature, WebPage.signature, WebPage.parse_status, WebPage.title, WebPage.score,
        WebPage.page_rank, WebPage.markers, WebPage.repr_url, WebPage.batch_id, WebPage.metadata,
        WebPage.content_type, WebPage.inlinks, WebPage.outlinks,
    }
)  # fmt: skip
"""What is read of a row: all but its content, its text and the headers of its answer."""

STATUS_LABELS = {
    CrawlStatus.UNFETCHED: "not fetched yet",
    CrawlStatus.FETCHED: "fetched",
    CrawlStatus.GONE: "gone",
    CrawlStatus.REDIR_TEMP: "leads elsewhere for now",
    CrawlStatus.REDIR_PERM: "leads elsewhere for good",
    CrawlStatus.RETRY: "failed, to be tried again",
    CrawlStatus.NOTMODIFIED: "fetched, unchanged since",
}
_INJECTED_LABEL = "a seed that was never fetched"
_PROTOCOL_STATUS_LABELS: dict[int, str] = {
    ProtocolStatusCode.SUCCESS: "the page came",
    ProtocolStatusCode.NOTMODIFIED: "the server said that it has not changed",
    ProtocolStatusCode.MOVED: "it leads to another URL for good",
    ProtocolStatusCode.TEMP_MOVED: "it leads to another URL for now",
    ProtocolStatusCode.NOTFOUND: "it was not found (404)",
    ProtocolStatusCode.GONE: "it is gone (410, 400)",
    ProtocolStatusCode.ACCESS_DENIED: "it asks for a login (401)",
    ProtocolStatusCode.ROBOTS_DENIED: "robots.txt denies it to us",
    ProtocolStatusCode.EXCEPTION: "the fetch failed",
    ProtocolStatusCode.RETRY: "it is to be tried again",
}

_REMEDIES: dict[int, str] = {
    ProtocolStatusCode.ACCESS_DENIED: "http.auth.file names logins.",
    ProtocolStatusCode.ROBOTS_DENIED: "Only the site's owner changes that; its rules are read for the name in "
    "http.agent.name.",
    ProtocolStatusCode.EXCEPTION: "nutch2py doctor looks at names, addresses and limits on this side.",
}
"""What to do about it, where anything can be done."""


class PageHistoryEntry(NamedTuple):
    """What a job did to the row; ``batch_id``: in which batch, "" when that is not known."""

    job: str
    description: str
    batch_id: str = ""


def status_label(status: int) -> str:
    """Return a status in words."""
    try:
        return STATUS_LABELS[CrawlStatus(status)]
    except ValueError:
        return _INJECTED_LABEL if status == 0 else f"unknown status {status}"


def explain_due(url: str, page: WebPage, conf: Configuration, now: int) -> Iterator[str]:
    """Yield sentences: whether generate would take the page at ``now`` (ms), and why. ``page`` may be changed."""
    at, interval = page.fetch_time, page.fetch_interval
    limits = TransitionLimits.from_conf(conf)
    batch = page.markers.get(Mark.GENERATE)
    if batch is not None:
        yield f"It is in batch {batch}: no other generate takes it until updatedb has done that batch."
    elif create_fetch_schedule(conf).should_fetch(url, page, now):
        if page.fetch_time != at:
            yield f"It is due now: its time, {format_time(at)}, lies further ahead than db.fetch.interval.max allows."
        else:
            yield f"It is due since {format_time(at)} ({format_duration(now - at)} ago)."
    else:
        yield f"It is not due before {format_time(at)}, in {format_duration(at - now)}."
    if page.status == CrawlStatus.GONE:
        longest = format_duration(1000 * limits.max_interval)
        yield f"It is gone: it is asked for again after half as long again each time, at most {longest} later."
    elif page.retries_since_fetch:
        times = page.retries_since_fetch
        yield (
            f"Its fetch has failed {times} time{'s' if times > 1 else ''} in a row; it is tried again a day later, and "
            f"is gone after {limits.max_retries} (db.fetch.retry.max)."
        )
    yield _explain_interval(page, interval, conf)


def _explain_interval(page: WebPage, interval: int, conf: Configuration) -> str:
    fixed = fixed_interval(page)
    if fixed is not None:
        return f"Two fetches lie {format_duration(1000 * fixed)} apart, as its seed fixes."
    default = conf.get_int("db.fetch.interval.default", 2592000)
    if not interval:
        return f"It has no interval of its own: two fetches lie {format_duration(1000 * default)} apart."
    whose = "the default" if interval == default else "its own interval"
    return f"Two fetches lie {format_duration(1000 * interval)} apart, {whose}, by {_schedule_name(conf)}."


def _schedule_name(conf: Configuration) -> str:
    return conf.get_trimmed("db.fetch.schedule.class", "DefaultFetchSchedule").rpartition(".")[2]


def page_history(page: WebPage) -> Iterator[PageHistoryEntry]:
    """Yield what the jobs did to a row, in their order; of each job the last time, for that is what rows keep."""
    markers = page.markers
    injected = markers.get(Mark.INJECT)
    if injected is not None:
        yield PageHistoryEntry(
            "inject", "It is a sitemap of a seed list." if injected == INJECTED_SITEMAP else "It is a seed."
        )
    batch = markers.get(Mark.GENERATE)
    if batch is not None:
        yield PageHistoryEntry("generate", "It was chosen for fetching.", batch)
    yield from _fetch_history(page)
    parse = page.parse_status
    if parse is not None:
        why = f": {', '.join(parse.args)}" if parse.args else ""
        yield PageHistoryEntry(
            "parse", f"The parse ended as {parse_status_name(parse)}{why}.", markers.get(Mark.PARSE) or ""
        )
    updated = markers.get(Mark.UPDATEDB)
    distance = markers.get(Mark.DISTANCE)
    if updated is not None or distance is not None:
        links = "link" if distance == "1" else "links"
        far = f"It is {distance} {links} from a seed." if distance is not None else "Its links were taken in."
        yield PageHistoryEntry("updatedb", far, updated or "")
    if page.page_rank:
        yield PageHistoryEntry("pagerank", f"Its PageRank is {format_float(page.page_rank)}.")
    same = page.metadata.get(MetadataKey.DUPLICATE)
    if same is not None:
        yield PageHistoryEntry("dedup", f"It is a duplicate of {same.decode('utf-8', 'replace').partition(' ')[2]}.")
    indexed = markers.get(Mark.INDEX)
    if indexed is not None:
        yield PageHistoryEntry("index", "It was sent to the index.", indexed)


def _fetch_history(page: WebPage) -> Iterator[PageHistoryEntry]:
    status = page.protocol_status
    if status is None:
        return
    name = protocol_status_name(status.code)
    told = _PROTOCOL_STATUS_LABELS.get(status.code, "it ended")
    why = f": {', '.join(status.args)}" if status.args else ""
    batch_id = page.markers.get(Mark.FETCH) or page.batch_id or ""
    repair = f" {_REMEDIES[status.code]}" if status.code in _REMEDIES else ""
    yield PageHistoryEntry("fetch", f"{told[0].upper()}{told[1:]} ({name}){why}.{repair}", batch_id)
