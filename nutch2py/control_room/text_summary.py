"""A crawl in sentences, as one person tells another."""

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
from nutch2py.support.formatting import format_bytes, format_duration, format_number, format_percent, format_time


def summarize_crawl(
    table_stats: TableStats | None, overview: Overview | None, rounds: Sequence[Round], entries: Sequence[JobEntry]
) -> Iterator[str]:
    """Yield what a crawl is: its pages, its rounds, what is left to do. ``entries``: the newest first."""
    if table_stats is None:
        yield "How many pages there are is not known without reading all rows: nutch2py readdb -stats counts them."
    else:
        of = (
            f" of {format_number(overview.host_count)} host{_plural_suffix(overview.host_count)}"
            if overview and overview.host_count
            else ""
        )
        good = count_statuses(table_stats.status, FETCHED_STATUSES)
        yield f"{format_number(table_stats.rows)} page{_plural_suffix(table_stats.rows)}{of}, {format_percent(good, table_stats.rows)} fetched."
        if table_stats.due is not None:
            least = "At least " if table_stats.due >= MAX_DUE_COUNT else ""
            number = format_number(table_stats.due) if table_stats.due else "None"
            yield f"{least}{number} {'is' if table_stats.due <= 1 else 'are'} due now."
    if rounds:
        yield _summarize_rounds(rounds)
    if entries:
        yield summarize_last_job(entries[0])
    else:
        yield "No job is in the log yet: it begins with the next one."


def _summarize_rounds(rounds: Sequence[Round]) -> str:
    tally = sum_counters([entry for each in rounds for entry in each.entries])
    took = format_duration(rounds[-1].finish_time - rounds[0].start_time)
    came = f" ({format_bytes(tally.downloaded_bytes)})" if tally.downloaded_bytes else ""
    found = f"; {format_number(tally.link_counts[0])} links were found on them" if tally.link_counts[0] else ""
    return f"{len(rounds):,} round{_plural_suffix(len(rounds))} in {took}: {tally.format_summary()}{came}{found}."


def summarize_last_job(entry: JobEntry) -> str:
    """Return what the newest job does, or how it ended."""
    of = f" of batch {entry.batch_id}" if entry.batch_id else ""
    if entry.state == JobState.RUNNING:
        return f"Running now: {entry.job}{of}, since {format_time(entry.start_time)}{_progress_text(entry)}."
    why = f": {entry.message}" if entry.message and entry.state in UNSUCCESSFUL_STATES else ""
    how = {JobState.FINISHED: "was done", JobState.KILLED: "was killed", JobState.STOPPED: "was stopped"}
    return f"The last job, {entry.job}{of}, {how.get(entry.state, 'failed')} at {format_time(finish_time(entry))}{why}."


def _progress_text(entry: JobEntry) -> str:
    if not entry.rows:
        return ""
    of = f" of {format_number(entry.expected)}" if entry.expected else ""
    rest = remaining_ms(entry)
    return f": {format_number(entry.rows)}{of} rows, {rows_per_second(entry):,.3g} a second" + (
        f", about {format_duration(rest)} left" if rest else ""
    )


def _plural_suffix(number: int) -> str:
    return "" if number == 1 else "s"
