"""From what a spider took in to rows, as a fetch task writes them; all that touches the table is in one thread."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from itemadapter import ItemAdapter

from nutch2py.cells import ProtocolStatus, encode_text
from nutch2py.conf import Configuration
from nutch2py.contracts import Outlink
from nutch2py.fetcher.answer import Answer
from nutch2py.fetcher.fetch_options import FetchOptions
from nutch2py.fetcher.fetch_state import Finished
from nutch2py.fetcher.fetcher import Fetcher
from nutch2py.fetcher.http_settings import protocols
from nutch2py.fetcher.outcome import protocol_status
from nutch2py.fetcher.page_store import PageStore
from nutch2py.fetcher.queues import FetchItem
from nutch2py.jobs.batchlist import State
from nutch2py.jobs.beginning import begin
from nutch2py.jobs.generate import new_batch_id
from nutch2py.jobs.page_sink import PageSink
from nutch2py.jobs.works import FETCH_REDIRECTS
from nutch2py.parser.link_rules import LinkRules
from nutch2py.reporting import adopt, reporter
from nutch2py.table import MarkCondition, Query
from nutch2py.url.javaurl import parse_url
from nutch2py.url.keys import reverse_url, unreverse_url
from nutch2py.url.length import check_length, limit_of
from nutch2py.webpage import Mark, MetadataKey, WebPage

_ROWS = 100
_OURS = frozenset(map(str, MetadataKey))


@dataclass(eq=False)
class Taken:
    """What a spider made of one answer.

    ``key``: of the row that was asked for, "" for that of the URL. ``links``: target -> anchor of the requests that it
    gave back. ``values``: fields of its items. ``open``: items that pipelines still have, and the spider itself.
    ``status``: what the row is to say, where that is not what the answer says.
    """

    answer: Answer
    key: str = ""
    links: dict[str, str] = field(default_factory=dict)
    values: dict[str, list[str]] = field(default_factory=dict)
    open: int = 1
    status: ProtocolStatus | None = None


class SpiderRows:
    """The rows of one run of a spider. ``batch_id``: a generated batch to fetch, "" to make one of what comes.

    Holds the lock of a fetch of that batch until :meth:`close`. Raises what :func:`nutch2py.jobs.beginning.begin` does.
    """

    def __init__(self, conf: Configuration, batch_id: str = "", *, parse: bool = True) -> None:
        self.batch_id, self._made = batch_id or new_batch_id(), not batch_id
        self.counters: Counter[str] = Counter()
        self._conf, self._options = conf, replace(FetchOptions.of(conf, 1), parse=parse)
        self._fields = Fetcher.fields(conf, self._options)
        self._interval = conf.get_int("db.fetch.interval.default", 2592000)
        self._rules, self._limit = LinkRules(conf), conf.get_int("http.content.limit", 1048576)
        self._protocols, self._longest = protocols(conf), limit_of(conf)
        self._current: Taken | None = None
        self._keys: Iterator[str] | None = None
        self._open = ExitStack()
        # a lock is held by who takes it: that is the thread, too
        self._io = ThreadPoolExecutor(1, "nutch2py-table", initializer=adopt, initargs=(reporter(),))
        try:
            self._io.submit(self._begin).result()
        except BaseException:
            self.close()
            raise

    def _begin(self) -> None:
        mark = None if self._made else Mark.GENERATE
        tables = begin(self._conf, FETCH_REDIRECTS, makes=self._made, batch_id=self.batch_id, mark=mark)
        self._store, self._lists, _, check = self._open.enter_context(tables)
        if self._made:
            self._lists.set_state(self.batch_id, State.GENERATED)
        parsing = self._options.parse
        sink = PageSink(self._store, self._conf, check, self._written, parsing=parsing, all_join=self._made)
        self._sink = self._open.enter_context(sink)
        lookup = partial(self._store.get, fields=self._fields)
        self._pages = PageStore(self._conf, self._options, self._take_in, lookup, lambda _: None)
        self._open.callback(self._pages.close)

    def close(self) -> None:
        """Write what is left, and give the lock back."""
        try:
            self._io.submit(self._open.close).result()
        finally:
            self._io.shutdown()

    def write(self, taken: Taken) -> Future[None]:
        """Write what became of an answer; the future raises what the table does."""
        return self._io.submit(self._write, taken)

    def waiting(self) -> Future[list[tuple[str, str]]]:
        """Return up to a hundred (key, URL) of the batch that are not fetched yet, the next each time; none: all."""
        return self._io.submit(self._next)

    def _next(self) -> list[tuple[str, str]]:
        if self._keys is None:
            self._keys = self._keys_of_batch()
        found: list[tuple[str, str]] = []
        for key in self._keys:
            found.append((key, unreverse_url(key)))
            if len(found) >= _ROWS:
                break
        return found

    def _keys_of_batch(self) -> Iterator[str]:
        """Yield the rows that wait: by the batch's list, or by a scan for the mark, which is the truth."""
        if self._lists.complete(self.batch_id):
            keys: Iterable[str] = list(self._lists.row_keys(self.batch_id))
        else:
            query = Query(frozenset({WebPage.markers}), mark=MarkCondition(Mark.GENERATE, self.batch_id))
            keys = [key for key, _ in self._store.scan(query)]
        for key in keys:
            page = self._store.get(key, {WebPage.markers})
            markers = {} if page is None else page.markers
            if markers.get(Mark.GENERATE) == self.batch_id and markers.get(Mark.FETCH) is None:
                yield key

    def _write(self, taken: Taken) -> None:
        answer = taken.answer
        try:
            check_length(answer.url, self._longest)
            key = taken.key or reverse_url(answer.url)
            spoken = parse_url(answer.url).protocol in self._protocols
        except ValueError:
            self.counters["malformed_url"] += 1
            return
        if not spoken:  # a page can hold links to file:
            self.counters["other_protocol"] += 1
            return
        page = self._store.get(key, self._fields)
        if page is None:
            page = WebPage()
            page.fetch_interval = self._interval
        batch = page.markers.get(Mark.GENERATE)
        if batch is not None and batch != self.batch_id:  # whoever fetches that one has it
            self.counters["in_another_batch"] += 1
            return
        if batch is None:
            page.markers[Mark.GENERATE] = page.batch_id = self.batch_id
            taken_in = () if self._made else (answer.url,)  # joins the batch, as the target of a redirect does
        else:
            taken_in = ()
        if 0 <= self._limit < len(answer.content):
            answer.content, answer.truncated = answer.content[: self._limit], "length"
        self._current = taken
        item = FetchItem(key, unreverse_url(key), page, chain=taken_in)
        if taken.status is not None:
            self._pages.put([Finished(item, None, taken.status)])
        else:
            self._pages.put([Finished(item, answer, protocol_status(answer.url, answer))])

    def _take_in(self, item: FetchItem) -> None:
        """Add links and items to a page that is filled in, and give it to the table."""
        taken, page = self._current, item.page
        if taken is not None and page.markers.get(Mark.PARSE) == self.batch_id:
            links = [Outlink(url, anchor) for url, anchor in taken.links.items()]
            for url, anchor in self._rules.kept(item.url, links).items():
                if url not in page.outlinks:
                    page.outlinks[url] = anchor
        if taken is not None:
            for name, values in taken.values.items():
                page.metadata[name] = encode_text("\t".join(values)[: self._limit if self._limit >= 0 else None])
        self._sink(item)

    def _written(self, item: FetchItem) -> None:
        self.counters["rows"] += 1
        if item.plugin_error is not None:
            self.counters["plugin_errors"] += 1


def values_of(value: Any) -> list[str]:
    """Return the values of an item's field as text; tabs, which part values in a cell, become blanks."""
    if value is None:
        return []
    if isinstance(value, (list, tuple, set, frozenset)):
        return [text for part in value for text in values_of(part)]
    if isinstance(value, bytes):
        text = value.decode("utf-8", "replace")
    elif isinstance(value, dict):
        text = json.dumps(value, ensure_ascii=False, default=str)
    else:
        text = str(value)
    return [_clean(text).replace("\t", " ")]


def fields_of(item: Any) -> Iterator[tuple[str, list[str]]]:
    """Yield name and values of the fields of an item, but those whose names are the jobs' own."""
    for name, value in ItemAdapter(item).asdict().items():
        field_name = _clean(str(name))
        if field_name and field_name not in _OURS:
            yield field_name, values_of(value)


def _clean(text: str) -> str:
    """Return text that has a form in UTF-8: half of a surrogate pair has none."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
