"""Text summary of a crawl for the control room and the report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nutch2py.control_room.crawl_charts import FETCHED_STATUSES, count_statuses
from nutch2py.control_room.round_stats import (
    UNSUCCESSFUL_STATES,
    Round,
    finish_time,
    remaining_ms,
    rows_per_second,
    sum_counters,
)
from nutch2py.joblog.crawl_overview import Overview
from nutch2py.joblog.job_entry import JobEntry, JobState
from nutch2py.joblog.table_stats import MAX_DUE_COUNT, TableStats
from nutch2py.jobs.locking.lock_scopes import CHANGING_JOBS
from nutch2py.support.formatting import format_bytes, format_duration, format_number, format_percent, format_time


def summarize_crawl(
    table_stats: TableStats | None, overview: Overview | None, rounds: Sequence[Round], entries: Sequence[JobEntry]
) -> Iterator[str]:
    """Yield sentences on pages, due pages, rounds and the last job. ``entries``: newest first."""
    if table_stats is None:
        yield "The number of pages is unknown: run nutch2py readdb -stats, which reads all rows."
    else:
        hosts = (
            f" of {format_number(overview.host_count)} host{_plural_suffix(overview.host_count)}"
            if overview and overview.host_count
            else ""
        )
        fetched = count_statuses(table_stats.status, FETCHED_STATUSES)
        pages = f"{format_number(table_stats.rows)} page{_plural_suffix(table_stats.rows)}"
        yield f"{pages}{hosts}, {format_percent(fetched, table_stats.rows)} fetched."
        if table_stats.due is not None:
            least = "At least " if table_stats.due >= MAX_DUE_COUNT else ""
            number = format_number(table_stats.due) if table_stats.due else "No"
            yield f"{least}{number} page{_plural_suffix(table_stats.due)} due now."
    if rounds:
        yield _summarize_rounds(rounds)
    if entries:
        yield summarize_last_job(next((entry for entry in entries if entry.job in CHANGING_JOBS), entries[0]))
    else:
        yield "No job in the log yet."


def _summarize_rounds(rounds: Sequence[Round]) -> str:
    totals = sum_counters([entry for each in rounds for entry in each.entries])
    duration = format_duration(rounds[-1].finish_time - rounds[0].start_time)
    size = f" ({format_bytes(totals.downloaded_bytes)})" if totals.downloaded_bytes else ""
    links = f"; {format_number(totals.link_counts[0])} links found" if totals.link_counts[0] else ""
    count = f"{len(rounds):,} round{_plural_suffix(len(rounds))}"
    return f"{count} in {duration}: {totals.format_summary()}{size}{links}."


def summarize_last_job(entry: JobEntry) -> str:
    """Return a sentence on the newest job: its progress, or its result."""
    batch = f" of batch {entry.batch_id}" if entry.batch_id else ""
    if entry.state == JobState.RUNNING:
        return f"Running: {entry.job}{batch}, since {format_time(entry.start_time)}{_progress_text(entry)}."
    reason = f": {entry.message}" if entry.message and entry.state in UNSUCCESSFUL_STATES else ""
    result = {JobState.FINISHED: "finished", JobState.KILLED: "was killed", JobState.STOPPED: "was stopped"}
    ended = f"{result.get(entry.state, 'failed')} at {format_time(finish_time(entry))}"
    return f"The last job, {entry.job}{batch}, {ended}{reason}."


def _progress_text(entry: JobEntry) -> str:
    if not entry.rows:
        return ""
    total = f" of {format_number(entry.expected)}" if entry.expected else ""
    remaining = remaining_ms(entry)
    return f": {format_number(entry.rows)}{total} rows, {rows_per_second(entry):,.3g} rows/s" + (
        f", about {format_duration(remaining)} remaining" if remaining else ""
    )


def _plural_suffix(number: int) -> str:
    return "" if number == 1 else "s"
