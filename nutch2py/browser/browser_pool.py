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
from nutch2py.browser.browser_process import CLOSE_TIMEOUT, BrowserProcess, BrowserTab, send_in_background
from nutch2py.browser.browser_settings import BrowserSettings
from nutch2py.browser.context_traffic import ContextTraffic
from nutch2py.browser.filtering_proxy import WARM_UP_HOST, FilteringProxy
from nutch2py.errors import ConfigurationError
from nutch2py.fetcher.protocols.http_settings import HttpSettings


def require_playwright() -> None:
    """Raise ConfigurationError when the package is not there."""
    try:
        import playwright  # noqa: F401
    except ImportError as error:
        raise ConfigurationError(
            "protocol-browser needs the package playwright: pip install 'nutch2py[browser]'"
        ) from error


class BrowserPool:
    """Gives tabs, no more than ``browser.tabs`` at a time. ``browsers_started``: browsers that were."""

    def __init__(self, settings: BrowserSettings, http: HttpSettings, blocked_hosts: Iterable[str]) -> None:
        require_playwright()
        chromium.find_executable(settings.executable)
        self._settings, self._http = settings, http
        self._proxy = FilteringProxy(http, blocked_hosts)
        self._free_tabs = asyncio.Semaphore(settings.max_tabs)
        self._exclusive_lock = asyncio.Lock()
        self._start_lock = asyncio.Lock()
        self._playwright: Any = None
        self._driver_pid: int | None = None
        self._driver_hangs = False
        self._current_browser: BrowserProcess | None = None
        self._closing_tasks: set[asyncio.Task[None]] = set()
        self.browsers_started = 0

    def is_blocked(self, host: str) -> bool:
        """Tell whether nothing is asked of a host."""
        return self._proxy.is_blocked(host)

    @asynccontextmanager
    async def acquire_tab(self, *, exclusive: bool = False) -> AsyncIterator[BrowserTab]:
        """Give a tab for one page; its lane has begun. ``exclusive``: when no other page is shown, in another browser."""
        async with self._reserve_tabs(self._settings.max_tabs if exclusive else 1):
            running = await (self._start_exclusive() if exclusive else self._get_browser())
            running.active_pages += 1
            running.page_count += 1
            tab = None
            try:
                tab = running.idle_tabs.pop() if running.idle_tabs else await self._new_tab_in_time(running)
                tab.page_count += 1
                tab.traffic.start_page()
                yield tab
            finally:
                running.active_pages -= 1
                if tab is not None:
                    await self._release_tab(tab)
                if running.is_hung and running.driver_pid == self._driver_pid:
                    self._driver_hangs = True  # it may be the one
                if running.is_retired and running is not self._current_browser and not running.active_pages:
                    self._close_browser(running)

    @asynccontextmanager
    async def _reserve_tabs(self, tabs: int) -> AsyncIterator[None]:
        """Wait until so many tabs are free, and hold them."""
        held = 0
        try:
            async with self._exclusive_lock if tabs > 1 else nullcontext():
                while held < tabs:
                    await self._free_tabs.acquire()
                    held += 1
            yield
        finally:
            for _ in range(held):
                self._free_tabs.release()

    async def _get_browser(self) -> BrowserProcess:
        """Return the browser; a new one at first, and where the one before is worn out or gone."""
        async with self._start_lock:
            running = self._current_browser
            if running is not None and running.needs_replacement:
                running.is_retired, self._current_browser = True, None
                if not running.active_pages:
                    self._close_browser(running)
            if self._current_browser is None:
                self._current_browser = await self._start_browser()
            return self._current_browser

    async def _start_exclusive(self) -> BrowserProcess:
        """Return a browser that no other page gets."""
        async with self._start_lock:
            running = await self._start_browser()
            running.is_retired = True
            return running

    async def _start_browser(self) -> BrowserProcess:
        """Start a browser; once more with another driver where the one before was there already, and may have died."""
        from playwright.async_api import Error

        settings = self._settings
        if self._driver_hangs:
            await self._stop_driver()
        try:
            home = chromium.BrowserProfile(settings)
        except OSError as error:
            raise ConfigurationError(f"no place for the browser's files: {error}: make some, or set TMPDIR") from error
        try:
            if not self._proxy.port:
                await self._proxy.start()
            tried = self._playwright is None
            while True:
                try:
                    async with asyncio.timeout(2 * settings.limits.start_timeout):
                        running = await self._launch(home)
                    break
                except (Error, TimeoutError) as error:
                    if tried:
                        raise ConfigurationError(_start_error_message(str(error), settings)) from error
                    tried = True
                    await self._stop_driver()
        except BaseException:
            home.remove()
            raise
        self.browsers_started += 1
        self._driver_pid = running.driver_pid
        return running

    async def _launch(self, home: chromium.BrowserProfile) -> BrowserProcess:
        """Start the driver, where there is none, and with it a browser."""
        from playwright.async_api import async_playwright

        settings = self._settings
        if self._playwright is None:
            self._playwright = await async_playwright().start()
        browser = await self._playwright.chromium.launch(
            executable_path=str(home.start_script),
            headless=True,
            chromium_sandbox=settings.sandbox,
            args=chromium.build_options(settings, self._proxy.port),
            ignore_default_args=["--disable-popup-blocking", "--disable-ipc-flooding-protection"],
            env=home.build_environment(),
            timeout=1000 * settings.limits.start_timeout,
            handle_sigint=False,
            handle_sigterm=False,
            handle_sighup=False,
        )
        running = BrowserProcess(settings, home, browser)
        try:
            await running.watch_crashes()
        except BaseException:
            await running.close()
            raise
        return running

    async def _stop_driver(self) -> None:
        """Stop the driver, if it can be, else end it."""
        playwright, self._playwright = self._playwright, None
        driver, self._driver_pid = self._driver_pid, None
        self._driver_hangs = False
        if playwright is not None:
            try:
                async with asyncio.timeout(CLOSE_TIMEOUT):
                    await playwright.stop()
            except Exception:  # noqa: BLE001 - it hangs, or was there no more
                if driver is not None and chromium.get_parent_pid(driver) == os.getpid():
                    chromium.kill_process(driver)

    async def _new_tab_in_time(self, running: BrowserProcess) -> BrowserTab:
        """Make a context in the time that a browser has to start; one that takes longer is asked whether it hangs."""
        try:
            async with asyncio.timeout(self._settings.limits.start_timeout):
                return await running.run_unless_gone(self._new_tab(running))
        except TimeoutError:
            await running.check_responsive()
            raise

    async def _new_tab(self, running: BrowserProcess) -> BrowserTab:
        """Make a context, and have it learn its login: the proxy asks for it once, whatever is asked for later.

        The page that learns it stays, blank and of a host of its own: it keeps the window open, in which other pages
        are opened and closed at half of the CPU that a window for each would take.
        """
        limits, http = self._settings.limits, self._http
        headers = {name: value for name, value in http.default_headers if name == "Accept-Language"}
        lane = ContextTraffic(limits.max_requests, limits.max_bytes)
        self._proxy.add_context(lane)
        context = None
        try:
            context = await running.new_context(http, headers)
            page = await context.new_page()
            session = await context.new_cdp_session(page)
            login = {"response": "ProvideCredentials", "username": lane.username, "password": lane.password}

            def answer(event: dict[str, Any]) -> None:
                send_in_background(session.send("Fetch.continueRequest", {"requestId": event["requestId"]}))

            def log_in(event: dict[str, Any]) -> None:
                answered = {"requestId": event["requestId"], "authChallengeResponse": login}
                send_in_background(session.send("Fetch.continueWithAuth", answered))

            session.on("Fetch.requestPaused", answer)
            session.on("Fetch.authRequired", log_in)
            await session.send("Fetch.enable", {"handleAuthRequests": True})
            await page.goto(f"http://{WARM_UP_HOST}/")
            await session.detach()
        except BaseException:
            self._proxy.remove_context(lane)
            if context is not None:
                with suppress(Exception):  # it may hang
                    async with asyncio.timeout(CLOSE_TIMEOUT):
                        await context.close()
            running.is_retired = True
            raise
        return BrowserTab(running, context, lane)

    async def _release_tab(self, tab: BrowserTab) -> None:
        """Keep a context for other pages, without cookies of this one, or close it."""
        running, settings = tab.browser, self._settings
        tab.traffic.finish_page()
        worn = tab.page_count >= settings.context_max_pages or tab.traffic.total_bytes >= settings.context_max_bytes
        if not (running.is_retired or tab.is_broken or worn):
            try:
                async with asyncio.timeout(CLOSE_TIMEOUT):
                    await tab.context.clear_cookies()
                running.idle_tabs.append(tab)
                return
            except Exception:  # noqa: BLE001 - whatever is wrong with it, it is closed
                tab.is_broken = True
        self._proxy.remove_context(tab.traffic)
        if running.is_dead:
            return
        try:
            async with asyncio.timeout(CLOSE_TIMEOUT):
                await tab.context.close()
        except Exception:  # noqa: BLE001 - it hangs, or the browser is gone
            running.is_retired = True
            await running.check_responsive()

    def _close_browser(self, running: BrowserProcess) -> None:
        if running.is_closing:
            return
        running.is_closing = True
        for tab in running.idle_tabs:
            self._proxy.remove_context(tab.traffic)
        running.idle_tabs.clear()
        task = asyncio.ensure_future(running.close())
        self._closing_tasks.add(task)
        task.add_done_callback(self._closing_tasks.discard)

    async def close(self) -> None:
        """End everything."""
        if self._current_browser is not None:
            self._close_browser(self._current_browser)
            self._current_browser = None
        await asyncio.gather(*self._closing_tasks, return_exceptions=True)
        await self._stop_driver()
        if self._proxy.port:
            await self._proxy.close()


def _start_error_message(text: str, settings: BrowserSettings) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    said = next((line for line in lines if "[err]" in line), lines[0] if lines else "no answer")
    sandbox = ", or set browser.sandbox to false if the system has no user namespaces" if settings.sandbox else ""
    return f"the browser does not start: {said[:300]}: see that it runs for the user of the task{sandbox}"
