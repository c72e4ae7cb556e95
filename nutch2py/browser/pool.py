"""The browser of a task: started at the first page, contexts used again and renewed, what breaks replaced.

A context shows one page at a time and has a login of its own at the proxy. After so many pages or bytes it is renewed;
after so many pages, or when it has grown, crashed or hung, the whole browser is, without a word to the other pages.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, nullcontext, suppress
from typing import Any

from nutch2py.browser import chromium
from nutch2py.browser.lane import Lane
from nutch2py.browser.proxy import WARM_UP, GatedProxy
from nutch2py.browser.running import CLOSE, Running, Tab, later
from nutch2py.browser.settings import BrowserSettings
from nutch2py.errors import ConfigurationError
from nutch2py.fetcher.http_settings import HttpSettings


def require_playwright() -> None:
    """Raise ConfigurationError when the package is not there."""
    try:
        import playwright  # noqa: F401
    except ImportError as error:
        raise ConfigurationError(
            "protocol-browser needs the package playwright: pip install 'nutch2py[browser]'"
        ) from error


class Pool:
    """Gives tabs, no more than ``browser.tabs`` at a time. ``started``: browsers that were."""

    def __init__(self, settings: BrowserSettings, http: HttpSettings, blocked: Iterable[str]) -> None:
        require_playwright()
        chromium.find(settings.executable)
        self._settings, self._http = settings, http
        self._proxy = GatedProxy(http, blocked)
        self._free = asyncio.Semaphore(settings.tabs)
        self._taking_all = asyncio.Lock()
        self._starting = asyncio.Lock()
        self._playwright: Any = None
        self._driver: int | None = None
        self._driver_hangs = False
        self._current: Running | None = None
        self._ending: set[asyncio.Task[None]] = set()
        self.started = 0

    def blocks(self, host: str) -> bool:
        """Tell whether nothing is asked of a host."""
        return self._proxy.blocks(host)

    @asynccontextmanager
    async def tab(self, *, alone: bool = False) -> AsyncIterator[Tab]:
        """Give a tab for one page; its lane has begun. ``alone``: when no other page is shown, in another browser."""
        async with self._room(self._settings.tabs if alone else 1):
            running = await (self._another() if alone else self._ready())
            running.active += 1
            running.pages += 1
            tab = None
            try:
                tab = running.idle.pop() if running.idle else await self._in_time(running)
                tab.pages += 1
                tab.lane.begin()
                yield tab
            finally:
                running.active -= 1
                if tab is not None:
                    await self._put_back(tab)
                if running.hung and running.driver == self._driver:
                    self._driver_hangs = True  # it may be the one
                if running.old and running is not self._current and not running.active:
                    self._end(running)

    @asynccontextmanager
    async def _room(self, tabs: int) -> AsyncIterator[None]:
        """Wait until so many tabs are free, and hold them."""
        held = 0
        try:
            async with self._taking_all if tabs > 1 else nullcontext():
                while held < tabs:
                    await self._free.acquire()
                    held += 1
            yield
        finally:
            for _ in range(held):
                self._free.release()

    async def _ready(self) -> Running:
        """Return the browser; a new one at first, and where the one before is worn out or gone."""
        async with self._starting:
            running = self._current
            if running is not None and running.worn:
                running.old, self._current = True, None
                if not running.active:
                    self._end(running)
            if self._current is None:
                self._current = await self._start()
            return self._current

    async def _another(self) -> Running:
        """Return a browser that no other page gets."""
        async with self._starting:
            running = await self._start()
            running.old = True
            return running

    async def _start(self) -> Running:
        """Start a browser; once more with another driver where the one before was there already, and may have died."""
        from playwright.async_api import Error

        settings = self._settings
        if self._driver_hangs:
            await self._stop_driver()
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
                        running = await self._launch(home)
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
        self._driver = running.driver
        return running

    async def _launch(self, home: chromium.Home) -> Running:
        """Start the driver, where there is none, and with it a browser."""
        from playwright.async_api import async_playwright

        settings = self._settings
        if self._playwright is None:
            self._playwright = await async_playwright().start()
        browser = await self._playwright.chromium.launch(
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
        running = Running(settings, home, browser)
        try:
            await running.listen()
        except BaseException:
            await running.close()
            raise
        return running

    async def _stop_driver(self) -> None:
        """Stop the driver, if it can be, else end it."""
        playwright, self._playwright = self._playwright, None
        driver, self._driver = self._driver, None
        self._driver_hangs = False
        if playwright is not None:
            try:
                async with asyncio.timeout(CLOSE):
                    await playwright.stop()
            except Exception:  # noqa: BLE001 - it hangs, or was there no more
                if driver is not None and chromium.parent(driver) == os.getpid():
                    chromium.kill(driver)

    async def _in_time(self, running: Running) -> Tab:
        """Make a context in the time that a browser has to start; one that takes longer is asked whether it hangs."""
        try:
            async with asyncio.timeout(self._settings.limits.start):
                return await running.unless_gone(self._new(running))
        except TimeoutError:
            await running.answers()
            raise

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
                with suppress(Exception):  # it may hang
                    async with asyncio.timeout(CLOSE):
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
                async with asyncio.timeout(CLOSE):
                    await tab.context.clear_cookies()
                running.idle.append(tab)
                return
            except Exception:  # noqa: BLE001 - whatever is wrong with it, it is closed
                tab.spoiled = True
        self._proxy.dismiss(tab.lane)
        if running.dead:
            return
        try:
            async with asyncio.timeout(CLOSE):
                await tab.context.close()
        except Exception:  # noqa: BLE001 - it hangs, or the browser is gone
            running.old = True
            await running.answers()

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


def _no_start(text: str, settings: BrowserSettings) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    said = next((line for line in lines if "[err]" in line), lines[0] if lines else "no answer")
    sandbox = ", or set browser.sandbox to false if the system has no user namespaces" if settings.sandbox else ""
    return f"the browser does not start: {said[:300]}: see that it runs for the user of the task{sandbox}"
