"""The row of a page in words: what it is, why it is due or not, what each job did to it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from nutch2py.conf import Configuration
from nutch2py.jobs.readdb_text import float_text, parse_status_name, protocol_status_name
from nutch2py.pictures.words import moment, span
from nutch2py.record import Field
from nutch2py.schedule.abstract import fixed_interval
from nutch2py.schedule.fetch_schedule import fetch_schedule
from nutch2py.schedule.transition import TransitionLimits
from nutch2py.webpage import INJECTED_SITEMAP, CrawlStatus, Mark, MetadataKey, ProtocolStatusCode, WebPage

FIELDS: frozenset[Field[Any]] = frozenset(
    {
        WebPage.base_url, WebPage.status, WebPage.fetch_time, WebPage.prev_fetch_time, WebPage.fetch_interval,
        WebPage.retries_since_fetch, WebPage.modified_time, WebPage.prev_modified_time, WebPage.protocol_status,
        WebPage.prev_signature, WebPage.signature, WebPage.parse_status, WebPage.title, WebPage.score,
        WebPage.page_rank, WebPage.markers, WebPage.repr_url, WebPage.batch_id, WebPage.metadata,
        WebPage.content_type, WebPage.inlinks, WebPage.outlinks,
    }
)  # fmt: skip
"""What is read of a row: all but its content, its text and the headers of its answer."""

STATUSES = {
    CrawlStatus.UNFETCHED: "not fetched yet",
    CrawlStatus.FETCHED: "fetched",
    CrawlStatus.GONE: "gone",
    CrawlStatus.REDIR_TEMP: "leads elsewhere for now",
    CrawlStatus.REDIR_PERM: "leads elsewhere for good",
    CrawlStatus.RETRY: "failed, to be tried again",
    CrawlStatus.NOTMODIFIED: "fetched, unchanged since",
}
_NEW = "a seed that was never fetched"
_REASONS: dict[int, str] = {
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

_REPAIRS: dict[int, str] = {
    ProtocolStatusCode.ACCESS_DENIED: "http.auth.file names logins.",
    ProtocolStatusCode.ROBOTS_DENIED: "Only the site's owner changes that; its rules are read for the name in "
    "http.agent.name.",
    ProtocolStatusCode.EXCEPTION: "nutch2py doctor looks at names, addresses and limits on this side.",
}
"""What to do about it, where anything can be done."""


class Step(NamedTuple):
    """What a job did to the row; ``batch_id``: in which batch, "" when that is not known."""

    job: str
    told: str
    batch_id: str = ""


def status_words(status: int) -> str:
    """Return a status in words."""
    try:
        return STATUSES[CrawlStatus(status)]
    except ValueError:
        return _NEW if status == 0 else f"unknown status {status}"


def due(url: str, page: WebPage, conf: Configuration, now: int) -> Iterator[str]:
    """Yield sentences: whether generate would take the page at ``now`` (ms), and why. ``page`` may be changed."""
    at, interval = page.fetch_time, page.fetch_interval
    limits = TransitionLimits.of(conf)
    batch = page.markers.get(Mark.GENERATE)
    if batch is not None:
        yield f"It is in batch {batch}: no other generate takes it until updatedb has done that batch."
    elif fetch_schedule(conf).should_fetch(url, page, now):
        if page.fetch_time != at:
            yield f"It is due now: its time, {moment(at)}, lies further ahead than db.fetch.interval.max allows."
        else:
            yield f"It is due since {moment(at)} ({span(now - at)} ago)."
    else:
        yield f"It is not due before {moment(at)}, in {span(at - now)}."
    if page.status == CrawlStatus.GONE:
        longest = span(1000 * limits.max_interval)
        yield f"It is gone: it is asked for again after half as long again each time, at most {longest} later."
    elif page.retries_since_fetch:
        times = page.retries_since_fetch
        yield (
            f"Its fetch has failed {times} time{'s' if times > 1 else ''} in a row; it is tried again a day later, and "
            f"is gone after {limits.retry_max} (db.fetch.retry.max)."
        )
    yield _interval(page, interval, conf)


def _interval(page: WebPage, interval: int, conf: Configuration) -> str:
    fixed = fixed_interval(page)
    if fixed is not None:
        return f"Two fetches lie {span(1000 * fixed)} apart, as its seed fixes."
    default = conf.get_int("db.fetch.interval.default", 2592000)
    if not interval:
        return f"It has no interval of its own: two fetches lie {span(1000 * default)} apart."
    whose = "the default" if interval == default else "its own interval"
    return f"Two fetches lie {span(1000 * interval)} apart, {whose}, by {_schedule(conf)}."


def _schedule(conf: Configuration) -> str:
    return conf.get_trimmed("db.fetch.schedule.class", "DefaultFetchSchedule").rpartition(".")[2]


def steps(page: WebPage) -> Iterator[Step]:
    """Yield what the jobs did to a row, in their order; of each job the last time, for that is what rows keep."""
    markers = page.markers
    injected = markers.get(Mark.INJECT)
    if injected is not None:
        yield Step("inject", "It is a sitemap of a seed list." if injected == INJECTED_SITEMAP else "It is a seed.")
    batch = markers.get(Mark.GENERATE)
    if batch is not None:
        yield Step("generate", "It was chosen for fetching.", batch)
    yield from _fetch(page)
    parse = page.parse_status
    if parse is not None:
        why = f": {', '.join(parse.args)}" if parse.args else ""
        yield Step("parse", f"The parse ended as {parse_status_name(parse)}{why}.", markers.get(Mark.PARSE) or "")
    updated = markers.get(Mark.UPDATEDB)
    distance = markers.get(Mark.DISTANCE)
    if updated is not None or distance is not None:
        links = "link" if distance == "1" else "links"
        far = f"It is {distance} {links} from a seed." if distance is not None else "Its links were taken in."
        yield Step("updatedb", far, updated or "")
    if page.page_rank:
        yield Step("pagerank", f"Its PageRank is {float_text(page.page_rank)}.")
    same = page.metadata.get(MetadataKey.DUPLICATE)
    if same is not None:
        yield Step("dedup", f"It is a duplicate of {same.decode('utf-8', 'replace').partition(' ')[2]}.")
    indexed = markers.get(Mark.INDEX)
    if indexed is not None:
        yield Step("index", "It was sent to the index.", indexed)


def _fetch(page: WebPage) -> Iterator[Step]:
    status = page.protocol_status
    if status is None:
        return
    name = protocol_status_name(status.code)
    told = _REASONS.get(status.code, "it ended")
    why = f": {', '.join(status.args)}" if status.args else ""
    batch_id = page.markers.get(Mark.FETCH) or page.batch_id or ""
    repair = f" {_REPAIRS[status.code]}" if status.code in _REPAIRS else ""
    yield Step("fetch", f"{told[0].upper()}{told[1:]} ({name}){why}.{repair}", batch_id)
