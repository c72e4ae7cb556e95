"""The browser of a task: started at the first page, contexts used again and renewed, what breaks replaced.

A context shows one page at a time and has a login of its own at the proxy. After so many pages or bytes it is renewed;
after so many pages, or when it has grown, crashed or hung, the whole browser is, without a word to the other pages.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterable
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

from nutch2py.browser import chromium
from nutch2py.browser.lane import Lane
from nutch2py.browser.proxy import WARM_UP, GatedProxy
from nutch2py.browser.scripts import BEFORE_ALL
from nutch2py.browser.settings import BrowserSettings
from nutch2py.errors import ConfigurationError
from nutch2py.fetcher.http_settings import HttpSettings

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext

_T = TypeVar("_T")
_LOOK = 0.5  # seconds between two looks at what processes take
_GONE = 0.05  # seconds between two looks whether what was killed has ended
_CLOSE = 5.0  # seconds that anything of the browser has to close


def require_playwright() -> None:
    """Raise ConfigurationError when the package is not there."""
    try:
        import playwright  # noqa: F401
    except ImportError as error:
        raise ConfigurationError(
            "protocol-browser needs the package playwright: pip install 'nutch2py[browser]'"
        ) from error


class BrowserLostError(Exception):
    """The browser has ended while something of it was waited for."""


class Tab:
    """A context while it shows a page. ``spoiled``: it is not to be used again."""

    def __init__(self, running: Running, context: BrowserContext, lane: Lane) -> None:
        self.running, self.context, self.lane = running, context, lane
        self.pages = 0
        self.spoiled = False


class Running:
    """One Chromium. ``pages`` it has shown, ``active`` ones now. ``dead``: it is gone. ``old``: to be replaced.

    ``ended``: it is being closed. ``overgrown``: processes that were killed because of their memory, and whose page
    does not know it yet.
    """

    def __init__(self, settings: BrowserSettings, home: chromium.Home, browser: Any) -> None:
        self._settings, self._home, self._browser = settings, home, browser
        self.pages = self.active = self.overgrown = 0
        self.dead = self.old = self.ended = False
        self.idle: list[Tab] = []
        self.pid = chromium.browser_process(home)
        self._end = asyncio.get_running_loop().create_future()
        browser.on("disconnected", self._on_end)
        self._watcher = asyncio.ensure_future(self._watch())

    def _on_end(self, *_: object) -> None:
        self.dead = self.old = True
        if not self._end.done():
            self._end.set_result(None)

    async def unless_gone(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Do something with the browser; BrowserLostError when it ends amid: not every answer is then given up."""
        task = asyncio.ensure_future(work)
        try:
            await asyncio.wait((task, self._end), return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
            raise BrowserLostError("amid a page")
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def gone(self) -> bool:
        """Tell whether the browser has ended, also where nobody is left who would say so: its driver has ended, too."""
        if not self.dead and self.pid is not None and chromium.browser_process(self._home) is None:
            self._on_end()
        return self.dead

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
                for pid in chromium.family(self.pid):
                    if chromium.memory(pid) > limit:
                        self.overgrown += chromium.shows_pages(pid)
                        chromium.kill(pid)  # the browser starts those anew that serve all pages
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
                    async with asyncio.timeout(_CLOSE):
                        await self._browser.close()
        finally:
            try:
                async with asyncio.timeout(_CLOSE):
                    while self.pid is not None and chromium.kill_group(self.pid):
                        await asyncio.sleep(_GONE)
            except TimeoutError:
                pass  # one that even the kernel cannot end, for a disk that does not answer
            finally:
                self._home.remove()


class Pool:
    """Gives tabs, no more than ``browser.tabs`` at a time. ``started``: browsers that were."""

    def __init__(self, settings: BrowserSettings, http: HttpSettings, blocked: Iterable[str]) -> None:
        require_playwright()
        chromium.find(settings.executable)
        self._settings, self._http = settings, http
        self._proxy = GatedProxy(http, blocked)
        self._free = asyncio.Semaphore(settings.tabs)
        self._starting = asyncio.Lock()
        self._playwright: Any = None
        self._current: Running | None = None
        self._ending: set[asyncio.Task[None]] = set()
        self.started = 0

    def blocks(self, host: str) -> bool:
        """Tell whether nothing is asked of a host."""
        return self._proxy.blocks(host)

    @asynccontextmanager
    async def tab(self) -> AsyncIterator[Tab]:
        """Give a tab for one page; its lane has begun."""
        async with self._free:
            running = await self._ready()
            running.active += 1
            running.pages += 1
            tab = None
            try:
                async with asyncio.timeout(self._settings.limits.start):
                    tab = running.idle.pop() if running.idle else await running.unless_gone(self._new(running))
                tab.pages += 1
                tab.lane.begin()
                yield tab
            finally:
                running.active -= 1
                if tab is not None:
                    await self._put_back(tab)
                if running.old and running is not self._current and not running.active:
                    self._end(running)

    async def _ready(self) -> Running:
        """Return the browser; a new one at first, and where the one before is worn out or gone."""
        async with self._starting:
            running = self._current
            if running is not None and (running.gone() or running.old or running.pages >= self._settings.restart):
                running.old, self._current = True, None
                if not running.active:
                    self._end(running)
            if self._current is None:
                self._current = await self._start()
            return self._current

    async def _start(self) -> Running:
        """Start a browser; once more with another driver where the one before was there already, and may have died."""
        from playwright.async_api import Error

        settings = self._settings
        try:
            home = chromium.Home(settings)
        except OSError as error:
            raise ConfigurationError(f"no place for the browser's files: {error}: make some, or set TMPDIR") from error
        try:
            if not self._proxy.port:
                await self._proxy.start()
            tried = self._playwright is None
            while True:
                try:
                    async with asyncio.timeout(2 * settings.limits.start):
                        browser = await self._launch(home)
                    break
                except (Error, TimeoutError) as error:
                    if tried:
                        raise ConfigurationError(_no_start(str(error), settings)) from error
                    tried = True
                    await self._stop_driver()
        except BaseException:
            home.remove()
            raise
        self.started += 1
        return Running(settings, home, browser)

    async def _launch(self, home: chromium.Home) -> Any:
        """Start the driver, where there is none, and with it a browser."""
        from playwright.async_api import async_playwright

        settings = self._settings
        if self._playwright is None:
            self._playwright = await async_playwright().start()
        return await self._playwright.chromium.launch(
            executable_path=str(home.script),
            headless=True,
            chromium_sandbox=settings.sandbox,
            args=chromium.options(settings, self._proxy.port),
            ignore_default_args=["--disable-popup-blocking", "--disable-ipc-flooding-protection"],
            env=home.environment(),
            timeout=1000 * settings.limits.start,
            handle_sigint=False,
            handle_sigterm=False,
            handle_sighup=False,
        )

    async def _stop_driver(self) -> None:
        driver, self._playwright = self._playwright, None
        if driver is not None:
            with suppress(Exception):
                async with asyncio.timeout(_CLOSE):
                    await driver.stop()

    async def _new(self, running: Running) -> Tab:
        """Make a context, and have it learn its login: the proxy asks for it once, whatever is asked for later.

        The page that learns it stays, blank and of a host of its own: it keeps the window open, in which other pages
        are opened and closed at half of the CPU that a window for each would take.
        """
        limits, http = self._settings.limits, self._http
        headers = {name: value for name, value in http.headers if name == "Accept-Language"}
        lane = Lane(limits.requests, limits.received)
        self._proxy.admit(lane)
        context = None
        try:
            context = await running.context(http, headers)
            page = await context.new_page()
            session = await context.new_cdp_session(page)
            login = {"response": "ProvideCredentials", "username": lane.name, "password": lane.secret}

            def answer(event: dict[str, Any]) -> None:
                later(session.send("Fetch.continueRequest", {"requestId": event["requestId"]}))

            def log_in(event: dict[str, Any]) -> None:
                answered = {"requestId": event["requestId"], "authChallengeResponse": login}
                later(session.send("Fetch.continueWithAuth", answered))

            session.on("Fetch.requestPaused", answer)
            session.on("Fetch.authRequired", log_in)
            await session.send("Fetch.enable", {"handleAuthRequests": True})
            await page.goto(f"http://{WARM_UP}/")
            await session.detach()
        except BaseException:
            self._proxy.dismiss(lane)
            if context is not None:
                with suppress(Exception):
                    await context.close()
            running.old = True
            raise
        return Tab(running, context, lane)

    async def _put_back(self, tab: Tab) -> None:
        """Keep a context for other pages, without cookies of this one, or close it."""
        running, settings = tab.running, self._settings
        tab.lane.end()
        worn = tab.pages >= settings.pages or tab.lane.total >= settings.received
        if not (running.old or tab.spoiled or worn):
            try:
                async with asyncio.timeout(_CLOSE):
                    await tab.context.clear_cookies()
                running.idle.append(tab)
                return
            except Exception:  # noqa: BLE001 - whatever is wrong with it, it is closed
                tab.spoiled = True
        self._proxy.dismiss(tab.lane)
        if running.dead:
            return
        try:
            async with asyncio.timeout(_CLOSE):
                await tab.context.close()
        except Exception:  # noqa: BLE001 - it hangs, or the browser is gone
            running.old = True

    def _end(self, running: Running) -> None:
        if running.ended:
            return
        running.ended = True
        for tab in running.idle:
            self._proxy.dismiss(tab.lane)
        running.idle.clear()
        task = asyncio.ensure_future(running.close())
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    async def close(self) -> None:
        """End everything."""
        if self._current is not None:
            self._end(self._current)
            self._current = None
        await asyncio.gather(*self._ending, return_exceptions=True)
        await self._stop_driver()
        if self._proxy.port:
            await self._proxy.close()


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


def _no_start(text: str, settings: BrowserSettings) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    said = next((line for line in lines if "[err]" in line), lines[0] if lines else "no answer")
    sandbox = ", or set browser.sandbox to false if the system has no user namespaces" if settings.sandbox else ""
    return f"the browser does not start: {said[:300]}: see that it runs for the user of the task{sandbox}"
