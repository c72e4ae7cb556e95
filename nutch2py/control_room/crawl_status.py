"""Status of a crawl at a glance: state, key numbers, what needs attention, and an estimate of the remaining work."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from nutch2py.control_room.crawl_charts import FETCHED_STATUSES, REDIRECT_STATUSES, count_statuses, status_breakdown
from nutch2py.control_room.round_stats import UNSUCCESSFUL_STATES, Round, finish_time, sum_counters
from nutch2py.joblog.crawl_overview import Overview
from nutch2py.joblog.job_entry import JobEntry, JobState
from nutch2py.joblog.table_stats import MAX_DUE_COUNT, TableStats
from nutch2py.jobs.locking.lock_scopes import CHANGING_JOBS
from nutch2py.jobs.monitoring.counter_totals import CounterTotals
from nutch2py.jobs.monitoring.skip_reasons import SkippedUrls
from nutch2py.support.formatting import format_compact, format_duration, format_number, format_percent

_ESTIMATE_ROUNDS = 3
_MAX_ATTENTION = 6


class KeyNumber(NamedTuple):
    """A number of the status line: label, value, and an explanation."""

    label: str
    value: str
    detail: str = ""


class Attention(NamedTuple):
    """Something to act on: message, what to do, id of the job log entry if any, and whether it is an error."""

    message: str
    remedy: str
    job_id: str = ""
    is_error: bool = False


def crawl_state(entries: Sequence[JobEntry]) -> str:
    """Return ``running``, the state of the last job that changed the crawl, or ``idle``; ``entries``: newest first."""
    if any(entry.state == JobState.RUNNING for entry in entries):
        return JobState.RUNNING.value
    last = _last_change(entries)
    return "idle" if last is None or last.state == JobState.FINISHED else last.state.value


def _last_change(entries: Sequence[JobEntry]) -> JobEntry | None:
    return next((entry for entry in entries if entry.job in CHANGING_JOBS), None)


def key_numbers(
    table_stats: TableStats | None, overview: Overview | None, rounds: Sequence[Round], entries: Sequence[JobEntry]
) -> Iterator[KeyNumber]:
    """Yield the numbers of the status line."""
    if table_stats is not None:
        pending = status_breakdown(table_stats.status, table_stats.rows)[-1]
        fetched = count_statuses(table_stats.status, FETCHED_STATUSES)
        yield KeyNumber("Pages", format_number(table_stats.rows), "known URLs")
        yield KeyNumber("Fetched", format_number(fetched), format_percent(fetched, table_stats.rows))
        yield KeyNumber("Not fetched yet", format_number(pending), format_percent(pending, table_stats.rows))
        if table_stats.due is not None:
            least = "≥ " if table_stats.due >= MAX_DUE_COUNT else ""
            yield KeyNumber("Due", least + format_number(table_stats.due), "now")
    if overview is not None and overview.host_count:
        yield KeyNumber("Hosts", format_number(overview.host_count))
    fetch, totals = next(
        ((each, sums) for each in entries if each.job == "fetch" and (sums := sum_counters([each])).attempted_count),
        (None, CounterTotals()),
    )
    if fetch is not None:
        rate = 60_000 * totals.attempted_count / max(finish_time(fetch) - fetch.start_time, 1000)
        yield KeyNumber("URLs per minute", format_compact(rate), "last fetch")
    fetched_rounds = [each for each in rounds if each.totals.attempted_count]
    if fetched_rounds:
        last = fetched_rounds[-1].totals
        detail = f"of {format_number(last.attempted_count)} URL{'s' * (last.attempted_count != 1)}, last round"
        yield KeyNumber("Failed", format_number(last.unsuccessful_count), detail)


def find_attention(entries: Sequence[JobEntry], skipped: Sequence[SkippedUrls]) -> list[Attention]:
    """Return what needs attention, errors first: a failed last job, and reasons that the configuration can mend."""
    found = []
    last = _last_change(entries)
    if last is not None and last.state in UNSUCCESSFUL_STATES:
        message = f"The last job, {last.job}, {'was ' * (last.state != JobState.FAILED)}{last.state.value}"
        reason = last.message or "without a message"
        found.append(Attention(message, reason, last.id, last.state != JobState.STOPPED))
    fixable = sorted((each for each in skipped if each.reason.is_fixable), key=lambda each: -each.number)
    for each in fixable:
        hosts = f": {each.hosts_text}" if each.hosts else ""
        message = f"{format_number(each.number)} {each.reason.description}{hosts}"
        found.append(Attention(message, each.reason.remedy))
    return found[:_MAX_ATTENTION]


def coverage_numbers(table_stats: TableStats | None, entries: Sequence[JobEntry]) -> Iterator[KeyNumber]:
    """Yield the known pages by result, with redirects and duplicates."""
    if table_stats is None:
        return
    fetched, redirected, gone, pending = status_breakdown(table_stats.status, table_stats.rows)
    temporary, permanent = (table_stats.status.get(name, 0) for name in REDIRECT_STATUSES)
    yield KeyNumber("Known", format_number(table_stats.rows), "pages")
    yield KeyNumber("Fetched", format_number(fetched), format_percent(fetched, table_stats.rows))
    yield KeyNumber(
        "Redirected", format_number(redirected),
        f"{format_number(permanent)} permanently, {format_number(temporary)} temporarily",
    )  # fmt: skip
    yield KeyNumber("Gone", format_number(gone), "or forbidden")
    yield KeyNumber("Not fetched yet", format_number(pending), format_percent(pending, table_stats.rows))
    dedup = next((entry for entry in entries if entry.job == "dedup" and entry.state == JobState.FINISHED), None)
    if dedup is not None:
        count = dedup.counters.get("DeduplicationJob", {}).get("duplicates", 0)
        yield KeyNumber("Duplicates", format_number(count), "marked by the last dedup")


def estimate_frontier(table_stats: TableStats | None, rounds: Sequence[Round]) -> str:
    """Return a sentence on the pages that are not fetched yet, and on how long they will take."""
    finished = [each for each in rounds if not each.is_running and each.totals.attempted_count][-_ESTIMATE_ROUNDS:]
    if table_stats is None or not finished:
        return "No estimate of the remaining time yet: it needs table statistics and a finished round."
    pending = status_breakdown(table_stats.status, table_stats.rows)[-1]
    if not pending:
        return "Every known page has a result: the frontier is empty."
    done = sum(each.totals.attempted_count - each.totals.unsuccessful_count for each in finished)
    found = sum(each.totals.link_counts[1] for each in finished)
    milliseconds = max(finished[-1].finish_time - finished[0].start_time, 1000)
    name = f"{len(finished)} finished rounds" if len(finished) > 1 else "finished round"
    seen = (
        f"{format_number(pending)} pages are not fetched yet. The last {name} completed {format_number(done)} URLs and "
        f"found {format_number(found)} new pages in {format_duration(milliseconds)}"
    )
    if done <= found:
        return f"{seen}: the frontier grows, so the end cannot be estimated. Limits such as -pages end a crawl."
    remaining = format_duration(milliseconds * pending / (done - found))
    return f"{seen}: about {remaining} are left at this rate, if no more links are found than there."
