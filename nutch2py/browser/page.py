"""One page in a tab: loaded from the answer that the fetcher has, waited for by rules, taken down as it is then."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from nutch2py.browser.document import PageError, Taken, given
from nutch2py.browser.lane import Lane
from nutch2py.browser.leaving import forget, leave
from nutch2py.browser.rules import Wait
from nutch2py.browser.running import BrowserHungError, Tab, later
from nutch2py.browser.scripts import WORLD, has, quiet, scroll, snapshot
from nutch2py.browser.settings import BrowserSettings
from nutch2py.fetcher.answer import Answer, Rendered
from nutch2py.fetcher.rendering import Permitted

if TYPE_CHECKING:
    from playwright.async_api import CDPSession, Page, Request

_GRACE = 10.0  # seconds to take down what there is at the end of a page's time, or a third of that
_QUIET = 0.5  # seconds in which nothing happens in a page at rest
_TRIES, _TRY_AGAIN = 8, 0.25  # of taking a document down that is being loaded, and seconds between them
_SCROLL_WAIT = 1.5  # seconds for something to come of scrolling
_LIMITS = {"requests": "browser.requests.limit", "bytes": "browser.bytes.limit"}


class Showing:
    """A page that is shown. ``url``: where it is; ``limit``: bytes of the document to keep, -1 for all.

    ``permitted``: what robots.txt says of its requests, of which it has ``denied`` so many.
    """

    def __init__(
        self, tab: Tab, settings: BrowserSettings, url: str, answer: Answer, limit: int, permitted: Permitted
    ) -> None:
        self._permitted, self.denied = permitted, 0
        self._tab, self._settings, self._url, self._answer, self._keep = tab, settings, url, answer, limit
        self._lane: Lane = tab.lane
        self._ended = asyncio.get_running_loop().create_future()  # nothing more is to be waited for
        self._refused = [*([] if settings.media else ["Media"]), *([] if settings.styles else ["Stylesheet"])]
        self._met: list[str] = []
        self._moved = ""
        self._loads = self._asked = self._paused = 0
        self._crashed = self._shown = self._calm = False
        self._death: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._parsed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._windows = 0
        self._under_way: set[Request] = set()
        self._heard: dict[Any, Callable[[Any], None]] = {
            "close": self._end,
            "crash": self._crash,
            "dialog": lambda dialog: later(dialog.dismiss()),
            "domcontentloaded": self._parse,
            "popup": self._refuse_window,
            "request": self._count,
            "requestfinished": self._settle,
            "requestfailed": self._settle,
        }
        self._frame = ""
        self._page: Page
        self._session: CDPSession

    async def take(self, waits: tuple[Wait, ...]) -> Taken:
        """Show the page and take it down; PageError where that cannot be.

        BrowserHungError when its time brings no document: the browser or its driver hangs, or is so busy with what a
        page does that none of its pages gets an answer, and this one may not be the one.
        """
        limits = self._settings.limits
        try:
            async with asyncio.timeout(limits.seconds):
                await self._open()
                await self._until_ended(self._load(waits))
        except TimeoutError:
            self._meet("browser.time.limit")
            self._tab.running.late += 1
        else:
            self._tab.running.late = 0
        await self._check()
        if self._moved:
            return Taken(self._answer.content, Rendered(self._url, received=self._answer.content, moved=self._moved))
        if self._shown:
            with suppress(TimeoutError):
                async with asyncio.timeout(max(_GRACE, limits.seconds / 3)):
                    return await self._snapshot()
            await self._check()
        elif not self._met:
            raise PageError("", "the browser does not show it")
        self._tab.running.give_up()
        raise BrowserHungError(f"no document within {limits.seconds:g} s")

    async def close(self) -> None:
        """Close the page; a tab is not used again when that takes long, or when the page was cut off.

        Chromium goes on for a while with requests that such a page has queued: they would count as the next page's.
        """
        self._lane.on_limit = _nothing
        self._tab.running.on_crash.pop(self._frame, None)
        if self._lane.over:
            self._tab.spoiled = True
        if self._tab.running.gone():
            return
        try:
            async with asyncio.timeout(_GRACE):
                for event, heard in self._heard.items():
                    self._page.remove_listener(event, heard)
                parts = urlsplit(self._url)
                origin = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
                if self._calm and await leave(self._page, self._session, self._evaluate):
                    self._tab.kept = self._page
                cleared = {"origin": origin, "storageTypes": "all"}
                await self._session.send("Storage.clearDataForOrigin", cleared)  # before the next page can look
                await (self._session.detach() if self._tab.kept is self._page else self._page.close())
        except Exception:  # noqa: BLE001 - it hangs, has crashed, or was never there
            self._tab.spoiled = True

    async def _check(self) -> None:
        """Raise PageError when the page cannot be taken down."""
        if self._crashed:
            self._tab.spoiled = True
            running = self._tab.running
            with suppress(TimeoutError):  # how its process ended is told after that it did
                async with asyncio.timeout(_GRACE):
                    await asyncio.shield(self._death)
            if running.overgrown > 0 and self._death.done() and self._death.result() == "killed":
                running.overgrown -= 1
                megabytes = self._settings.limits.memory >> 20
                raise PageError("browser.memory.limit", f"the page took more than {megabytes} MB")
            raise PageError("", "the page crashed")
        if "browser.loads.limit" in self._met:
            raise PageError("browser.loads.limit", f"loaded anew more than {self._settings.limits.loads} times")

    def _meet(self, limit: str) -> None:
        if limit not in self._met:
            self._met.append(limit)

    def _end(self, *_: object) -> None:
        if not self._ended.done():
            self._ended.set_result(None)

    def _crash(self, *_: object) -> None:
        self._crashed = True
        self._end()

    def _died(self, how: str) -> None:
        if not self._death.done():
            self._death.set_result(how)

    def _parse(self, *_: object) -> None:
        if not self._parsed.done():
            self._parsed.set_result(None)

    def _refuse_window(self, window: Page) -> None:
        self._windows += 1
        later(window.close())

    def _show(self, *_: object) -> None:
        self._shown = True
        if self._lane.over:
            self._end()

    def _over(self) -> None:
        """Wait for nothing any more but a document, without which nothing could be taken down.

        What is asked for yet waits at the proxy: thousands of refusals would keep driver and page from all else.
        """
        for event in ("request", "requestfinished", "requestfailed"):
            if event in self._heard:
                self._page.remove_listener(event, self._heard.pop(event))
        later(self._session.send("Fetch.disable"))
        self._meet(_LIMITS[self._lane.over])
        if self._shown:
            self._end()

    async def _until_ended(self, work: Any) -> None:
        """Do the work, unless the page ends it."""
        from playwright.async_api import Error

        task = asyncio.ensure_future(work)
        try:
            await asyncio.wait((task, self._ended), return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                with suppress(Error):  # a page that leaves, closes itself or crashes amid a wait; events tell which
                    task.result()
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _open(self) -> None:
        """Open the page: what it may not do is refused from the first."""
        context = self._tab.context
        used = self._tab.kept is not None
        page = self._page = await self._tab.page()
        self._session = await context.new_cdp_session(page)
        self._lane.on_limit = self._over
        page.once("framenavigated", self._show)
        for event, heard in self._heard.items():
            page.on(event, heard)
        self._session.on("Fetch.requestPaused", self._on_paused)
        self._session.on("Fetch.authRequired", self._refuse_login)
        tree = await self._session.send("Page.getFrameTree")
        self._frame = tree["frameTree"]["frame"]["id"]
        self._tab.running.on_crash[self._frame] = self._died  # the target of a page has the id of its main frame
        everything = {"patterns": [{"urlPattern": "*"}], "handleAuthRequests": True}
        await self._session.send("Fetch.enable", everything)
        if used:
            await forget(self._session, WORLD)

    def _count(self, request: Request) -> None:
        """Count a request, which the proxy cannot in a tunnel."""
        self._asked += 1
        self._under_way.add(request)
        if self._asked > self._settings.limits.requests:
            self._lane.stop("requests")

    def _settle(self, request: Request) -> None:
        self._under_way.discard(request)

    def _on_paused(self, event: dict[str, Any]) -> None:
        """Decide of a request for a document, or of what is not loaded."""
        self._paused += 1
        if self._paused > self._settings.limits.requests:  # told sooner than what the driver makes of requests
            self._lane.stop("requests")
        if self._lane.over:
            return
        kind, request, url = event["resourceType"], event["request"], str(event["request"]["url"])
        if kind != "Document" or event["frameId"] != self._frame:
            if kind in self._refused:
                self._refuse(event, "BlockedByClient")
            elif self._settings.robots and url.startswith(("http://", "https://")):
                later(self._judge(event, url))
            else:
                self._continue(event)
            return
        if not self._loads:
            self._loads = 1
            self._first = url
            later(self._session.send("Fetch.fulfillRequest", {"requestId": event["requestId"], **given(self._answer)}))
        elif url != self._first or event.get("redirectedRequestId"):
            if request["method"] == "GET" and url.startswith(("http://", "https://")) and not self._moved:
                self._moved = url + request.get("urlFragment", "")
                self._end()
            self._refuse(event, "Aborted")
        else:
            self._loads += 1
            if self._loads > self._settings.limits.loads:
                self._meet("browser.loads.limit")
                self._end()
                self._refuse(event, "Aborted")
            else:
                self._continue(event)

    def _refuse_login(self, event: dict[str, Any]) -> None:
        """Let the page have the answer that asks for a login: the dialog that the browser has for it would stay."""
        refused = {"requestId": event["requestId"], "authChallengeResponse": {"response": "CancelAuth"}}
        later(self._session.send("Fetch.continueWithAuth", refused))

    async def _judge(self, event: dict[str, Any], url: str) -> None:
        """Ask robots.txt whether the page may ask for a URL."""
        permitted = False
        with suppress(Exception):  # whatever goes wrong there, a request that waits for ever is worse
            permitted = await self._permitted(url)
        if permitted:
            self._continue(event)
        else:
            self.denied += 1
            self._refuse(event, "BlockedByClient")

    def _continue(self, event: dict[str, Any]) -> None:
        later(self._session.send("Fetch.continueRequest", {"requestId": event["requestId"]}))

    def _refuse(self, event: dict[str, Any], reason: str) -> None:
        later(self._session.send("Fetch.failRequest", {"requestId": event["requestId"], "errorReason": reason}))

    async def _load(self, waits: tuple[Wait, ...]) -> None:
        """Load the page in the place of the blank one, which it cannot go back to, and wait as the rules say."""
        await self._evaluate(f"location.replace({json.dumps(self._url)})")
        await self._parsed
        for wait in waits:
            await self._wait(wait)
        if self._settings.delay:
            await asyncio.sleep(self._settings.delay)

    async def _wait(self, wait: Wait) -> None:
        if wait.what == "load":
            await self._page.wait_for_load_state("load", timeout=0)
        elif wait.what == "idle":
            try:
                async with asyncio.timeout(self._settings.limits.idle):
                    await self._rest()
            except TimeoutError:
                self._meet("browser.idle.limit")
        elif wait.what == "selector":
            await self._evaluate(has(wait.selector))
        elif wait.what == "scroll":
            for _ in range(int(wait.amount)):
                before = self._asked, self._lane.received
                if not await self._evaluate(scroll(_SCROLL_WAIT)) and before == (self._asked, self._lane.received):
                    break
        else:
            await asyncio.sleep(wait.amount)

    async def _rest(self) -> None:
        """Wait until nothing is asked for, nothing is under way, and the document stays as it is.

        Chromium's own ``networkIdle`` comes as well while a busy page has not got round to asking.
        """
        while True:
            before = self._asked
            await self._evaluate(quiet(_QUIET))
            if before == self._asked and not self._under_way:
                return

    async def _evaluate(self, script: str) -> Any:
        """Run a script of ours in its own world."""
        made = await self._session.send("Page.createIsolatedWorld", {"frameId": self._frame, "worldName": WORLD})
        asked = {
            "expression": script,
            "contextId": made["executionContextId"],
            "awaitPromise": True,
            "returnByValue": True,
        }
        found = await self._session.send("Runtime.evaluate", asked)
        if "exceptionDetails" in found:
            raise PageError("", "the page cannot be taken down")
        return found["result"].get("value")

    async def _found(self, script: str) -> Any:
        """Run a script of ours in a page that may not have come to rest: those of its own that do not end are ended.

        The next may be begun before ours is: so none is begun any more.
        """
        if not self._met:
            return await self._evaluate(script)
        later(self._session.send("Emulation.setScriptExecutionDisabled", {"value": True}))
        patience = 1.0
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(patience):
                    await self._session.send("Runtime.terminateExecution")
                    return await self._evaluate(script)
            patience *= 2

    async def _snapshot(self) -> Taken:
        """Take the document down."""
        from playwright.async_api import Error

        limit = self._keep if self._keep >= 0 else 1 << 30
        for _ in range(_TRIES):
            try:
                found = await self._found(snapshot(limit + 1))
                break
            except Error:  # it is just being loaded anew, it has crashed or closed, or the browser is gone: events tell
                await self._check()
                if self._page.is_closed():
                    raise PageError("", "the page closed itself") from None
                await asyncio.sleep(_TRY_AGAIN)
                await self._check()
        else:
            raise PageError("", "the browser lost the page")
        await self._check()
        content = b"\xef\xbb\xbf" + found["html"].encode("utf-8", "replace")
        size = max(len(content), int(found["size"]))
        content = content[:limit]
        if found["url"].startswith("chrome-error:"):
            raise PageError("", "the browser does not show it")
        url = found["url"] if found["url"].startswith(("http://", "https://")) else self._url
        self._calm = not (self._met or self._windows)
        rendered = Rendered(url, tuple(self._met), self._answer.content, "", size, await self._screenshot())
        return Taken(content, rendered)

    async def _screenshot(self) -> bytes:
        """Return a picture of the page, b"" where none is wanted or it cannot be made."""
        from playwright.async_api import Error

        settings = self._settings
        if settings.screenshot == "none":
            return b""
        with suppress(Error):
            picture: bytes = await self._page.screenshot(
                type="jpeg", quality=settings.quality, full_page=settings.screenshot == "page", timeout=4000
            )
            return picture
        return b""


def _nothing() -> None:
    """Do nothing: a page that is closed heeds no limit."""
