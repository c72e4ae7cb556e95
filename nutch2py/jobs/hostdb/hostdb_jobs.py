"""Jobs of the host table: import of host settings, counts of pages and links by host, and output.

Keys are reversed hosts. ``mtdt:p`` and ``mtdt:f`` count pages and fetched pages, ``mtdt:q_mt``, ``q_cd`` and ``q_mcd``
set the queue of a host (threads, crawl delay and minimum delay in ms), ``il:`` and ``ol:`` count links by host. Nutch
2.4 has the commands but writes nothing: its hostinject loses the values, its updatehostdb fails.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, ClassVar

from nutch2py.conf.configuration import Configuration
from nutch2py.conf.property_ranges import HOST_SETTING_RANGES
from nutch2py.joblog.job_recorder import JobRecorder, record_job
from nutch2py.jobs.hostdb.overview_builder import HostOverviewBuilder, save_host_overview
from nutch2py.jobs.inject.seeds import find_seed_files, require_seed_path
from nutch2py.jobs.job_context import open_job, require_crawl_table
from nutch2py.jobs.locking.lock_scopes import UPDATEHOSTDB
from nutch2py.jobs.nutch_log_lines import JobLogger
from nutch2py.jobs.row_output.row_text import format_bytes
from nutch2py.jobs.stats.page_histograms import HISTOGRAM_FIELDS, PageHistograms
from nutch2py.jobs.stats.page_kinds import PAGE_KIND_FIELDS, PageKinds
from nutch2py.mapreduce.driver import JobResult, map_task_count, run_job
from nutch2py.mapreduce.input_splits import FileSplit, range_splits, read_split_lines, split_files
from nutch2py.mapreduce.job_parameters import TIME_RANGE, JobParameters
from nutch2py.mapreduce.table_job import GroupedValues, KeyValuePair, Pages, TableJob
from nutch2py.records.cells import encode_text
from nutch2py.records.record import RecordField
from nutch2py.records.webpage import CrawlStatus, Host, WebPage
from nutch2py.support.clock import now_ms
from nutch2py.support.reporting import print_output, warn
from nutch2py.table import TableQuery, open_store
from nutch2py.url.keys import reverse_host, reversed_host_of_key, unreverse_host
from nutch2py.url.url_parts import host_of

PAGES_KEY, FETCHED_KEY = "p", "f"


@dataclass(frozen=True, kw_only=True)
class HostDbParameters(JobParameters):
    """``count_links``: also count the links between hosts; ``now``: start of the job, ms since 1970."""

    count_links: bool = False
    now: int = 0
    ranges: ClassVar = {"now": TIME_RANGE}


class HostInjectorJob(TableJob[JobParameters]):
    """Maps lines ``host or URL <TAB> name=value …`` to metadata of the host; other metadata stays."""

    reduce_steps = 0

    def map_file(self, split: FileSplit) -> Iterator[KeyValuePair]:
        """Write the hosts of a split of a file."""
        with open_store(self.conf, Host).batch() as batch:
            for line in read_split_lines(split):
                name, *fields = line.decode("utf-8", "replace").removeprefix("\ufeff").strip().split("\t")
                if not name or name.startswith("#"):
                    continue
                try:
                    host = host_of(name if "://" in name else f"http://{name}")
                except ValueError as error:
                    self.channel.log_line(f"Skipping {name}: {error}")
                    self.count("hostinject", "hosts_rejected")
                    continue
                record = Host({}, frozenset())
                for field in fields:
                    key, equals, value = field.partition("=")
                    if not equals:
                        continue
                    if problem := _find_setting_error(key.strip(), value.strip()):
                        self.channel.log_line(f"{name}: {problem}: ignored")
                        self.count("hostinject", "settings_rejected")
                        continue
                    record.metadata[key.strip()] = encode_text(value.strip())
                if batch.put(reverse_host(host), record):
                    self.count("hostinject", "hosts_injected")
                self.channel.advance()
        yield from ()


def _find_setting_error(name: str, value: str) -> str:
    """Return why a value is not valid for a setting of the fetch queue, "" if it is."""
    allowed = HOST_SETTING_RANGES.get(name)
    if allowed is None or allowed.parse_integer(value) is not None:
        return ""
    return f"{name} is {value!r:.100}, which is not {allowed}"


class _HostCounts:
    """Counts of a host: rows by status, links by host, and histograms and kinds of its pages."""

    def __init__(self, with_depth: bool = False, now: int | None = None) -> None:
        self.status: Counter[int] = Counter()
        self.retry_count = 0  # rows whose last fetch failed
        self.inlinks: Counter[str] = Counter()
        self.outlinks: Counter[str] = Counter()
        self.histograms = PageHistograms(with_depth, now)
        self.kinds = PageKinds()

    def to_json(self) -> list[Any]:
        """Return the counts as JSON types."""
        histograms = self.histograms.to_json()
        return [[*self.status.items()], self.retry_count, self.inlinks, self.outlinks, histograms, self.kinds.to_json()]

    def merge(self, counts: list[Any]) -> None:
        """Add the counts of a task."""
        status, retry_count, inlinks, outlinks, histograms, kinds = counts
        for code, count in status:
            self.status[code] += count
        self.retry_count += retry_count
        self.inlinks.update(inlinks)
        self.outlinks.update(outlinks)
        self.histograms.merge(histograms)
        self.kinds.merge(kinds)


class HostDbUpdateJob(TableJob[HostDbParameters]):
    """Maps rows to counts by host; each reducer emits its part of the overview."""

    def prepare(self) -> None:
        """Read the parameters."""
        self.counts_links = self.parameters.count_links
        self.fields = host_fields(self.counts_links)

    def map_pages(self, pages: Pages) -> Iterator[KeyValuePair]:
        """Yield the counts of each host's rows; rows of one host are adjacent."""
        for host, rows in groupby(pages, key=lambda row: reversed_host_of_key(row[0])):
            host_counts = _HostCounts(self.counts_links, self.parameters.now)
            for _, page in rows:
                host_counts.status[page.status] += 1
                host_counts.retry_count += will_be_retried(page)
                host_counts.histograms.add(page)
                host_counts.kinds.add(page)
                if self.counts_links:
                    host_counts.inlinks.update(_iter_hosts(page.inlinks))
                    host_counts.outlinks.update(_iter_hosts(page.outlinks))
            yield host, host_counts.to_json()

    def reduce_groups(self, groups: GroupedValues) -> Iterator[KeyValuePair]:
        """Write the counts of each host; settings stay, counted links are replaced."""
        part = HostOverviewBuilder(self.counts_links)
        with open_store(self.conf, Host).batch() as batch:
            for host, parts in groups:
                host_counts = _HostCounts()
                for counts in parts:
                    host_counts.merge(counts)
                record = Host({}, frozenset())
                record.metadata[PAGES_KEY] = str(host_counts.status.total()).encode()
                if fetched := host_counts.status[CrawlStatus.FETCHED]:
                    record.metadata[FETCHED_KEY] = str(fetched).encode()
                else:
                    record.metadata.pop(FETCHED_KEY)
                if self.counts_links:
                    record.inlinks = {name: str(count) for name, count in host_counts.inlinks.items()}
                    record.outlinks = {name: str(count) for name, count in host_counts.outlinks.items()}
                batch.put(host, record)
                self.count("updatehostdb", "hosts")
                part.add_host(
                    unreverse_host(host),
                    host_counts.status,
                    host_counts.retry_count,
                    host_counts.inlinks,
                    host_counts.outlinks,
                )
                part.histograms.merge(host_counts.histograms.to_json())
                part.kinds.merge(host_counts.kinds.to_json())
        yield "overview", part.to_json()


def host_fields(with_links: bool) -> frozenset[RecordField]:
    """Return the fields that updatehostdb reads; with the fetch interval rows without a status count, too."""
    return (
        HISTOGRAM_FIELDS
        | PAGE_KIND_FIELDS
        | {WebPage.fetch_time, WebPage.retries_since_fetch}
        | ({WebPage.inlinks, WebPage.outlinks, WebPage.markers} if with_links else frozenset())
    )


def will_be_retried(page: WebPage) -> bool:
    """Return whether the last fetch of a page failed, so that it is retried.

    updatedb makes such a row unfetched and counts its retries, as ``readdb -stats`` does; it never stores RETRY.
    """
    return page.status == CrawlStatus.RETRY or (page.retries_since_fetch > 0 and page.status != CrawlStatus.GONE)


def _iter_hosts(urls: Any) -> Iterator[str]:
    for url in urls:
        try:
            yield host_of(url)
        except ValueError:
            continue


def hostinject(conf: Configuration, host_dir: str) -> JobResult:
    """Import the hosts of a file or folder into the host table; return the counters (group ``hostinject``)."""
    log = JobLogger("HostInjectorJob")
    log.log(f"hostDir: {host_dir}")
    splits = split_files(find_seed_files(Path(require_seed_path(host_dir)).absolute()), map_task_count(conf))
    with record_job(JobRecorder(conf, "hostinject")):  # no entry without a crawl
        open_store(conf, Host).create()
        result = run_job(HostInjectorJob, conf, splits, title="HostInjectorJob")
    log.log(f"total number of hosts injected: {result.count('hostinject', 'hosts_injected')}")
    log.log("finished")
    return result


def updatehostdb(conf: Configuration, count_links: bool) -> JobResult:
    """Count the pages of every host into the host table, with ``count_links`` also the links between hosts."""
    log = JobLogger("HostDbUpdateJob")
    log.log_raw(f"Updating HostDb. Adding links:{str(count_links).lower()}")
    with open_job(conf, UPDATEHOSTDB) as tables:
        store = tables.store
        open_store(conf, Host).create()
        splits = range_splits(store, TableQuery(host_fields(count_links)), map_task_count(conf))
        rows = store.row_estimate()
        parameters = HostDbParameters(count_links=count_links, now=now_ms())
        result = run_job(HostDbUpdateJob, conf, splits, parameters, title="HostDbUpdateJob", expected_rows=rows)
        log.log(f"{result.count('updatehostdb', 'hosts')} hosts")
        save_host_overview(conf, count_links, [part for _, part in result.output])
        log.log_finished()
        return result


def readhostdb(conf: Configuration, host_name: str | None) -> int:
    """Print one host, or all; return exit code 1 if the host does not exist.

    Raises:
        StoreError: The crawl has neither a host table nor a table of pages.
    """
    store = open_store(conf, Host)
    if not store.exists():
        require_crawl_table(open_store(conf, WebPage))
        warn(f"there is no table {store.name} at {store.location}: run updatehostdb or hostinject first")
    if host_name is not None:
        host_key_name = host_of(host_name if "://" in host_name else f"http://{host_name}")
        host = store.get(reverse_host(host_key_name)) if store.exists() else None
        if host is None:
            print_output(f"{host_key_name} not found")
            return 1
        print_output(format_host(host_key_name, host))
        return 0
    for key, host in store.scan(TableQuery()) if store.exists() else ():
        print_output(format_host(unreverse_host(key), host))
    return 0


def format_host(name: str, host: Host) -> str:
    """Return the lines of a host: its name, then metadata, inlinks and outlinks, sorted."""
    lines = [f"host:\t{name}"]
    lines += [f"metadata {key} : \t{format_bytes(value)}" for key, value in sorted(host.metadata.decoded_items())]
    lines += [f"inlink:\t{key}\t{count}" for key, count in sorted(host.inlinks.decoded_items())]
    lines += [f"outlink:\t{key}\t{count}" for key, count in sorted(host.outlinks.decoded_items())]
    return "\n".join(lines) + "\n"
