"""A crawl in sentences, as one person tells another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nutch2py.joblog.entry import JobEntry, JobState
from nutch2py.joblog.figures import MOST_DUE, Figures
from nutch2py.joblog.overview import Overview
from nutch2py.pictures.words import full, moment, share, size, span
from nutch2py.room.drawings import FETCHED, part
from nutch2py.room.rounds import BAD, Round, end_of, left, rate, tally_of


def at_a_glance(
    figures: Figures | None, overview: Overview | None, rounds: Sequence[Round], entries: Sequence[JobEntry]
) -> Iterator[str]:
    """Yield what a crawl is: its pages, its rounds, what is left to do. ``entries``: the newest first."""
    if figures is None:
        yield "How many pages there are is not known without reading all rows: nutch2py readdb -stats counts them."
    else:
        of = f" of {full(overview.all_hosts)} host{_s(overview.all_hosts)}" if overview and overview.all_hosts else ""
        good = part(figures.status, FETCHED)
        yield f"{full(figures.rows)} page{_s(figures.rows)}{of}, {share(good, figures.rows)} fetched."
        if figures.due is not None:
            least = "At least " if figures.due >= MOST_DUE else ""
            number = full(figures.due) if figures.due else "None"
            yield f"{least}{number} {'is' if figures.due <= 1 else 'are'} due now."
    if rounds:
        yield _of_rounds(rounds)
    if entries:
        yield last_job(entries[0])
    else:
        yield "No job is in the log yet: it begins with the next one."


def _of_rounds(rounds: Sequence[Round]) -> str:
    tally = tally_of([entry for each in rounds for entry in each.entries])
    took = span(rounds[-1].ended - rounds[0].begun)
    came = f" ({size(tally.bytes)})" if tally.bytes else ""
    found = f"; {full(tally.links[0])} links were found on them" if tally.links[0] else ""
    return f"{len(rounds):,} round{_s(len(rounds))} in {took}: {tally.in_a_line()}{came}{found}."


def last_job(entry: JobEntry) -> str:
    """Return what the newest job does, or how it ended."""
    of = f" of batch {entry.batch_id}" if entry.batch_id else ""
    if entry.state == JobState.RUNNING:
        return f"Running now: {entry.job}{of}, since {moment(entry.begun)}{_progress(entry)}."
    why = f": {entry.message}" if entry.message and entry.state in BAD else ""
    how = {JobState.FINISHED: "was done", JobState.KILLED: "was killed", JobState.STOPPED: "was stopped"}
    return f"The last job, {entry.job}{of}, {how.get(entry.state, 'failed')} at {moment(end_of(entry))}{why}."


def _progress(entry: JobEntry) -> str:
    if not entry.done:
        return ""
    of = f" of {full(entry.expected)}" if entry.expected else ""
    rest = left(entry)
    return f": {full(entry.done)}{of} rows, {rate(entry):,.3g} a second" + (
        f", about {span(rest)} left" if rest else ""
    )


def _s(number: int) -> str:
    return "" if number == 1 else "s"
