"""One Chromium that runs: what it has shown, whether it is still there and answers, how it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from nutch2py.browser import chromium
from nutch2py.browser.browser_settings import BrowserSettings
from nutch2py.browser.context_traffic import ContextTraffic
from nutch2py.browser.page_scripts import INIT_SCRIPT
from nutch2py.fetcher.protocols.http_settings import HttpSettings

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, CDPSession, Page

_T = TypeVar("_T")
_WATCH_INTERVAL = 0.5  # seconds between two looks at what processes take
_EXIT_POLL_INTERVAL = 0.05  # seconds between two looks whether what was killed has ended
CLOSE_TIMEOUT = 5.0  # seconds that anything of the browser has to close
_PING_TIMEOUT = 30.0  # seconds that a browser has to say that it is there, on a machine that is busy with others
HANG_REASON = "as it hung"
_MAX_TIMEOUTS_IN_ROW = 5  # pages in a row that met their time: it may be that of the browser which hangs


class BrowserLostError(Exception):
    """The browser has ended while something of it was waited for."""


class BrowserHungError(BrowserLostError):
    """It was given up, as a page had no document at the end of its time."""


class BrowserTab:
    """A context while it shows a page. ``is_broken``: it is not to be used again. ``blank_page``: a blank page for the next."""

    def __init__(self, browser: BrowserProcess, context: BrowserContext, traffic: ContextTraffic) -> None:
        self.browser, self.context, self.traffic = browser, context, traffic
        self.page_count = 0
        self.is_broken = False
        self.blank_page: Page | None = None

    async def open_page(self) -> Page:
        """Return a blank page: the one that was left behind, if there is one, which halves what a page costs."""
        page, self.blank_page = self.blank_page, None
        return page if page is not None else await self.context.new_page()


class BrowserProcess:
    """One Chromium. ``page_count`` it has shown, ``active_pages`` ones now, ``timeouts_in_row`` in a row met their time.

    ``is_dead``: it is gone, or given up because it or its driver ``is_hung``. ``is_retired``: to be replaced. ``is_closing``: it is being
    closed. ``memory_kills``: processes that were killed because of their memory, and whose page does not know it yet.
    ``crash_callbacks``: whom to tell how the process of a page has ended, by the target that the page is.
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
        """Hear of crashes; called once, before all else."""
        self._session: CDPSession = await self._browser.new_browser_cdp_session()
        self._session.on("Target.targetCrashed", self._on_target_crashed)
        await self._session.send("Target.setDiscoverTargets", {"discover": True, "filter": [{"type": "page"}]})
        self._list_processes()

    def _list_processes(self) -> list[int]:
        """Return the processes below the browser; services are noted, as which they are not known at first."""
        found = list(chromium.iter_descendants(self.pid)) if self.pid is not None else []
        for pid in found:
            if pid not in self._services and (name := chromium.get_service_name(pid)):
                self._services[pid] = f"as its {name} process ended"
        return found

    def _on_target_crashed(self, event: dict[str, Any]) -> None:
        told = self.crash_callbacks.get(event["targetId"])
        if told is not None:
            told(event["status"])

    def _on_disconnected(self, *_: object) -> None:
        self.is_dead = self.is_retired = True
        if not self._disconnected.done():
            self._disconnected.set_result(None)

    async def run_unless_gone(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Do something with the browser; BrowserLostError when it ends amid: not every answer is then given up."""
        task = asyncio.ensure_future(work)
        try:
            await asyncio.wait((task, self._disconnected), return_when=asyncio.FIRST_COMPLETED)
            if task.done() and not self.is_gone():  # else what it asked for may have failed for that
                return task.result()
            if task.done() and isinstance(task.exception(), BrowserHungError):
                return task.result()
            raise BrowserLostError(self._end_reason)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def is_gone(self) -> bool:
        """Tell whether the browser has ended, also where nobody is left who would say so: its driver has ended, too.

        One whose network or storage process has ended is given up: Chromium starts that anew, but what was under way
        fails in its pages as if their servers had, and a page that is just being opened may wait for ever.
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
        """Whether another browser is to take its place."""
        return (
            self.is_gone()
            or self.is_retired
            or self.page_count >= self._settings.browser_max_pages
            or self.timeouts_in_row >= _MAX_TIMEOUTS_IN_ROW
        )

    async def check_responsive(self) -> bool:
        """Tell whether browser and driver answer at all; else they are given up, and with them all their pages."""
        if not self.is_gone():
            try:
                async with asyncio.timeout(_PING_TIMEOUT):
                    await self._session.send("Storage.getCookies")  # asks the browser, and that its network process
            except Exception:  # noqa: BLE001 - it hangs, or has just ended
                self.give_up()
        return not self.is_dead

    def give_up(self) -> None:
        """Have browser and driver end, and all their pages leave them: at least one of the two does not answer."""
        if not self.is_gone():
            self.is_hung, self._end_reason = True, "as it hung"
            self._on_disconnected()

    async def new_context(self, http: HttpSettings, headers: dict[str, str]) -> BrowserContext:
        """Make a context: nothing of other pages, no downloads, no permissions, no service workers."""
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
        """End processes that take more memory than a page may; replace a browser that has grown as much itself."""
        limit = self._settings.limits.max_memory
        while self.pid is not None and not self.is_gone():
            await asyncio.sleep(_WATCH_INTERVAL)
            if self.active_pages:
                for pid in self._list_processes():
                    if chromium.get_private_memory(pid) > limit:
                        self.memory_kills += chromium.is_renderer_process(pid)
                        if pid in self._services:
                            self._services[pid] = f"as it took more than {limit >> 20} MB"
                        chromium.kill_process(
                            pid
                        )  # of those that serve all pages the browser starts another, or is replaced
                if chromium.get_private_memory(self.pid) > limit:
                    self.is_retired = True

    async def close(self) -> None:
        """End the browser with all its processes, gently if it can be, and delete its folder."""
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
                pass  # one that even the kernel cannot end, for a disk that does not answer
            finally:
                self._profile.remove()


_pending_sends: set[asyncio.Future[Any]] = set()


def send_in_background(sent: Any) -> None:
    """Send a message whose answer nobody waits for; the page that it belongs to may be gone by then."""
    task = asyncio.ensure_future(sent)
    _pending_sends.add(task)
    task.add_done_callback(_on_sent)


def _on_sent(task: asyncio.Future[Any]) -> None:
    _pending_sends.discard(task)
    if not task.cancelled():
        task.exception()
