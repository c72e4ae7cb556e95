"""readlinkdb: prints the inlinks of a page and the most linked pages, from the inlinks of the table."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import orjson

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import UsageError
from nutch2py.jobs.job_context import open_job
from nutch2py.jobs.locking.lock_scopes import READ, make_reader_scope
from nutch2py.mapreduce.driver import map_task_count, run_job
from nutch2py.mapreduce.input_splits import range_splits
from nutch2py.mapreduce.job_parameters import POSITIVE, JobParameters
from nutch2py.mapreduce.table_job import KeyValuePair, Pages, TableJob
from nutch2py.records.record import RecordField
from nutch2py.records.webpage import WebPage
from nutch2py.support.reporting import print_output
from nutch2py.table import TableQuery
from nutch2py.url.keys import reverse_url, url_or_key

_FIELDS: frozenset[RecordField] = frozenset({WebPage.inlinks})


@dataclass(frozen=True, kw_only=True)
class TopLinkedParameters(JobParameters):
    """``top``: number of pages."""

    top: int
    ranges: ClassVar = {"top": POSITIVE}


class TopLinkedJob(TableJob[TopLinkedParameters]):
    """Selects the rows with the most inlinks of each split."""

    fields = _FIELDS
    reduce_steps = 0

    def map_pages(self, pages: Pages) -> Iterator[KeyValuePair]:
        """Yield the row keys of the most linked pages of a split, with the number of their inlinks."""
        counts = ((len(page.inlinks), key) for key, page in pages)
        best = heapq.nsmallest(self.parameters.top, ((-count, key) for count, key in counts if count))
        for count, key in best:
            yield key, -count


def print_inlinks(conf: Configuration, url: str, as_json: bool = False) -> int:
    """Print a line for each inlink of a URL, as ``fromUrl: URL anchor: TEXT``; return exit code 1 without any."""
    try:
        key = reverse_url(url)
    except ValueError as error:
        raise UsageError(f"{url} is not a URL: {error}") from error
    with open_job(conf, READ) as tables:
        page = tables.store.get(key, _FIELDS)
    links = sorted(page.inlinks.decoded_items()) if page is not None else []
    for source, anchor in links:
        if as_json:
            print_output(orjson.dumps({"fromUrl": source, "anchor": anchor}).decode())
        else:
            print_output(f"fromUrl: {source} anchor: {anchor}")
    if not links and not as_json:
        print_output(f"{url} - no link information.")
    return 0 if links else 1


def find_most_linked(conf: Configuration, limit: int) -> list[tuple[str, int]]:
    """Return (URL, number of inlinks) of the most linked pages, in descending order, then by row key."""
    with open_job(conf, make_reader_scope("readlinkdb")) as tables:
        store = tables.store
        splits = range_splits(store, TableQuery(_FIELDS), map_task_count(conf))
        result = run_job(
            TopLinkedJob,
            conf,
            splits,
            TopLinkedParameters(top=limit),
            title="LinkDbReader",
            expected_rows=store.row_estimate(),
        )
    best = sorted(result.output, key=lambda each: (-each[1], each[0]))[:limit]
    return [(url_or_key(key), count) for key, count in best]


def print_most_linked(conf: Configuration, limit: int, as_json: bool = False) -> int:
    """Print the URLs with the most inlinks as ``number<TAB>URL``."""
    for url, count in find_most_linked(conf, limit):
        print_output(orjson.dumps({"url": url, "inlinks": count}).decode() if as_json else f"{count}\t{url}")
    return 0
