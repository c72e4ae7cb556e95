"""What each page of the control room shows, read anew for each request, and never by a scan of the table."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, NamedTuple

from nutch2py.cells import decode_text
from nutch2py.crawl_reader import CrawlReader
from nutch2py.errors import InputError
from nutch2py.joblog.entry import JobEntry, JobState
from nutch2py.joblog.overview import Overview
from nutch2py.jobs.hostdb import FETCHED, PAGES
from nutch2py.pictures.picture import Picture
from nutch2py.pictures.words import full
from nutch2py.record import Field
from nutch2py.rest.children import Children
from nutch2py.room import drawings, page_words
from nutch2py.room.answers import Look
from nutch2py.room.report import State
from nutch2py.room.rounds import end_of, left, rate, rounds_of
from nutch2py.room.sentences import at_a_glance
from nutch2py.url.keys import reverse_host, reverse_url
from nutch2py.webpage import Host, WebPage

ENTRIES = 500
"""Newest entries of the log that pages are drawn from."""
LISTED = 50
"""Lines of a list; a link leads to the next."""
_LINKS = 100
_TOP = 20
_OF_PAGE: frozenset[Field[Any]] = frozenset({WebPage.status, WebPage.fetch_time, WebPage.score, WebPage.title})
_OF_HOST: frozenset[Field[Any]] = frozenset({Host.metadata})


class NotThereError(Exception):
    """There is no such job, host or page; ``str(error)`` is said."""


class Running(NamedTuple):
    """A job at work: its entry, rows a second, ms that it still needs (None: nothing tells), and its share of 1."""

    entry: JobEntry
    rate: float
    left: int | None
    share: float | None


def _at_work(entries: list[JobEntry]) -> list[Running]:
    found = []
    for entry in entries:
        if entry.state == JobState.RUNNING:
            share = min(entry.done / entry.expected, 1.0) if entry.expected else None
            found.append(Running(entry, rate(entry), left(entry), share))
    return found


class Looks:
    """Reads what a page shows. ``reader`` gives a crawl to read from; ``children``: jobs that were begun here."""

    def __init__(self, reader: Callable[[], CrawlReader], children: Children) -> None:
        self._reader, self._children = reader, children
        self._kept: tuple[int | None, list[Picture], Picture] | None = None

    def crawl(self, _: dict[str, str]) -> Look:
        """Show the crawl at a glance."""
        with self._reader() as crawl:
            state = State.of(crawl, ENTRIES)
            batches = crawl.batches(count=False)
        rounds = state.rounds
        values = {
            "crawl": state.name,
            "sentences": [*at_a_glance(state.figures, state.overview, rounds, state.entries)],
            "running": _at_work(state.entries),
            "children": [child for child in self._children.all() if child.state.alive],
            "jobs": state.entries[:8],
            "batches": batches[-10:][::-1],
            "all_batches": len(batches),
            "left_out": state.left_out,
            "pictures": [*state.pictures()],
        }
        return Look("crawl.html", f"Crawl {state.name}".rstrip(), values)

    def jobs(self, asked: dict[str, str]) -> Look:
        """List jobs, the newest first."""
        before = asked.get("before", "")
        with self._reader() as crawl:
            entries = crawl.jobs(LISTED + 1, before or None)
        shown = entries[:LISTED]
        after = shown[-1].id if len(entries) > LISTED else ""
        values = {"jobs": shown, "running": [] if before else _at_work(shown), "after": after, "before": before}
        return Look("jobs.html", "Jobs", values)

    def job(self, asked: dict[str, str]) -> Look:
        """Show one job."""
        with self._reader() as crawl:
            entry = crawl.job(asked.get("id", ""))
        if entry is None:
            raise NotThereError("The log has no such job, or has it no more (joblog.keep).")
        values = {"job": entry, "running": _at_work([entry]), "took": end_of(entry) - entry.begun}
        return Look("job.html", f"{entry.job} {entry.batch_id}".rstrip(), values)

    def rounds(self, _: dict[str, str]) -> Look:
        """Show the rounds."""
        with self._reader() as crawl:
            entries = crawl.jobs(ENTRIES)
        rounds = rounds_of(entries)
        values = {"wide": drawings.work(entries[:200]), "rounds": rounds[-100:][::-1], "left_out": len(rounds) > 100}
        return Look("rounds.html", "Rounds", values)

    def hosts(self, asked: dict[str, str]) -> Look:
        """Show the hosts with the most pages, what links between them, and the host table by name."""
        start = asked.get("from", "")
        with self._reader() as crawl:
            overview = crawl.overview()
            first = reverse_host(start) if start else ""
            listed = [
                (name, _settings(host)) for name, host in islice(crawl.hosts(fields=_OF_HOST, start=first), LISTED + 1)
            ]
        pictures, links = self._drawn(overview)
        values = {
            "made": None if overview is None else overview.made,
            "top": [] if overview is None else overview.hosts[:_TOP],
            "listed": listed[:LISTED],
            "after": listed[LISTED][0] if len(listed) > LISTED else "",
            "start": start,
            "pictures": pictures,
            "wide": links,
        }
        return Look("hosts.html", "Hosts", values)

    def _drawn(self, overview: Overview | None) -> tuple[list[Picture], Picture]:
        """Return the pictures of an overview, drawn once: to place 200 hosts takes a quarter of a second."""
        kept, made = self._kept, None if overview is None else overview.made
        if kept is None or kept[0] != made:
            pictures = [drawings.hosts(overview), *drawings.spreads(overview)]
            self._kept = kept = (made, pictures, drawings.links(overview))
        return kept[1], kept[2]

    def host(self, asked: dict[str, str]) -> Look:
        """Show a host: what is counted and set of it, and its pages."""
        name = asked.get("name", "").strip()
        if not name:
            raise InputError("Name a host.")
        with self._reader() as crawl:
            row = crawl.host(name, _OF_HOST)
            overview = crawl.overview()
            pages = [*_pages(crawl, name, asked.get("from", ""))]
        seen = None if overview is None else next((each for each in overview.hosts if each.host == name), None)
        if row is None and seen is None and not pages:
            raise NotThereError("The crawl has no page of this host, and no row for it.")
        conf = crawl.conf
        links = [] if overview is None else [each for each in overview.edges if name in (each.source, each.target)]
        values = {
            "name": name,
            "settings": {} if row is None else _settings(row),
            "seen": seen,
            "pages": pages[:LISTED],
            "after": pages[LISTED][0] if len(pages) > LISTED else "",
            "start": asked.get("from", ""),
            "delay": conf.get_float("fetcher.server.delay", 5.0),
            "own_settings": conf.get_bool("fetcher.queue.use.host.settings", False),
            "links": links[:LISTED],
        }
        return Look("host.html", name, values)

    def page(self, asked: dict[str, str]) -> Look:
        """Show a page's own row in words; without a URL, a place to type one."""
        url = asked.get("url", "").strip()
        if not url:
            return Look("which_page.html", "Page", {})
        with self._reader() as crawl:
            page = crawl.page(url, page_words.FIELDS)
            if page is None:
                raise NotThereError(f"The crawl has no row for {url}: no page that was read links to it.")
            logged = {entry.batch_id: entry for entry in crawl.jobs(ENTRIES) if entry.batch_id}
        inlinks, outlinks = dict(page.inlinks.decoded()), dict(page.outlinks.decoded())
        now = int(time.time() * 1000)
        values = {
            "url": url,
            "key": reverse_url(url),
            "page": page,
            "status": page_words.status_words(page.status),
            "steps": [*page_words.steps(page)],
            "logged": logged,
            "inlinks": sorted(inlinks.items())[:_LINKS],
            "all_inlinks": len(inlinks),
            "outlinks": sorted(outlinks.items())[:_LINKS],
            "all_outlinks": len(outlinks),
            "due": [*page_words.due(url, page, crawl.conf, now)],
        }
        return Look("page.html", page.title or url, values)


def _pages(crawl: CrawlReader, host: str, start: str) -> Iterator[tuple[str, WebPage, str]]:
    """Yield URL, row and status in words of pages of a host, from the URL ``start`` on: one more than is shown."""
    prefix = f"{reverse_host(host)}:"
    try:
        first = reverse_url(start) if start else prefix
    except ValueError as error:
        raise InputError(f"{start} is not a URL: {error}") from error
    rows = crawl.pages(fields=_OF_PAGE, start=max(first, prefix), stop=f"{prefix[:-1]};")
    for url, row in islice(rows, LISTED + 1):
        yield url, row, page_words.status_words(row.status)


def _settings(host: Host) -> dict[str, str]:
    """Return what a row of the host table counts and sets, by name."""
    cells = {name: decode_text(cell) for name, cell in host.metadata.items()}
    known = {name: cells[name] for name in (PAGES, FETCHED, "q_mt", "q_cd", "q_mcd") if name in cells}
    return {name: full(int(value)) if value.isdecimal() else value for name, value in known.items()}
