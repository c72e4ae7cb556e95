"""The host table: settings of hosts from files, counts of their pages and links from the crawl, and a look at it.

Keys are reversed hosts. ``mtdt:p`` and ``mtdt:f`` count pages and fetched pages, ``mtdt:q_mt``, ``q_cd`` and ``q_mcd``
set a host's queue (threads, crawl delay and least delay in ms), ``il:`` and ``ol:`` count links by host. Nutch 2.4 has
the commands but writes nothing with them: its hostinject loses what it sets, its updatehostdb dies.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from nutch2py.cells import encode_text
from nutch2py.conf import Configuration
from nutch2py.joblog.ledger import Ledger, keeping
from nutch2py.jobs.beginning import begin
from nutch2py.jobs.job_lines import JobLines
from nutch2py.jobs.overview import OverviewPart, keep_overview
from nutch2py.jobs.readdb_text import bytes_text
from nutch2py.jobs.seeds import named_seeds, seed_files
from nutch2py.jobs.spreads import FIELDS, Spreads
from nutch2py.jobs.works import UPDATEHOSTDB
from nutch2py.mapreduce.driver import JobResult, map_tasks, run_job
from nutch2py.mapreduce.job import Pages, Pair, TableJob
from nutch2py.mapreduce.parameters import JobParameters
from nutch2py.mapreduce.splits import FileSplit, range_splits, read_lines, split_files
from nutch2py.reporting import say
from nutch2py.table import Query, open_store
from nutch2py.url.keys import host_of_key, reverse_host, unreverse_host
from nutch2py.url.parts import host_of
from nutch2py.webpage import CrawlStatus, Host, WebPage

PAGES, FETCHED = "p", "f"


@dataclass(frozen=True, kw_only=True)
class HostDbParameters(JobParameters):
    """``links``: count the links between hosts, too."""

    links: bool = False


class HostInjectorJob(TableJob[JobParameters]):
    """Lines ``host or URL <TAB> name=value …`` to metadata of the host; what the line does not name stays."""

    reduce_steps = 0

    def map_file(self, split: FileSplit) -> Iterator[Pair]:
        """Write the hosts of a piece of a file."""
        with open_store(self.conf, Host).batch() as batch:
            for line in read_lines(split):
                name, *fields = line.decode("utf-8", "replace").removeprefix("\ufeff").strip().split("\t")
                if not name or name.startswith("#"):
                    continue
                try:
                    host = host_of(name if "://" in name else f"http://{name}")
                except ValueError as error:
                    self.channel.line(f"Skipping {name}: {error}")
                    self.count("hostinject", "hosts_rejected")
                    continue
                record = Host({}, frozenset())
                for field in fields:
                    key, equals, value = field.partition("=")
                    if equals:
                        record.metadata[key.strip()] = encode_text(value.strip())
                if batch.put(reverse_host(host), record):
                    self.count("hostinject", "hosts_injected")
                self.channel.advance()
        yield from ()


class _Seen:
    """What is seen of a host: its rows by status, its links by host, and how its pages' numbers spread."""

    def __init__(self, depth: bool = False) -> None:
        self.status: Counter[int] = Counter()
        self.inlinks: Counter[str] = Counter()
        self.outlinks: Counter[str] = Counter()
        self.spreads = Spreads(depth)

    def to_json(self) -> list[Any]:
        """Return it in a form that JSON carries."""
        return [[*self.status.items()], self.inlinks, self.outlinks, self.spreads.to_json()]

    def merge(self, told: list[Any]) -> None:
        """Add what a task has seen."""
        status, inlinks, outlinks, spreads = told
        for code, count in status:
            self.status[code] += count
        self.inlinks.update(inlinks)
        self.outlinks.update(outlinks)
        self.spreads.merge(spreads)


class HostDbUpdateJob(TableJob[HostDbParameters]):
    """Rows, by host, to counts; each reducer puts out its part of the overview."""

    def prepare(self) -> None:
        """Read whether links are counted."""
        self.links = self.parameters.links
        self.fields = host_fields(self.links)

    def map_pages(self, pages: Pages) -> Iterator[Pair]:
        """Yield the counts of each host's rows; rows of one host lie side by side."""
        for host, rows in groupby(pages, key=lambda row: host_of_key(row[0])):
            seen = _Seen(self.links)
            for _, page in rows:
                seen.status[page.status] += 1
                seen.spreads.add(page)
                if self.links:
                    seen.inlinks.update(_hosts(page.inlinks))
                    seen.outlinks.update(_hosts(page.outlinks))
            yield host, seen.to_json()

    def reduce_groups(self, groups: Iterator[tuple[str, Iterator[Any]]]) -> Iterator[Pair]:
        """Write the counts of each host; settings stay, links are replaced when they are counted."""
        part = OverviewPart(self.links)
        with open_store(self.conf, Host).batch() as batch:
            for host, parts in groups:
                seen = _Seen()
                for told in parts:
                    seen.merge(told)
                record = Host({}, frozenset())
                record.metadata[PAGES] = str(seen.status.total()).encode()
                if fetched := seen.status[CrawlStatus.FETCHED]:
                    record.metadata[FETCHED] = str(fetched).encode()
                else:
                    record.metadata.pop(FETCHED)
                if self.links:
                    record.inlinks = {name: str(count) for name, count in seen.inlinks.items()}
                    record.outlinks = {name: str(count) for name, count in seen.outlinks.items()}
                batch.put(host, record)
                self.count("updatehostdb", "hosts")
                part.add(unreverse_host(host), seen.status, seen.inlinks, seen.outlinks)
                part.spreads.merge(seen.spreads.to_json())
        yield "overview", part.to_json()


def host_fields(links: bool) -> frozenset[Any]:
    """Return what updatehostdb reads of a row; the fetch interval, so that rows without a status count, too."""
    return FIELDS | {WebPage.status} | ({WebPage.inlinks, WebPage.outlinks, WebPage.markers} if links else frozenset())


def _hosts(urls: Any) -> Iterator[str]:
    for url in urls:
        try:
            yield host_of(url)
        except ValueError:
            continue


def hostinject(conf: Configuration, host_dir: str) -> JobResult:
    """Put the hosts of a file or folder into the host table; return the counters (group ``hostinject``)."""
    log = JobLines("HostInjectorJob")
    log.line(f"hostDir: {host_dir}")
    splits = split_files(seed_files(Path(named_seeds(host_dir)).absolute()), map_tasks(conf))
    with keeping(Ledger(conf, "hostinject")):  # no entry before there is a crawl
        open_store(conf, Host).create()
        result = run_job(HostInjectorJob, conf, splits, title="HostInjectorJob")
    log.line(f"total number of hosts injected: {result.count('hostinject', 'hosts_injected')}")
    log.line("finished")
    return result


def updatehostdb(conf: Configuration, links: bool) -> JobResult:
    """Count the pages of every host into the host table, with ``links`` also the links between hosts."""
    log = JobLines("HostDbUpdateJob")
    log.raw(f"Updating HostDb. Adding links:{str(links).lower()}")
    with begin(conf, UPDATEHOSTDB) as tables:
        store = tables.store
        open_store(conf, Host).create()
        splits = range_splits(store, Query(host_fields(links)), map_tasks(conf))
        rows = store.row_estimate()
        asked = HostDbParameters(links=links)
        result = run_job(HostDbUpdateJob, conf, splits, asked, title="HostDbUpdateJob", expected=rows)
        log.line(f"{result.count('updatehostdb', 'hosts')} hosts")
        keep_overview(conf, links, [told for _, told in result.output])
        log.finished()
        return result


def readhostdb(conf: Configuration, name: str | None) -> int:
    """Print one host, or all; exit code 1 when the one is not there."""
    store = open_store(conf, Host)
    if name is not None:
        wanted = host_of(name if "://" in name else f"http://{name}")
        host = store.get(reverse_host(wanted)) if store.exists() else None
        if host is None:
            say(f"{wanted} not found")
            return 1
        say(host_text(wanted, host))
        return 0
    for key, host in store.scan(Query()) if store.exists() else ():
        say(host_text(unreverse_host(key), host))
    return 0


def host_text(name: str, host: Host) -> str:
    """Return the lines of a host: its name, then metadata, inlinks and outlinks, sorted."""
    lines = [f"host:\t{name}"]
    lines += [f"metadata {key} : \t{bytes_text(value)}" for key, value in sorted(host.metadata.decoded())]
    lines += [f"inlink:\t{key}\t{count}" for key, count in sorted(host.inlinks.decoded())]
    lines += [f"outlink:\t{key}\t{count}" for key, count in sorted(host.outlinks.decoded())]
    return "\n".join(lines) + "\n"
