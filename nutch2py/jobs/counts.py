"""The counts of domainstats, protocolstats and crawlcomplete: rows by host, domain, suffix or status."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from nutch2py.conf import Configuration
from nutch2py.jobs.beginning import begin
from nutch2py.jobs.job_lines import JobLines
from nutch2py.jobs.readdb_text import protocol_status_name
from nutch2py.jobs.works import reader
from nutch2py.mapreduce.driver import map_tasks, run_job
from nutch2py.mapreduce.job import Pages, Pair, TableJob
from nutch2py.mapreduce.parameters import JobParameters
from nutch2py.mapreduce.splits import range_splits
from nutch2py.record import Field
from nutch2py.table import Query
from nutch2py.url.keys import host_of_key, unreverse_host
from nutch2py.url.parts import domain_of_host, suffix_of_host
from nutch2py.webpage import CrawlStatus, WebPage

UNFETCHED = "UNFETCHED"
_FETCHED_NAMES = ("FETCHED", "NOT_FETCHED")
_COMMANDS = {"domains": "domainstats", "protocol": "protocolstats", "completion": "crawlcomplete"}
_HELD = 50_000  # names that a task holds before it gives them on
_GOOD = (CrawlStatus.FETCHED, CrawlStatus.NOTMODIFIED)


def _suffix(host: str) -> str:
    return suffix_of_host(host) or host


def _top(host: str) -> str:
    return _suffix(host).rpartition(".")[2] if suffix_of_host(host) else host


PLACES: dict[str, Callable[[str], str]] = {
    "host": lambda host: host,
    "domain": domain_of_host,
    "suffix": _suffix,
    "tld": _top,
}
"""What rows can be counted by, and how it comes from a host; an address is all of these itself."""


@dataclass(frozen=True, kw_only=True)
class CountParameters(JobParameters):
    """``kind``: domains, protocol or completion. ``place``: a key of :data:`PLACES`, "" by protocol status."""

    kind: str
    place: str = ""


class CountingJob(TableJob[CountParameters]):
    """Rows to numbers by name."""

    fields: frozenset[Field[Any]] = frozenset({WebPage.status, WebPage.protocol_status, WebPage.fetch_interval})

    def map_pages(self, pages: Pages) -> Iterator[Pair]:
        """Yield how many rows of a split have each name."""
        kind, place_of = self.parameters.kind, PLACES.get(self.parameters.place, str)
        counts: Counter[str] = Counter()
        for key, page in pages:
            if kind == "protocol":
                status = page.protocol_status
                counts[UNFETCHED if status is None else protocol_status_name(status.code)] += 1
                continue
            good = page.status in _GOOD
            if kind == "completion":
                place = place_of(unreverse_host(host_of_key(key)))
                counts[f"{place} {'FETCHED' if good else UNFETCHED}"] += 1
            else:
                counts[_FETCHED_NAMES[not good]] += 1
                if good:
                    counts[place_of(unreverse_host(host_of_key(key)))] += 1
            if len(counts) >= _HELD:
                yield from counts.items()
                counts.clear()
        yield from counts.items()

    def reduce_groups(self, groups: Iterator[tuple[str, Iterator[Any]]]) -> Iterator[Pair]:
        """Add up."""
        for name, counts in groups:
            yield name, sum(counts)


def count_rows(conf: Configuration, title: str, kind: str, place: str = "") -> dict[str, int]:
    """Return numbers of rows by name, in the order of names; ``title``: the job's name in the log."""
    with begin(conf, reader(_COMMANDS[kind])) as tables:
        store = tables.store
        splits = range_splits(store, Query(CountingJob.fields), map_tasks(conf))
        parameters = CountParameters(kind=kind, place=place)
        result = run_job(CountingJob, conf, splits, parameters, title=title, expected=store.row_estimate())
    return dict(sorted(result.output))


def print_counts(conf: Configuration, title: str, kind: str, place: str = "", top: int = 0) -> int:
    """Print ``number<TAB>name`` lines as Nutch writes them into files; with ``top`` so many, the greatest first."""
    log = JobLines(title)
    counts = [*count_rows(conf, title, kind, place).items()]
    if top:
        counts = sorted(counts, key=lambda each: (-each[1], each[0]))[:top]
    for name, count in counts:
        log.raw(f"{count}\t{name}")
    log.finished()
    return 0
