"""Statistics of a table without reading it: those that jobs keep, or those that were counted last.

HBase keeps none (docs/design.md tells why). There the last ones stand in the derived table, with the time at which the
counting began; the job log tells what has been at work since, as far as it goes back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from nutch2py.conf import Configuration
from nutch2py.errors import StoreError
from nutch2py.joblog.entry import JobState
from nutch2py.joblog.figures import Figures
from nutch2py.joblog.kept import kept_figures
from nutch2py.joblog.stored import read_entries
from nutch2py.jobs.batch_report import age_text
from nutch2py.jobs.job_lines import clock
from nutch2py.jobs.readdb_stats import StatsCollector
from nutch2py.jobs.works import COUNTING, FIGURES
from nutch2py.table import DataStore, open_store
from nutch2py.table.clock import now_ms
from nutch2py.webpage import BatchEntry, CrawlStatus, WebPage

KEPT = "kept by the jobs (-exact reads every row)"
_LOOKED_AT = 1_000  # entries of the job log, the newest
_UNSEEN = 60_000  # ms that a killed job may have lived behind its last sign of life


@dataclass(frozen=True)
class LastStats:
    """``stats`` as they were when the counting began, ``made`` (ms since 1970).

    ``since``: how many jobs of each name that may have changed them were at work since then; one that still is, or was
    killed, has a name of its own. None where the job log cannot tell, as it does not go back to the counting.
    """

    stats: StatsCollector
    made: int
    since: Mapping[str, int] | None

    def told(self, now: int) -> str:
        """Return in words where the figures come from."""
        if self.stats.kept:
            return KEPT
        age = age_text(max(0, now - self.made) // 1000)
        told = f"counted {clock(self.made / 1000)}, {age} ago"
        if self.since is None:
            return f"{told}; what has been at work since is not known (joblog.keep)"
        jobs = ", ".join(name if count == 1 else f"{count} {name}" for name, count in self.since.items())
        return f"{told}; at work since then: {jobs or 'no job that changes them'}"


def kept_stats(store: DataStore[WebPage]) -> StatsCollector | None:
    """Return the statistics that jobs keep with the table; None where they keep none, or some row cannot be read."""
    index = store.due_index()
    if not index.counts or index.trouble:
        return None
    figures = index.figures()
    return None if figures.unreadable else StatsCollector.of_figures(figures)


def last_stats(conf: Configuration, store: DataStore[WebPage]) -> LastStats:
    """Return what is known without reading a row; :class:`nutch2py.errors.StoreError` when nothing was counted yet."""
    kept = kept_stats(store)
    if kept is not None:
        return LastStats(kept, now_ms(), {})
    log = open_store(conf, BatchEntry)
    figures = kept_figures(log)
    if figures is None:
        raise StoreError(f"no figures of {store.name} were counted yet: readdb -stats without -last counts them")
    return LastStats(stats_of(figures), figures.made, _since(log, figures.made))


def _since(log: DataStore[BatchEntry], made: int) -> dict[str, int] | None:
    found: Counter[str] = Counter()
    after = True  # the counting: by the order of the log, as clocks are set, and differ
    for entry in read_entries(log, _LOOKED_AT):
        running = entry.state == JobState.RUNNING
        until = entry.seen + _UNSEEN if entry.ended is None else entry.ended
        if entry.job == COUNTING and (
            entry.begun <= made <= until if entry.figures is None else entry.figures.made == made
        ):
            after = False
        elif entry.job in FIGURES and (after or running or until >= made):
            found[f"{entry.job} ({entry.state})" if entry.ended is None else entry.job] += 1
    return None if after else dict(sorted(found.items()))


def stats_of(figures: Figures) -> StatsCollector:
    """Return what was counted, from the figures that are kept of it; statuses without a name count as 0."""
    stats = StatsCollector()
    codes = {status.label: int(status) for status in CrawlStatus}
    stats.total = figures.rows
    for name, count in figures.status.items():
        stats.status[codes.get(name, 0)] += count
    stats.retries.update({int(times): count for times, count in figures.retries.items()})
    stats.protocol.update(figures.protocol)
    stats.parse.update(figures.parse)
    if figures.score is not None:
        least, mean, greatest = (each * 1000.0 for each in figures.score)
        stats.score_min, stats.score_max = round(least), round(greatest)
        stats.score_sum = round(mean * figures.rows)
    return stats
