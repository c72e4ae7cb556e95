"""Follows redirects in the same run, up to ``http.redirect.max`` for each page."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, Protocol, TypeVar

from nutch2py.conf.configuration import Configuration
from nutch2py.fetcher.engine.feeder import QueueFeeder
from nutch2py.fetcher.fetch_state import FetchState
from nutch2py.fetcher.output.page_updater import PageUpdater
from nutch2py.fetcher.queues.fetch_queues import FetchItem
from nutch2py.fetcher.queues.queue_ids import QueueIdResolver
from nutch2py.plugins.plugin_failures import PluginError
from nutch2py.records.cells import ProtocolStatus
from nutch2py.records.webpage import Mark, WebPage
from nutch2py.records.webpage import ProtocolStatusCode as Code
from nutch2py.url.keys import reverse_url, unreverse_url

P = ParamSpec("P")
T = TypeVar("T")


class CallInTableThread(Protocol):
    """Calls a function in the thread that reads the table."""

    async def __call__(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return the result of the function."""
        ...


class RedirectFollower:
    """Adds the targets of redirects to the queues of the run.

    Args:
        conf: Configuration.
        state: Progress of the fetch.
        updater: Normalizes and filters the targets.
        lookup_row: Returns the stored row of a key, or None; None if no table is used.
        queue_ids: Assigns queues to URLs.
        feeder: Sets the queue of a target.
        call_in_table_thread: Runs a function in the thread that reads the table.
        on_reject: Receives a target with a malformed URL, and the problem.
    """

    def __init__(
        self,
        conf: Configuration,
        state: FetchState,
        updater: PageUpdater,
        lookup_row: Callable[[str], WebPage | None] | None,
        queue_ids: QueueIdResolver,
        feeder: QueueFeeder,
        call_in_table_thread: CallInTableThread,
        on_reject: Callable[[FetchItem, str], None],
    ) -> None:
        self._state, self._updater, self._lookup_row = state, updater, lookup_row
        self._queue_ids, self._feeder = queue_ids, feeder
        self._call_in_table_thread, self._on_reject = call_in_table_thread, on_reject
        self._max_redirects = conf.get_int("http.redirect.max", 0)
        self._fetch_interval = conf.get_int("db.fetch.interval.default", 2592000)

    async def follow(self, item: FetchItem, status: ProtocolStatus) -> None:
        """Add the target of a redirect to its own queue, so that this run fetches it politely."""
        if status.code not in (Code.MOVED, Code.TEMP_MOVED) or len(item.redirect_chain) >= self._max_redirects:
            return
        try:
            target = await self._call_in_table_thread(self._make_item, item, status)
        except PluginError:  # storing the page raises the same error
            return
        if target is None:
            return
        await self._queue_ids.resolve_hosts((target.url,))  # fetcher.queue.mode byIP uses the address as queue id
        if problem := await self._call_in_table_thread(self._feeder.assign_queue, target):
            self._on_reject(target, problem)
        elif skip_counter := self._feeder.limit_counter or self._state.queues.add(target):
            self._state.report.counters[skip_counter] += 1

    def _make_item(self, item: FetchItem, status: ProtocolStatus) -> FetchItem | None:
        """Return the target of a redirect as an item of the same batch.

        Returns:
            The item, or None if the target is filtered out, already in the redirect chain, already fetched in this
            batch, or part of another batch.
        """
        target = self._updater.get_redirect(item.url, status)
        if target is None or target.url is None or target.url in (item.url, *item.redirect_chain):
            return None
        key = reverse_url(target.url)
        batch = item.page.markers.get(Mark.GENERATE)
        page = self._lookup_row(key) if self._lookup_row is not None else None
        if page is None:
            page = WebPage()
            if self._lookup_row is not None:  # a new row, which no other job has created
                page.fetch_interval = self._fetch_interval
        elif batch is not None and (page.markers.get(Mark.GENERATE) or batch == page.markers.get(Mark.FETCH)):
            return None
        if batch is not None:
            page.markers[Mark.GENERATE] = batch
            page.batch_id = batch
        return FetchItem(key, unreverse_url(key), page, redirect_chain=(*item.redirect_chain, item.url))
