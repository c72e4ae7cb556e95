"""Renders one page in a tab: loads the fetched response, waits by rules, and takes a snapshot of the document."""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from nutch2py.browser.browser_process import BrowserHungError, BrowserTab, send_in_background
from nutch2py.browser.browser_rules import WaitCondition
from nutch2py.browser.browser_settings import BrowserSettings
from nutch2py.browser.cdp_events import AuthRequiredEvent, RequestPausedEvent
from nutch2py.browser.context_traffic import ContextTraffic
from nutch2py.browser.page_scripts import (
    ISOLATED_WORLD,
    scroll_script,
    snapshot_script,
    wait_quiet_script,
    wait_ready_script,
    wait_selector_script,
)
from nutch2py.browser.tab_cleanup import clear_tab_storage, reset_tab
from nutch2py.fetcher.page_renderer import RobotsCheck
from nutch2py.fetcher.protocols.fetch_response import FetchResponse, RenderedPage

if TYPE_CHECKING:
    from playwright.async_api import CDPSession, Page, Request


_DROPPED_HEADERS = frozenset(
    {"content-encoding", "content-length", "transfer-encoding", "connection", "keep-alive", "content-disposition"}
)  # headers of the encoded body, and those that trigger a download
_TRANSPORT_SECURITY_HEADERS = frozenset(
    {"strict-transport-security", "alt-svc"}
)  # headers with effects beyond the page


class PageRenderError(Exception):
    """A page without a snapshot; ``limit_property``: property of the limit reached, "" for a crash."""

    def __init__(self, limit_property: str, message: str) -> None:
        super().__init__(message)
        self.limit_property, self.message = limit_property, message


class PageSnapshot(NamedTuple):
    """A rendered document: UTF-8 with a byte order mark, and its metadata."""

    content: bytes
    rendered: RenderedPage


def build_fulfill_params(response: FetchResponse) -> dict[str, object]:
    """Return the reply to the browser's first request: the fetched response, so that no second request is sent."""
    headers = [
        {"name": name, "value": value}
        for name, value in response.iter_headers()
        if name.lower() not in _DROPPED_HEADERS | _TRANSPORT_SECURITY_HEADERS
    ]
    body = b64encode(response.content).decode("ascii")
    return {"responseCode": 200, "responseHeaders": headers, "body": body}


GRACE_SECONDS = 10.0
"""Seconds for the snapshot at the end of a page's time; a third of that time if it is longer."""
_QUIET_SECONDS = 0.5  # seconds without changes in an idle page
_SNAPSHOT_ATTEMPTS, _SNAPSHOT_RETRY_SECONDS = 8, 0.25  # for a document that is being loaded
_SCROLL_WAIT_SECONDS = 1.5  # seconds for an effect of scrolling
_LIMIT_PROPERTIES = {"requests": "browser.requests.limit", "bytes": "browser.bytes.limit"}


class TabRenderer:
    """Rendering of one page.

    Args:
        tab: Tab to render in.
        settings: Settings of rendering.
        url: URL of the page.
        response: Fetched response.
        max_bytes: Bytes of the document to keep, -1 for all.
        robots_check: Decides on the requests of the page; ``robots_denied`` counts the denied ones.
    """

    def __init__(
        self,
        tab: BrowserTab,
        settings: BrowserSettings,
        url: str,
        response: FetchResponse,
        max_bytes: int,
        robots_check: RobotsCheck,
    ) -> None:
        self._robots_check, self.robots_denied = robots_check, 0
        self._tab, self._settings, self.url, self._response, self._max_bytes = tab, settings, url, response, max_bytes
        self._traffic: ContextTraffic = tab.traffic
        self._finished = asyncio.get_running_loop().create_future()  # set when all waits end
        self._blocked_types = [
            *([] if settings.load_media else ["Media"]),
            *([] if settings.load_stylesheets else ["Stylesheet"]),
        ]
        self._limits_hit: list[str] = []
        self._redirect_url = ""
        self._load_count = self._request_count = self._paused_count = 0
        self._crashed = self._navigated = self._is_reusable = False
        self._crash_reason: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._dom_loaded: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._stayed_loaded = asyncio.Event()  # loaded, after the page tried to leave
        self._popup_count = 0
        self._pending_requests: set[Request] = set()
        self._event_handlers: dict[Any, Callable[[Any], None]] = {
            "close": self._finish,
            "crash": self._on_crash,
            "dialog": lambda dialog: send_in_background(dialog.dismiss()),
            "domcontentloaded": self._on_dom_loaded,
            "popup": self._close_popup,
            "request": self._on_request,
            "requestfinished": self._on_request_done,
            "requestfailed": self._on_request_done,
        }
        self._frame_id = ""
        self._page: Page
        self._session: CDPSession

    async def render(self, waits: tuple[WaitCondition, ...]) -> PageSnapshot:
        """Render the page and return its snapshot.

        Raises:
            PageRenderError: No snapshot is possible.
            BrowserHungError: No document within the time limit: browser or driver hangs, or is so busy with a page,
                maybe another one, that no page gets a response.
        """
        limits = self._settings.limits
        try:
            async with asyncio.timeout(limits.time_limit):
                await self._open_page()
                await self._run_until_finished(self._load_page(waits))
        except TimeoutError:
            self._record_limit("browser.time.limit")
            self._tab.browser.timeouts_in_row += 1
        else:
            self._tab.browser.timeouts_in_row = 0
        await self._raise_if_failed()
        if self._redirect_url:
            return PageSnapshot(
                self._response.content,
                RenderedPage(self.url, original_content=self._response.content, redirect_url=self._redirect_url),
            )
        if self._navigated:
            with suppress(TimeoutError):
                async with asyncio.timeout(max(GRACE_SECONDS, limits.time_limit / 3)):
                    return await self.take_snapshot()
            await self._raise_if_failed()
        elif not self._limits_hit:
            raise PageRenderError("", "the browser does not render it")
        self._tab.browser.give_up()
        raise BrowserHungError(f"no document within {limits.time_limit:g} s")

    async def close(self) -> None:
        """Close the page; the tab is not reused if closing is slow, or if the page was cut off by a limit.

        Chromium continues for a while with queued requests of such a page, which would count against the next page.
        """
        self._traffic.on_limit = _ignore_limit
        self._tab.browser.crash_callbacks.pop(self._frame_id, None)
        if self._traffic.limit_hit:
            self._tab.is_broken = True
        if self._tab.browser.is_gone():
            return
        try:
            async with asyncio.timeout(GRACE_SECONDS):
                for event, handler in self._event_handlers.items():
                    self._page.remove_listener(event, handler)
                parts = urlsplit(self.url)
                origin = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
                if self._is_reusable and await reset_tab(self._page, self._session, self._evaluate):
                    self._tab.blank_page = self._page
                params = {"origin": origin, "storageTypes": "all"}
                await self._session.send("Storage.clearDataForOrigin", params)  # before the next page can read it
                await (self._session.detach() if self._tab.blank_page is self._page else self._page.close())
        except Exception:  # noqa: BLE001 - it hangs, has crashed, or was never opened
            self._tab.is_broken = True

    async def _raise_if_failed(self) -> None:
        """Raise PageRenderError if no snapshot is possible."""
        if self._crashed:
            self._tab.is_broken = True
            browser = self._tab.browser
            with suppress(TimeoutError):  # the exit status arrives after the crash event
                async with asyncio.timeout(GRACE_SECONDS):
                    await asyncio.shield(self._crash_reason)
            if browser.memory_kills > 0 and self._crash_reason.done() and self._crash_reason.result() == "killed":
                browser.memory_kills -= 1
                megabytes = self._settings.limits.max_memory >> 20
                raise PageRenderError("browser.memory.limit", f"the page took more than {megabytes} MB")
            raise PageRenderError("", "the page crashed")
        if "browser.loads.limit" in self._limits_hit:
            raise PageRenderError("browser.loads.limit", f"reloaded more than {self._settings.limits.max_loads} times")

    def _record_limit(self, limit: str) -> None:
        if limit not in self._limits_hit:
            self._limits_hit.append(limit)

    def _finish(self, *_: object) -> None:
        if not self._finished.done():
            self._finished.set_result(None)

    def _on_crash(self, *_: object) -> None:
        self._crashed = True
        self._finish()

    def _on_process_exit(self, status: str) -> None:
        if not self._crash_reason.done():
            self._crash_reason.set_result(status)

    def _on_dom_loaded(self, *_: object) -> None:
        if not self._dom_loaded.done():
            self._dom_loaded.set_result(None)

    async def _await_document(self) -> None:
        """Wait for a document that stays because its navigation is aborted: the driver reports no events of it then."""
        with suppress(Exception):  # the page closed or crashed, which events report
            await self._evaluate(wait_ready_script(is_complete=False))
            self._on_dom_loaded()
            await self._evaluate(wait_ready_script(is_complete=True))
            self._stayed_loaded.set()

    def _close_popup(self, window: Page) -> None:
        self._popup_count += 1
        send_in_background(window.close())

    def _on_navigated(self, *_: object) -> None:
        self._navigated = True
        if self._traffic.limit_hit:
            self._finish()

    def _on_limit(self) -> None:
        """End all waits except for a document, without which no snapshot is possible.

        Further requests wait at the proxy, since thousands of rejections would block driver and page.
        """
        for event in ("request", "requestfinished", "requestfailed"):
            if event in self._event_handlers:
                self._page.remove_listener(event, self._event_handlers.pop(event))
        send_in_background(self._session.send("Fetch.disable"))
        self._record_limit(_LIMIT_PROPERTIES[self._traffic.limit_hit])
        if self._navigated:
            self._finish()

    async def _run_until_finished(self, work: Any) -> None:
        """Run the work unless the page ends it."""
        from playwright.async_api import Error

        task = asyncio.ensure_future(work)
        try:
            await asyncio.wait((task, self._finished), return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                with suppress(Error):  # a page that navigates, closes or crashes during a wait; events report the cause
                    task.result()
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _open_page(self) -> None:
        """Open the page and install its restrictions."""
        context = self._tab.context
        is_reused = self._tab.blank_page is not None
        page = self._page = await self._tab.open_page()
        self._session = await context.new_cdp_session(page)
        self._traffic.on_limit = self._on_limit
        page.once("framenavigated", self._on_navigated)
        for event, handler in self._event_handlers.items():
            page.on(event, handler)
        self._session.on("Fetch.requestPaused", self._on_request_paused)
        self._session.on("Fetch.authRequired", self._cancel_auth)
        tree = await self._session.send("Page.getFrameTree")
        self._frame_id = tree["frameTree"]["frame"]["id"]
        # the target of a page has the id of its main frame
        self._tab.browser.crash_callbacks[self._frame_id] = self._on_process_exit
        params = {"patterns": [{"urlPattern": "*"}], "handleAuthRequests": True}
        await self._session.send("Fetch.enable", params)
        if is_reused:
            await clear_tab_storage(self._session, ISOLATED_WORLD)

    def _on_request(self, request: Request) -> None:
        """Count a request, since the proxy cannot count those in a tunnel."""
        self._request_count += 1
        self._pending_requests.add(request)
        if self._request_count > self._settings.limits.max_requests:
            self._traffic.stop("requests")

    def _on_request_done(self, request: Request) -> None:
        self._pending_requests.discard(request)

    def _on_request_paused(self, event: RequestPausedEvent) -> None:
        """Decide on a paused request: documents, blocked types, robots.txt."""
        self._paused_count += 1
        # paused requests arrive earlier than the driver's request events
        if self._paused_count > self._settings.limits.max_requests:
            self._traffic.stop("requests")
        if self._traffic.limit_hit:
            return
        kind, request, url = event["resourceType"], event["request"], str(event["request"]["url"])
        if kind != "Document" or event["frameId"] != self._frame_id:
            is_too_long = url.startswith(("http://", "https://")) and len(url) > self._settings.limits.max_url_length
            if kind in self._blocked_types or is_too_long:
                self._fail_request(event, "BlockedByClient")
            elif self._settings.obey_robots and url.startswith(("http://", "https://")):
                send_in_background(self._check_robots(event, url))
            else:
                self._continue_request(event)
            return
        if not self._load_count:
            self._load_count = 1
            self._document_url = url
            send_in_background(
                self._session.send(
                    "Fetch.fulfillRequest", {"requestId": event["requestId"], **build_fulfill_params(self._response)}
                )
            )
        elif url != self._document_url or event.get("redirectedRequestId"):
            target = url + request.get("urlFragment", "")
            is_valid = url.startswith(("http://", "https://")) and len(target) <= self._settings.limits.max_url_length
            if request["method"] == "GET" and is_valid and not self._redirect_url:
                self._redirect_url = target
                self._finish()
            self._fail_request(event, "Aborted")
            send_in_background(self._await_document())
        else:
            self._load_count += 1
            if self._load_count > self._settings.limits.max_loads:
                self._record_limit("browser.loads.limit")
                self._finish()
                self._fail_request(event, "Aborted")
            else:
                self._continue_request(event)

    def _cancel_auth(self, event: AuthRequiredEvent) -> None:
        """Show the page the 401 response, since the browser's login dialog would stay open."""
        params = {"requestId": event["requestId"], "authChallengeResponse": {"response": "CancelAuth"}}
        send_in_background(self._session.send("Fetch.continueWithAuth", params))

    async def _check_robots(self, event: RequestPausedEvent, url: str) -> None:
        """Continue or fail a request by robots.txt."""
        is_allowed = False
        with suppress(Exception):  # any error: a request must not wait forever
            is_allowed = await self._robots_check(url)
        if is_allowed:
            self._continue_request(event)
        else:
            self.robots_denied += 1
            self._fail_request(event, "BlockedByClient")

    def _continue_request(self, event: RequestPausedEvent) -> None:
        send_in_background(self._session.send("Fetch.continueRequest", {"requestId": event["requestId"]}))

    def _fail_request(self, event: RequestPausedEvent, reason: str) -> None:
        send_in_background(
            self._session.send("Fetch.failRequest", {"requestId": event["requestId"], "errorReason": reason})
        )

    async def _load_page(self, waits: tuple[WaitCondition, ...]) -> None:
        """Load the page in place of the blank one, without history, and wait as the rules require."""
        await self._evaluate(f"location.replace({json.dumps(self.url)})")
        await self._dom_loaded
        for wait in waits:
            await self._wait_for(wait)
        if self._settings.load_delay:
            await asyncio.sleep(self._settings.load_delay)

    async def _wait_for(self, wait: WaitCondition) -> None:
        if wait.kind == "load":
            await self._wait_until_loaded()
        elif wait.kind == "idle":
            try:
                async with asyncio.timeout(self._settings.limits.idle_timeout):
                    await self._wait_until_idle()
            except TimeoutError:
                self._record_limit("browser.idle.limit")
        elif wait.kind == "selector":
            await self._evaluate(wait_selector_script(wait.selector))
        elif wait.kind == "scroll":
            for _ in range(int(wait.value)):
                before = self._request_count, self._traffic.received_bytes
                if not await self._evaluate(scroll_script(_SCROLL_WAIT_SECONDS)) and before == (
                    self._request_count,
                    self._traffic.received_bytes,
                ):
                    break
        else:
            await asyncio.sleep(wait.value)

    async def _wait_until_loaded(self) -> None:
        waits = [
            asyncio.ensure_future(self._page.wait_for_load_state("load", timeout=0)),
            asyncio.ensure_future(self._stayed_loaded.wait()),
        ]
        try:
            done, _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            for each in done:
                each.result()
        finally:
            for each in waits:
                each.cancel()
            await asyncio.gather(*waits, return_exceptions=True)

    async def _wait_until_idle(self) -> None:
        """Wait until no request is sent or active and the document does not change.

        Chromium's own ``networkIdle`` also fires while a busy page has not yet sent its requests.
        """
        while True:
            before = self._request_count
            await self._evaluate(wait_quiet_script(_QUIET_SECONDS))
            if before == self._request_count and not self._pending_requests:
                return

    async def _evaluate(self, script: str) -> Any:
        """Run a script in the isolated world."""
        world = await self._session.send(
            "Page.createIsolatedWorld", {"frameId": self._frame_id, "worldName": ISOLATED_WORLD}
        )
        params = {
            "expression": script,
            "contextId": world["executionContextId"],
            "awaitPromise": True,
            "returnByValue": True,
        }
        result = await self._session.send("Runtime.evaluate", params)
        if "exceptionDetails" in result:
            raise PageRenderError("", "no snapshot of the page is possible")
        return result["result"].get("value")

    async def _evaluate_interrupting(self, script: str) -> Any:
        """Run a script in a page that may be busy: terminate the page's running scripts, and prevent new ones."""
        if not self._limits_hit:
            return await self._evaluate(script)
        send_in_background(self._session.send("Emulation.setScriptExecutionDisabled", {"value": True}))
        timeout = 1.0
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(timeout):
                    await self._session.send("Runtime.terminateExecution")
                    return await self._evaluate(script)
            timeout *= 2

    async def take_snapshot(self) -> PageSnapshot:
        """Return the snapshot of the document."""
        from playwright.async_api import Error

        limit = self._max_bytes if self._max_bytes >= 0 else 1 << 30
        for _ in range(_SNAPSHOT_ATTEMPTS):
            try:
                document = await self._evaluate_interrupting(snapshot_script(limit + 1))
                break
            except Error:  # it is reloading, crashed or closed, or the browser is gone: events report which
                await self._raise_if_failed()
                if self._page.is_closed():
                    raise PageRenderError("", "the page closed itself") from None
                await asyncio.sleep(_SNAPSHOT_RETRY_SECONDS)
                await self._raise_if_failed()
        else:
            raise PageRenderError("", "the browser lost the page")
        await self._raise_if_failed()
        content = b"\xef\xbb\xbf" + document["html"].encode("utf-8", "replace")
        size = max(len(content), int(document["size"]))
        content = content[:limit]
        if document["url"].startswith("chrome-error:"):
            raise PageRenderError("", "the browser does not render it")
        url = document["url"]  # which a script may have changed
        if not url.startswith(("http://", "https://")) or len(url) > self._settings.limits.max_url_length:
            url = self.url
        self._is_reusable = not (self._limits_hit or self._popup_count)
        rendered = RenderedPage(
            url, tuple(self._limits_hit), self._response.content, "", size, await self._take_screenshot()
        )
        return PageSnapshot(content, rendered)

    async def _take_screenshot(self) -> bytes:
        """Return a screenshot of the page, or b"" if it is disabled or fails."""
        from playwright.async_api import Error

        settings = self._settings
        if settings.screenshot_mode == "none":
            return b""
        with suppress(Error):
            image: bytes = await self._page.screenshot(
                type="jpeg",
                quality=settings.screenshot_quality,
                full_page=settings.screenshot_mode == "page",
                timeout=4000,
            )
            return image
        return b""


def _ignore_limit() -> None:
    """Ignore a limit reached after the page is closed."""
