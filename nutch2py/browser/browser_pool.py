"""Browsers of a task: starts them at the first page, reuses and renews contexts, and replaces failed browsers.

A context renders a single page and has its own login at the proxy. It is renewed after a number of pages or
bytes. The whole browser is replaced after a number of pages, or when it has grown, crashed or hung; other pages are
not affected.
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
from nutch2py.browser.cdp_events import AuthRequiredEvent, RequestPausedEvent
from nutch2py.browser.context_traffic import ContextTraffic
from nutch2py.browser.filtering_proxy import WARM_UP_HOST, FilteringProxy
from nutch2py.errors import ConfigurationError
from nutch2py.fetcher.protocols.http_settings import HttpSettings


def require_playwright() -> None:
    """Raise ConfigurationError if the package is missing."""
    try:
        import playwright  # noqa: F401
    except ImportError as error:
        raise ConfigurationError(
            "protocol-browser needs the package playwright: pip install 'nutch2py[browser]'"
        ) from error


class BrowserPool:
    """Provides at most ``browser.tabs`` concurrent tabs; ``browsers_started`` counts started browsers."""

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
        """Return whether requests to a host are blocked."""
        return self._proxy.is_blocked(host)

    @asynccontextmanager
    async def acquire_tab(self, *, exclusive: bool = False) -> AsyncIterator[BrowserTab]:
        """Yield a tab for one page; ``exclusive``: in a separate browser, while no other page is rendered."""
        async with self._reserve_tabs(self._settings.max_tabs if exclusive else 1):
            browser = await (self._start_exclusive() if exclusive else self._get_browser())
            browser.active_pages += 1
            browser.page_count += 1
            tab = None
            try:
                tab = browser.idle_tabs.pop() if browser.idle_tabs else await self._new_tab_in_time(browser)
                tab.page_count += 1
                tab.traffic.start_page()
                yield tab
            finally:
                browser.active_pages -= 1
                if tab is not None:
                    await self._release_tab(tab)
                if browser.is_hung and browser.driver_pid == self._driver_pid:
                    self._driver_hangs = True  # the driver may be the hung process
                if browser.is_retired and browser is not self._current_browser and not browser.active_pages:
                    self._close_browser(browser)

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
        """Return the current browser; start one if none exists or it must be replaced."""
        async with self._start_lock:
            browser = self._current_browser
            if browser is not None and browser.needs_replacement:
                browser.is_retired, self._current_browser = True, None
                if not browser.active_pages:
                    self._close_browser(browser)
            if self._current_browser is None:
                self._current_browser = await self._start_browser()
            return self._current_browser

    async def _start_exclusive(self) -> BrowserProcess:
        """Start a browser that no other page uses."""
        async with self._start_lock:
            browser = await self._start_browser()
            browser.is_retired = True
            return browser

    async def _start_browser(self) -> BrowserProcess:
        """Start a browser; retry once with a new driver, since an existing one may have died."""
        from playwright.async_api import Error

        settings = self._settings
        if self._driver_hangs:
            await self._stop_driver()
        try:
            profile = chromium.BrowserProfile(settings)
        except OSError as error:
            raise ConfigurationError(f"no space for the browser's files: {error}: free some, or set TMPDIR") from error
        try:
            if not self._proxy.port:
                await self._proxy.start()
            is_new_driver = self._playwright is None
            while True:
                try:
                    async with asyncio.timeout(2 * settings.limits.start_timeout):
                        browser = await self._launch(profile)
                    break
                except (Error, TimeoutError) as error:
                    if is_new_driver:
                        raise ConfigurationError(_start_error_message(str(error), settings)) from error
                    is_new_driver = True
                    await self._stop_driver()
        except BaseException:
            profile.remove()
            raise
        self.browsers_started += 1
        self._driver_pid = browser.driver_pid
        return browser

    async def _launch(self, profile: chromium.BrowserProfile) -> BrowserProcess:
        """Start the driver if necessary, and a browser."""
        from playwright.async_api import async_playwright

        settings = self._settings
        if self._playwright is None:
            self._playwright = await async_playwright().start()
        chromium_browser = await self._playwright.chromium.launch(
            executable_path=str(profile.start_script),
            headless=True,
            chromium_sandbox=settings.sandbox,
            args=chromium.build_options(settings, self._proxy.port),
            ignore_default_args=["--disable-popup-blocking", "--disable-ipc-flooding-protection"],
            env=profile.build_environment(),
            timeout=1000 * settings.limits.start_timeout,
            handle_sigint=False,
            handle_sigterm=False,
            handle_sighup=False,
        )
        browser = BrowserProcess(settings, profile, chromium_browser)
        try:
            await browser.watch_crashes()
        except BaseException:
            await browser.close()
            raise
        return browser

    async def _stop_driver(self) -> None:
        """Stop the driver, or kill it if it does not stop."""
        playwright, self._playwright = self._playwright, None
        driver, self._driver_pid = self._driver_pid, None
        self._driver_hangs = False
        if playwright is not None:
            try:
                async with asyncio.timeout(CLOSE_TIMEOUT):
                    await playwright.stop()
            except Exception:  # noqa: BLE001 - it hangs or is gone
                if driver is not None and chromium.get_parent_pid(driver) == os.getpid():
                    chromium.kill_process(driver)

    async def _new_tab_in_time(self, browser: BrowserProcess) -> BrowserTab:
        """Create a context within the browser's start timeout; otherwise check whether the browser hangs."""
        try:
            async with asyncio.timeout(self._settings.limits.start_timeout):
                return await browser.run_unless_gone(self._new_tab(browser))
        except TimeoutError:
            await browser.check_responsive()
            raise

    async def _new_tab(self, browser: BrowserProcess) -> BrowserTab:
        """Create a context and let it learn its login, which the proxy requests only once.

        The page that learns it stays open, blank and on a host of its own. It keeps the window open, in which other
        pages open and close at half of the CPU cost of a window per page.
        """
        limits, http = self._settings.limits, self._http
        headers = {name: value for name, value in http.default_headers if name == "Accept-Language"}
        traffic = ContextTraffic(limits.max_requests, limits.max_bytes)
        self._proxy.add_context(traffic)
        context = None
        try:
            context = await browser.new_context(http, headers)
            page = await context.new_page()
            session = await context.new_cdp_session(page)
            login = {"response": "ProvideCredentials", "username": traffic.username, "password": traffic.password}

            def continue_request(event: RequestPausedEvent) -> None:
                send_in_background(session.send("Fetch.continueRequest", {"requestId": event["requestId"]}))

            def log_in(event: AuthRequiredEvent) -> None:
                params = {"requestId": event["requestId"], "authChallengeResponse": login}
                send_in_background(session.send("Fetch.continueWithAuth", params))

            session.on("Fetch.requestPaused", continue_request)
            session.on("Fetch.authRequired", log_in)
            await session.send("Fetch.enable", {"handleAuthRequests": True})
            await page.goto(f"http://{WARM_UP_HOST}/")
            await session.detach()
        except BaseException:
            self._proxy.remove_context(traffic)
            if context is not None:
                with suppress(Exception):  # it may hang
                    async with asyncio.timeout(CLOSE_TIMEOUT):
                        await context.close()
            browser.is_retired = True
            raise
        return BrowserTab(browser, context, traffic)

    async def _release_tab(self, tab: BrowserTab) -> None:
        """Keep a context for other pages without the cookies of this one, or close it."""
        browser, settings = tab.browser, self._settings
        tab.traffic.finish_page()
        is_worn = tab.page_count >= settings.context_max_pages or tab.traffic.total_bytes >= settings.context_max_bytes
        if not (browser.is_retired or tab.is_broken or is_worn):
            try:
                async with asyncio.timeout(CLOSE_TIMEOUT):
                    await tab.context.clear_cookies()
                browser.idle_tabs.append(tab)
                return
            except Exception:  # noqa: BLE001 - any error: the context is closed
                tab.is_broken = True
        self._proxy.remove_context(tab.traffic)
        if browser.is_dead:
            return
        try:
            async with asyncio.timeout(CLOSE_TIMEOUT):
                await tab.context.close()
        except Exception:  # noqa: BLE001 - it hangs, or the browser is gone
            browser.is_retired = True
            await browser.check_responsive()

    def _close_browser(self, browser: BrowserProcess) -> None:
        if browser.is_closing:
            return
        browser.is_closing = True
        for tab in browser.idle_tabs:
            self._proxy.remove_context(tab.traffic)
        browser.idle_tabs.clear()
        task = asyncio.ensure_future(browser.close())
        self._closing_tasks.add(task)
        task.add_done_callback(self._closing_tasks.discard)

    async def close(self) -> None:
        """Close browsers, driver and proxy."""
        if self._current_browser is not None:
            self._close_browser(self._current_browser)
            self._current_browser = None
        await asyncio.gather(*self._closing_tasks, return_exceptions=True)
        await self._stop_driver()
        if self._proxy.port:
            await self._proxy.close()


def _start_error_message(error_text: str, settings: BrowserSettings) -> str:
    lines = [line.strip() for line in error_text.splitlines() if line.strip()]
    reason = next((line for line in lines if "[err]" in line), lines[0] if lines else "no output")
    sandbox = ", or set browser.sandbox to false if the system has no user namespaces" if settings.sandbox else ""
    return f"the browser does not start: {reason[:300]}: make sure that it runs for the user of the task{sandbox}"
