"""A running Chromium: usage, health checks and termination."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from nutch2py.browser import chromium
from nutch2py.browser.browser_settings import BrowserSettings
from nutch2py.browser.cdp_events import TargetCrashedEvent
from nutch2py.browser.context_traffic import ContextTraffic
from nutch2py.browser.page_scripts import INIT_SCRIPT
from nutch2py.fetcher.protocols.http_settings import HttpSettings

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, CDPSession, Page

_T = TypeVar("_T")
_WATCH_INTERVAL = 0.5  # seconds between memory checks
_EXIT_POLL_INTERVAL = 0.05  # seconds between checks whether killed processes have exited
CLOSE_TIMEOUT = 5.0  # seconds that a close operation may take
PING_TIMEOUT = 30.0
"""Seconds for a response of the browser on a busy machine."""
_MAX_TIMEOUTS_IN_ROW = 5  # consecutive timeouts, after which the browser itself may hang


class BrowserLostError(Exception):
    """The browser ended during an operation."""


class BrowserHungError(BrowserLostError):
    """The browser was given up, since a page had no document at its time limit."""


class BrowserTab:
    """A context that renders a page; ``is_broken``: not reusable, ``blank_page``: blank page for the next URL."""

    def __init__(self, browser: BrowserProcess, context: BrowserContext, traffic: ContextTraffic) -> None:
        self.browser, self.context, self.traffic = browser, context, traffic
        self.page_count = 0
        self.is_broken = False
        self.blank_page: Page | None = None

    async def open_page(self) -> Page:
        """Return a blank page; reusing one halves the cost per page."""
        page, self.blank_page = self.blank_page, None
        return page if page is not None else await self.context.new_page()


class BrowserProcess:
    """One Chromium.

    Attributes:
        page_count: Pages rendered so far.
        active_pages: Pages being rendered.
        timeouts_in_row: Consecutive pages that reached their time limit.
        is_dead: Whether it has ended or was given up.
        is_hung: Whether it or its driver hangs.
        is_retired: Whether it is to be replaced.
        is_closing: Whether it is being closed.
        memory_kills: Processes killed because of memory whose page is not notified yet.
        crash_callbacks: Receivers of the exit status of a page's process, by target id.
    """

    def __init__(self, settings: BrowserSettings, profile: chromium.BrowserProfile, browser: Any) -> None:
        self._settings, self._profile, self._browser = settings, profile, browser
        self.page_count = self.active_pages = self.timeouts_in_row = self.memory_kills = 0
        self.is_dead = self.is_hung = self.is_retired = self.is_closing = False
        self.idle_tabs: list[BrowserTab] = []
        self.crash_callbacks: dict[str, Callable[[str], None]] = {}
        self.pid = chromium.find_browser_pid(profile)
        self._services: dict[int, str] = {}
        self._end_reason = "amid a page"
        self.driver_pid = chromium.get_parent_pid(self.pid)
        self._disconnected = asyncio.get_running_loop().create_future()
        browser.on("disconnected", self._on_disconnected)
        self._watch_task = asyncio.ensure_future(self._watch_memory())

    async def watch_crashes(self) -> None:
        """Subscribe to crashes; called once, before any other method."""
        self._session: CDPSession = await self._browser.new_browser_cdp_session()
        self._session.on("Target.targetCrashed", self._on_target_crashed)
        await self._session.send("Target.setDiscoverTargets", {"discover": True, "filter": [{"type": "page"}]})
        self._list_processes()

    def _list_processes(self) -> list[int]:
        """Return the processes of the browser, and record its service processes."""
        pids = list(chromium.iter_descendants(self.pid)) if self.pid is not None else []
        for pid in pids:
            if pid not in self._services and (name := chromium.get_service_name(pid)):
                self._services[pid] = f"as its {name} process ended"
        return pids

    def _on_target_crashed(self, event: TargetCrashedEvent) -> None:
        callback = self.crash_callbacks.get(event["targetId"])
        if callback is not None:
            callback(event["status"])

    def _on_disconnected(self, *_: object) -> None:
        self.is_dead = self.is_retired = True
        if not self._disconnected.done():
            self._disconnected.set_result(None)

    async def run_unless_gone(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Run a coroutine; raise BrowserLostError if the browser ends, which Playwright does not always report."""
        task = asyncio.ensure_future(work)
        try:
            await asyncio.wait((task, self._disconnected), return_when=asyncio.FIRST_COMPLETED)
            if task.done() and not self.is_gone():  # otherwise the end of the browser may have caused its error
                return task.result()
            if task.done() and isinstance(task.exception(), BrowserHungError):
                return task.result()
            raise BrowserLostError(self._end_reason)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def is_gone(self) -> bool:
        """Return whether the browser has ended, even if its driver ended as well and cannot report it.

        A browser without its network or storage process is given up: Chromium restarts that process, but requests in
        progress fail as if their servers had, and a page being opened may wait forever.
        """
        if not self.is_dead and self.pid is not None:
            if chromium.find_browser_pid(self._profile) is None:
                self._on_disconnected()
            elif lost := next(filter(chromium.has_exited, self._services), None):
                self._end_reason = self._services[lost]
                self._on_disconnected()
        return self.is_dead

    @property
    def needs_replacement(self) -> bool:
        """Whether another browser must replace it."""
        return (
            self.is_gone()
            or self.is_retired
            or self.page_count >= self._settings.browser_max_pages
            or self.timeouts_in_row >= _MAX_TIMEOUTS_IN_ROW
        )

    async def check_responsive(self) -> bool:
        """Return whether browser and driver respond; otherwise give them up with all their pages."""
        if not self.is_gone():
            try:
                async with asyncio.timeout(PING_TIMEOUT):
                    await self._session.send(
                        "Storage.getCookies"
                    )  # queries the browser, which queries its network process
            except Exception:  # noqa: BLE001 - it hangs or has just ended
                self.give_up()
        return not self.is_dead

    def give_up(self) -> None:
        """Abandon browser and driver with all their pages: at least one of them does not respond."""
        if not self.is_gone():
            self.is_hung, self._end_reason = True, "as it hung"
            self._on_disconnected()

    async def new_context(self, http: HttpSettings, headers: dict[str, str]) -> BrowserContext:
        """Create an isolated context without downloads, permissions and service workers."""
        settings = self._settings
        context: BrowserContext = await self._browser.new_context(
            user_agent=http.choose_user_agent(),
            extra_http_headers=headers,
            viewport={"width": settings.width, "height": settings.height},
            service_workers="block",
            accept_downloads=False,
            permissions=[],
            ignore_https_errors=not http.check_certificates,
        )
        await context.add_init_script(INIT_SCRIPT)
        return context

    async def _watch_memory(self) -> None:
        """Kill processes above the memory limit of a page; retire a browser that exceeds it itself.

        The processes that render have the limit of each page together, too, since frames of several sites have a
        process each. Beyond it the largest of them is killed: a page loses a frame, or fails.
        """
        limit = self._settings.limits.max_memory
        while self.pid is not None and not self.is_gone():
            await asyncio.sleep(_WATCH_INTERVAL)
            if self.active_pages:
                renderers: dict[int, int] = {}
                for pid in self._list_processes():
                    memory = chromium.get_private_memory(pid)
                    if memory <= limit and chromium.is_renderer_process(pid):
                        renderers[pid] = memory
                    elif memory > limit:
                        self.memory_kills += chromium.is_renderer_process(pid)
                        if pid in self._services:
                            self._services[pid] = f"as it took more than {limit >> 20} MB"
                        # the browser restarts a killed service process, or is replaced
                        chromium.kill_process(pid)
                for pid in sorted(renderers, key=lambda pid: renderers[pid], reverse=True):
                    if sum(renderers.values()) <= limit * self.active_pages:
                        break
                    del renderers[pid]
                    self.memory_kills += 1
                    chromium.kill_process(pid)
                if chromium.get_private_memory(self.pid) > limit:
                    self.is_retired = True

    async def close(self) -> None:
        """Close or kill the browser with all its processes, and delete its profile directory."""
        dead = self.is_gone()
        self._on_disconnected()
        self._watch_task.cancel()
        try:
            if not dead:
                with suppress(Exception):  # it may hang
                    async with asyncio.timeout(CLOSE_TIMEOUT):
                        await self._browser.close()
        finally:
            try:
                async with asyncio.timeout(CLOSE_TIMEOUT):
                    while self.pid is not None and chromium.kill_process_group(self.pid):
                        await asyncio.sleep(_EXIT_POLL_INTERVAL)
            except TimeoutError:
                pass  # a process in uninterruptible disk wait
            finally:
                self._profile.remove()


_pending_sends: set[asyncio.Future[object]] = set()


def send_in_background(sent: Any) -> None:
    """Send a message without waiting for the result; its page may be closed by then."""
    task = asyncio.ensure_future(sent)
    _pending_sends.add(task)
    task.add_done_callback(_on_sent)


def _on_sent(task: asyncio.Future[object]) -> None:
    _pending_sends.discard(task)
    if not task.cancelled():
        task.exception()
