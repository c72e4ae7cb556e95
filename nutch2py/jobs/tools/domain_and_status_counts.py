"""Commands domainstats, protocolstats and crawlcomplete: rows by host, domain, suffix or status."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from nutch2py.conf.configuration import Configuration
from nutch2py.jobs.job_context import open_job
from nutch2py.jobs.locking.lock_scopes import make_reader_scope
from nutch2py.jobs.nutch_log_lines import JobLogger
from nutch2py.jobs.row_output.row_text import protocol_status_name
from nutch2py.mapreduce.driver import map_task_count, run_job
from nutch2py.mapreduce.input_splits import range_splits
from nutch2py.mapreduce.job_parameters import JobParameters
from nutch2py.mapreduce.table_job import GroupedValues, KeyValuePair, Pages, TableJob
from nutch2py.records.record import RecordField
from nutch2py.records.webpage import FETCHED_STATUSES, WebPage
from nutch2py.table import TableQuery
from nutch2py.url.keys import reversed_host_of_key, unreverse_host
from nutch2py.url.url_parts import DomainRules

UNFETCHED_LABEL = "UNFETCHED"
_FETCHED_LABELS = ("FETCHED", "NOT_FETCHED")
_COMMANDS = {"domains": "domainstats", "protocol": "protocolstats", "completion": "crawlcomplete"}
MAX_BUFFERED_NAMES = 50_000
"""Names that a task buffers before it emits them."""


def _suffix_of(domains: DomainRules, host: str) -> str:
    return domains.suffix_of_host(host) or host


def _top_level_of(domains: DomainRules, host: str) -> str:
    return _suffix_of(domains, host).rpartition(".")[2] if domains.suffix_of_host(host) else host


GROUPINGS: dict[str, Callable[[DomainRules, str], str]] = {
    "host": lambda _, host: host,
    "domain": lambda domains, host: domains.domain_of_host(host),
    "suffix": _suffix_of,
    "tld": _top_level_of,
}
"""Groupings, with the function from the rules of domains and a host to its group; an IP address is its own group."""


@dataclass(frozen=True, kw_only=True)
class DomainStatsParameters(JobParameters):
    """``kind``: domains, protocol or completion. ``group_by``: a key of :data:`GROUPINGS`, "" by protocol status."""

    kind: str
    group_by: str = ""


class DomainStatsJob(TableJob[DomainStatsParameters]):
    """Counts rows by name."""

    fields: frozenset[RecordField] = frozenset({WebPage.status, WebPage.protocol_status, WebPage.fetch_interval})

    def map_pages(self, pages: Pages) -> Iterator[KeyValuePair]:
        """Yield the row counts of a split by name."""
        kind, grouping = self.parameters.kind, GROUPINGS.get(self.parameters.group_by, GROUPINGS["host"])
        group_of = partial(grouping, DomainRules.from_conf(self.conf))
        counts: Counter[str] = Counter()
        for key, page in pages:
            if kind == "protocol":
                status = page.protocol_status
                counts[UNFETCHED_LABEL if status is None else protocol_status_name(status.code)] += 1
                continue
            is_fetched = page.status in FETCHED_STATUSES
            if kind == "completion":
                group = group_of(unreverse_host(reversed_host_of_key(key)))
                counts[f"{group} {'FETCHED' if is_fetched else UNFETCHED_LABEL}"] += 1
            else:
                counts[_FETCHED_LABELS[not is_fetched]] += 1
                if is_fetched:
                    counts[group_of(unreverse_host(reversed_host_of_key(key)))] += 1
            if len(counts) >= MAX_BUFFERED_NAMES:
                yield from counts.items()
                counts.clear()
        yield from counts.items()

    def reduce_groups(self, groups: GroupedValues) -> Iterator[KeyValuePair]:
        """Sum the counts."""
        for name, counts in groups:
            yield name, sum(counts)


def count_rows_by_name(conf: Configuration, title: str, kind: str, group_by: str = "") -> dict[str, int]:
    """Return row counts by name, sorted by name; ``title``: name of the job in the log."""
    with open_job(conf, make_reader_scope(_COMMANDS[kind])) as tables:
        store = tables.store
        splits = range_splits(store, TableQuery(DomainStatsJob.fields), map_task_count(conf))
        parameters = DomainStatsParameters(kind=kind, group_by=group_by)
        result = run_job(DomainStatsJob, conf, splits, parameters, title=title, expected_rows=store.row_estimate())
    return dict(sorted(result.output))


def print_counts(conf: Configuration, title: str, kind: str, group_by: str = "", limit: int = 0) -> int:
    """Print ``number<TAB>name`` lines as Nutch writes them into files; with ``limit`` the highest."""
    log = JobLogger(title)
    counts = [*count_rows_by_name(conf, title, kind, group_by).items()]
    if limit:
        counts = sorted(counts, key=lambda each: (-each[1], each[0]))[:limit]
    for name, count in counts:
        log.log_raw(f"{count}\t{name}")
    log.log_finished()
    return 0
