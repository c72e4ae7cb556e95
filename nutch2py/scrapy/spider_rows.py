"""Writes the pages of a spider as rows, as a fetch task does; the table is used in a single thread."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field, replace

from itemadapter import ItemAdapter

from nutch2py.conf.configuration import Configuration
from nutch2py.fetcher.fetch_options import FetchOptions
from nutch2py.fetcher.fetch_state import FetchedPage
from nutch2py.fetcher.fetcher import Fetcher
from nutch2py.fetcher.output.page_store import PageStore
from nutch2py.fetcher.output.page_updater import get_protocol_status
from nutch2py.fetcher.protocols.fetch_response import FetchResponse
from nutch2py.fetcher.protocols.http_settings import enabled_protocols
from nutch2py.fetcher.queues.fetch_queues import FetchItem
from nutch2py.interfaces import Outlink
from nutch2py.jobs.batches.batch_lists import BatchState
from nutch2py.jobs.fetch.page_sink import PageSink
from nutch2py.jobs.generate.generate_job import new_batch_id
from nutch2py.jobs.job_context import open_job
from nutch2py.jobs.locking.lock_scopes import FETCH_REDIRECTS
from nutch2py.parser.links.outlink_filter import OutlinkFilter
from nutch2py.records.cells import ProtocolStatus, encode_text
from nutch2py.records.webpage import Mark, MetadataKey, WebPage
from nutch2py.support.formatting import valid_utf8
from nutch2py.support.reporting import capture_reporting
from nutch2py.table import MarkCondition, TableQuery
from nutch2py.url.java_url import parse_url
from nutch2py.url.keys import reverse_url, unreverse_url
from nutch2py.url.url_length import check_length, max_url_length

_BATCH_SIZE = 100
_RESERVED_NAMES = frozenset(map(str, MetadataKey))


@dataclass(eq=False)
class ScrapedPage:
    """Results of a spider for one response.

    Attributes:
        response: The response.
        row_key: Key of the requested row, "" for the key of the URL.
        links: Anchors by target of the requests that the spider returned.
        item_values: Fields of its items.
        open_parts: Unfinished parts: items in pipelines, and the spider itself.
        status: Status of the row if it differs from that of the response.
    """

    response: FetchResponse
    row_key: str = ""
    links: dict[str, str] = field(default_factory=dict)
    item_values: dict[str, list[str]] = field(default_factory=dict)
    open_parts: int = 1
    status: ProtocolStatus | None = None


class SpiderRowWriter:
    """Writes the rows of one run of a spider.

    Holds the lock of a fetch of the batch until :meth:`close`. Raises the errors of
    :func:`nutch2py.jobs.job_context.open_job`.

    Args:
        conf: Properties of the crawl.
        batch_id: Generated batch to fetch, "" to create one.
        parse: Whether to parse the pages.
    """

    def __init__(self, conf: Configuration, batch_id: str = "", *, parse: bool = True) -> None:
        self.batch_id, self._creates_batch = batch_id or new_batch_id(), not batch_id
        self.counters: Counter[str] = Counter()
        self._conf, self._options = conf, replace(FetchOptions.from_conf(conf, 1), parse=parse)
        self._fields = Fetcher.get_required_fields(conf, self._options)
        self._interval = conf.get_int("db.fetch.interval.default", 2592000)
        self._link_rules, self._content_limit = OutlinkFilter(conf), conf.get_int("http.content.limit", 1048576)
        self._protocols, self._max_url_length = enabled_protocols(conf), max_url_length(conf)
        self._current: ScrapedPage | None = None
        self._keys: Iterator[str] | None = None
        self._resources = ExitStack()
        # locks belong to the thread that acquires them
        self._table_thread = ThreadPoolExecutor(1, "nutch2py-table", initializer=capture_reporting())
        try:
            self._table_thread.submit(self._open_tables).result()
        except BaseException:
            self.close()
            raise

    def _open_tables(self) -> None:
        mark = None if self._creates_batch else Mark.GENERATE
        tables = open_job(
            self._conf, FETCH_REDIRECTS, creates_table=self._creates_batch, batch_id=self.batch_id, mark=mark
        )
        self._store, self._lists, _, check = self._resources.enter_context(tables)
        if self._creates_batch:
            self._lists.set_state(self.batch_id, BatchState.GENERATED)
        parsing = self._options.parse
        sink = PageSink(
            self._store, self._conf, check, self._on_written, is_parsed=parsing, lists_all_rows=self._creates_batch
        )
        self._sink = self._resources.enter_context(sink)
        self._pages = PageStore(self._conf, self._options, self._add_links_and_items, lambda _: None)
        self._resources.callback(self._pages.close)

    def close(self) -> None:
        """Write the remaining rows and release the lock."""
        try:
            self._table_thread.submit(self._resources.close).result()
        finally:
            self._table_thread.shutdown()

    def write(self, page: ScrapedPage) -> Future[None]:
        """Write a page; the future raises the errors of the table."""
        return self._table_thread.submit(self._write, page)

    def next_rows(self) -> Future[list[tuple[str, str]]]:
        """Return the next (key, URL) pairs of the batch that are not fetched, at most 100; none at the end."""
        return self._table_thread.submit(self._next_rows)

    def _next_rows(self) -> list[tuple[str, str]]:
        if self._keys is None:
            self._keys = self._pending_keys()
        rows: list[tuple[str, str]] = []
        for key in self._keys:
            rows.append((key, unreverse_url(key)))
            if len(rows) >= _BATCH_SIZE:
                break
        return rows

    def _pending_keys(self) -> Iterator[str]:
        """Yield pending rows from the batch list, or from a scan for the mark, which is authoritative."""
        if self._lists.is_complete(self.batch_id):
            keys: Iterable[str] = list(self._lists.iter_row_keys(self.batch_id))
        else:
            query = TableQuery(frozenset({WebPage.markers}), mark=MarkCondition(Mark.GENERATE, self.batch_id))
            keys = [key for key, _ in self._store.scan(query)]
        for key in keys:
            page = self._store.get(key, {WebPage.markers})
            markers = {} if page is None else page.markers
            if markers.get(Mark.GENERATE) == self.batch_id and markers.get(Mark.FETCH) is None:
                yield key

    def _write(self, scraped: ScrapedPage) -> None:
        response = scraped.response
        try:
            check_length(response.url, self._max_url_length)
            key = scraped.row_key or reverse_url(response.url)
            is_enabled = parse_url(response.url).protocol in self._protocols
        except ValueError:
            self.counters["malformed_url"] += 1
            return
        if not is_enabled:  # a page can contain file: links
            self.counters["other_protocol"] += 1
            return
        page = self._store.get(key, self._fields)
        if page is None:
            page = WebPage()
            page.fetch_interval = self._interval
        batch = page.markers.get(Mark.GENERATE)
        if batch is not None and batch != self.batch_id:  # the fetch of that batch owns it
            self.counters["in_another_batch"] += 1
            return
        if batch is None:
            page.markers[Mark.GENERATE] = page.batch_id = self.batch_id
            redirect_chain = () if self._creates_batch else (response.url,)  # joins the batch like a redirect target
        else:
            redirect_chain = ()
        if 0 <= self._content_limit < len(response.content):
            response.content, response.truncated = response.content[: self._content_limit], "length"
        self._current = scraped
        item = FetchItem(key, unreverse_url(key), page, redirect_chain=redirect_chain)
        if scraped.status is not None:
            self._pages.store([FetchedPage(item, None, scraped.status)])
        else:
            self._pages.store(
                [FetchedPage(item, response, get_protocol_status(response.url, response, self._max_url_length))]
            )

    def _add_links_and_items(self, item: FetchItem) -> None:
        """Add links and items to an updated page, and pass it to the table."""
        scraped, page = self._current, item.page
        if scraped is not None and page.markers.get(Mark.PARSE) == self.batch_id:
            links = [Outlink(url, anchor) for url, anchor in scraped.links.items()]
            for url, anchor in self._link_rules.filter_outlinks(item.url, links).items():
                if url not in page.outlinks:
                    page.outlinks[url] = anchor
        if scraped is not None:
            for name, values in scraped.item_values.items():
                page.metadata[name] = encode_text(
                    "\t".join(values)[: self._content_limit if self._content_limit >= 0 else None]
                )
        self._sink(item)

    def _on_written(self, item: FetchItem) -> None:
        self.counters["rows"] += 1
        if item.plugin_error is not None:
            self.counters["plugin_errors"] += 1


def item_values(value: object) -> list[str]:
    """Return the values of an item's field as text; tabs, the separator in a cell, become blanks."""
    if value is None:
        return []
    if isinstance(value, (list, tuple, set, frozenset)):
        return [text for part in value for text in item_values(part)]
    if isinstance(value, bytes):
        text = value.decode("utf-8", "replace")
    elif isinstance(value, dict):
        text = json.dumps(value, ensure_ascii=False, default=str)
    else:
        text = str(value)
    return [valid_utf8(text).replace("\t", " ")]


def item_fields(item: object) -> Iterator[tuple[str, list[str]]]:
    """Yield name and values of an item's fields, except names reserved by the jobs."""
    for name, value in ItemAdapter(item).asdict().items():
        field_name = valid_utf8(str(name))
        if field_name and field_name not in _RESERVED_NAMES:
            yield field_name, item_values(value)
