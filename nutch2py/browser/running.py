"""One Chromium that runs: what it has shown, whether it is still there and answers, how it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from nutch2py.browser import chromium
from nutch2py.browser.lane import Lane
from nutch2py.browser.scripts import BEFORE_ALL
from nutch2py.browser.settings import BrowserSettings
from nutch2py.fetcher.http_settings import HttpSettings

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, CDPSession, Page

_T = TypeVar("_T")
_LOOK = 0.5  # seconds between two looks at what processes take
_GONE = 0.05  # seconds between two looks whether what was killed has ended
CLOSE = 5.0  # seconds that anything of the browser has to close
_ANSWER = 30.0  # seconds that a browser has to say that it is there, on a machine that is busy with others
HUNG = "as it hung"
_MOST_LATE = 5  # pages in a row that met their time: it may be that of the browser which hangs


class BrowserLostError(Exception):
    """The browser has ended while something of it was waited for."""


class BrowserHungError(BrowserLostError):
    """It was given up, as a page had no document at the end of its time."""


class Tab:
    """A context while it shows a page. ``spoiled``: it is not to be used again. ``kept``: a blank page for the next."""

    def __init__(self, running: Running, context: BrowserContext, lane: Lane) -> None:
        self.running, self.context, self.lane = running, context, lane
        self.pages = 0
        self.spoiled = False
        self.kept: Page | None = None

    async def page(self) -> Page:
        """Return a blank page: the one that was left behind, if there is one, which halves what a page costs."""
        page, self.kept = self.kept, None
        return page if page is not None else await self.context.new_page()


class Running:
    """One Chromium. ``pages`` it has shown, ``active`` ones now, ``late`` in a row met their time.

    ``dead``: it is gone, or given up because it or its driver ``hung``. ``old``: to be replaced. ``ended``: it is being
    closed. ``overgrown``: processes that were killed because of their memory, and whose page does not know it yet.
    ``on_crash``: whom to tell how the process of a page has ended, by the target that the page is.
    """

    def __init__(self, settings: BrowserSettings, home: chromium.Home, browser: Any) -> None:
        self._settings, self._home, self._browser = settings, home, browser
        self.pages = self.active = self.late = self.overgrown = 0
        self.dead = self.hung = self.old = self.ended = False
        self.idle: list[Tab] = []
        self.on_crash: dict[str, Callable[[str], None]] = {}
        self.pid = chromium.browser_process(home)
        self._services: dict[int, str] = {}
        self._why = "amid a page"
        self.driver = chromium.parent(self.pid)
        self._end = asyncio.get_running_loop().create_future()
        browser.on("disconnected", self._on_end)
        self._watcher = asyncio.ensure_future(self._watch())

    async def listen(self) -> None:
        """Hear of crashes; called once, before all else."""
        self._session: CDPSession = await self._browser.new_browser_cdp_session()
        self._session.on("Target.targetCrashed", self._tell)
        await self._session.send("Target.setDiscoverTargets", {"discover": True, "filter": [{"type": "page"}]})
        self._processes()

    def _processes(self) -> list[int]:
        """Return the processes below the browser; services are noted, as which they are not known at first."""
        found = list(chromium.family(self.pid)) if self.pid is not None else []
        for pid in found:
            if pid not in self._services and (name := chromium.service(pid)):
                self._services[pid] = f"as its {name} process ended"
        return found

    def _tell(self, event: dict[str, Any]) -> None:
        told = self.on_crash.get(event["targetId"])
        if told is not None:
            told(event["status"])

    def _on_end(self, *_: object) -> None:
        self.dead = self.old = True
        if not self._end.done():
            self._end.set_result(None)

    async def unless_gone(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Do something with the browser; BrowserLostError when it ends amid: not every answer is then given up."""
        task = asyncio.ensure_future(work)
        try:
            await asyncio.wait((task, self._end), return_when=asyncio.FIRST_COMPLETED)
            if task.done() and not self.gone():  # else what it asked for may have failed for that
                return task.result()
            if task.done() and isinstance(task.exception(), BrowserHungError):
                return task.result()
            raise BrowserLostError(self._why)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def gone(self) -> bool:
        """Tell whether the browser has ended, also where nobody is left who would say so: its driver has ended, too.

        One whose network or storage process has ended is given up: Chromium starts that anew, but what was under way
        fails in its pages as if their servers had, and a page that is just being opened may wait for ever.
        """
        if not self.dead and self.pid is not None:
            if chromium.browser_process(self._home) is None:
                self._on_end()
            elif lost := next(filter(chromium.ended, self._services), None):
                self._why = self._services[lost]
                self._on_end()
        return self.dead

    @property
    def worn(self) -> bool:
        """Whether another browser is to take its place."""
        return self.gone() or self.old or self.pages >= self._settings.restart or self.late >= _MOST_LATE

    async def answers(self) -> bool:
        """Tell whether browser and driver answer at all; else they are given up, and with them all their pages."""
        if not self.gone():
            try:
                async with asyncio.timeout(_ANSWER):
                    await self._session.send("Storage.getCookies")  # asks the browser, and that its network process
            except Exception:  # noqa: BLE001 - it hangs, or has just ended
                self.give_up()
        return not self.dead

    def give_up(self) -> None:
        """Have browser and driver end, and all their pages leave them: at least one of the two does not answer."""
        if not self.gone():
            self.hung, self._why = True, "as it hung"
            self._on_end()

    async def context(self, http: HttpSettings, headers: dict[str, str]) -> BrowserContext:
        """Make a context: nothing of other pages, no downloads, no permissions, no service workers."""
        settings = self._settings
        context: BrowserContext = await self._browser.new_context(
            user_agent=http.user_agent(),
            extra_http_headers=headers,
            viewport={"width": settings.width, "height": settings.height},
            service_workers="block",
            accept_downloads=False,
            permissions=[],
            ignore_https_errors=not http.check_certificates,
        )
        await context.add_init_script(BEFORE_ALL)
        return context

    async def _watch(self) -> None:
        """End processes that take more memory than a page may; replace a browser that has grown as much itself."""
        limit = self._settings.limits.memory
        while self.pid is not None and not self.gone():
            await asyncio.sleep(_LOOK)
            if self.active:
                for pid in self._processes():
                    if chromium.memory(pid) > limit:
                        self.overgrown += chromium.shows_pages(pid)
                        if pid in self._services:
                            self._services[pid] = f"as it took more than {limit >> 20} MB"
                        chromium.kill(pid)  # of those that serve all pages the browser starts another, or is replaced
                if chromium.memory(self.pid) > limit:
                    self.old = True

    async def close(self) -> None:
        """End the browser with all its processes, gently if it can be, and delete its folder."""
        dead = self.gone()
        self._on_end()
        self._watcher.cancel()
        try:
            if not dead:
                with suppress(Exception):  # it may hang
                    async with asyncio.timeout(CLOSE):
                        await self._browser.close()
        finally:
            try:
                async with asyncio.timeout(CLOSE):
                    while self.pid is not None and chromium.kill_group(self.pid):
                        await asyncio.sleep(_GONE)
            except TimeoutError:
                pass  # one that even the kernel cannot end, for a disk that does not answer
            finally:
                self._home.remove()


_sending: set[asyncio.Future[Any]] = set()


def later(sent: Any) -> None:
    """Send a message whose answer nobody waits for; the page that it belongs to may be gone by then."""
    task = asyncio.ensure_future(sent)
    _sending.add(task)
    task.add_done_callback(_done)


def _done(task: asyncio.Future[Any]) -> None:
    _sending.discard(task)
    if not task.cancelled():
        task.exception()
