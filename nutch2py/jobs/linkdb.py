"""readlinkdb: who links to a page, and which pages are linked to most; the link database is in the table's inlinks."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import orjson

from nutch2py.conf import Configuration
from nutch2py.errors import UsageError
from nutch2py.jobs.beginning import begin
from nutch2py.jobs.works import READ, reader
from nutch2py.mapreduce.driver import map_tasks, run_job
from nutch2py.mapreduce.job import Pages, Pair, TableJob
from nutch2py.mapreduce.parameters import SEVERAL, JobParameters
from nutch2py.mapreduce.splits import range_splits
from nutch2py.record import Field
from nutch2py.reporting import say
from nutch2py.table import Query
from nutch2py.url.keys import name_of_key, reverse_url
from nutch2py.webpage import WebPage

_FIELDS: frozenset[Field[Any]] = frozenset({WebPage.inlinks})


@dataclass(frozen=True, kw_only=True)
class TopParameters(JobParameters):
    """``top``: how many pages are wanted."""

    top: int
    ranges: ClassVar = {"top": SEVERAL}


class TopLinkedJob(TableJob[TopParameters]):
    """Rows to those with the most inlinks of each split."""

    fields = _FIELDS
    reduce_steps = 0

    def map_pages(self, pages: Pages) -> Iterator[Pair]:
        """Yield the row keys of the most linked pages of a split, with the number of their inlinks."""
        counts = ((len(page.inlinks), key) for key, page in pages)
        best = heapq.nsmallest(self.parameters.top, ((-count, key) for count, key in counts if count))
        for count, key in best:
            yield key, -count


def print_inlinks(conf: Configuration, url: str, as_json: bool = False) -> int:
    """Print a line for each inlink of a URL, as ``fromUrl: URL anchor: TEXT``; exit code 1 when there is none."""
    try:
        key = reverse_url(url)
    except ValueError as error:
        raise UsageError(f"{url} is not a URL: {error}") from error
    with begin(conf, READ) as tables:
        page = tables.store.get(key, _FIELDS)
    links = sorted(page.inlinks.decoded()) if page is not None else []
    for source, anchor in links:
        if as_json:
            say(orjson.dumps({"fromUrl": source, "anchor": anchor}).decode())
        else:
            say(f"fromUrl: {source} anchor: {anchor}")
    if not links and not as_json:
        say(f"{url} - no link information.")
    return 0 if links else 1


def most_linked(conf: Configuration, top: int) -> list[tuple[str, int]]:
    """Return the URLs with the most inlinks, and how many those are: the most first, equal ones by row key."""
    with begin(conf, reader("readlinkdb")) as tables:
        store = tables.store
        splits = range_splits(store, Query(_FIELDS), map_tasks(conf))
        result = run_job(
            TopLinkedJob, conf, splits, TopParameters(top=top), title="LinkDbReader", expected=store.row_estimate()
        )
    best = sorted(result.output, key=lambda each: (-each[1], each[0]))[:top]
    return [(name_of_key(key), count) for key, count in best]


def print_most_linked(conf: Configuration, top: int, as_json: bool = False) -> int:
    """Print the URLs with the most inlinks as ``number<TAB>URL``."""
    for url, count in most_linked(conf, top):
        say(orjson.dumps({"url": url, "inlinks": count}).decode() if as_json else f"{count}\t{url}")
    return 0
