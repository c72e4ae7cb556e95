"""Selects and renders responses; implements :class:`~nutch2py.fetcher.page_renderer.PageRenderer`."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from urllib.parse import urlsplit

from nutch2py.browser.app_shell import detect_shell_signs
from nutch2py.browser.browser_pool import BrowserPool
from nutch2py.browser.browser_process import BrowserHungError, BrowserLostError
from nutch2py.browser.browser_rules import BrowserRules, RenderDecision, RenderMode
from nutch2py.browser.browser_settings import BrowserSettings
from nutch2py.browser.tab_renderer import PageRenderError, TabRenderer
from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError
from nutch2py.fetcher.page_renderer import RobotsCheck
from nutch2py.fetcher.protocols.fetch_response import FailureKind, FetchFailure, FetchResponse
from nutch2py.fetcher.protocols.header_names import canonical_headers
from nutch2py.fetcher.protocols.http_settings import HttpSettings
from nutch2py.parser.mime.mime_types import detect_content_type
from nutch2py.url.rule_files import read_rules_file

HTML_TYPES = frozenset({"text/html", "application/xhtml+xml"})
_RENDER_ATTEMPTS = 3  # attempts for a page whose browser was lost; the last one in a separate browser


class BrowserRenderer:
    """Renders with Chromium.

    Counters: pages ``rendered`` and ``render_failed``, ``rendered_shells`` among them, reached limits by property, and
    denied requests ``render_robots_denied``.
    """

    def __init__(self, conf: Configuration, http: HttpSettings, *, render_all: bool = False) -> None:
        if http.proxy is not None and not http.proxy.url.startswith("http:"):
            raise ConfigurationError("protocol-browser supports no SOCKS proxy: set http.proxy.type to HTTP")
        self._conf, self._http, self._render_all = conf, http, render_all
        self._rules = BrowserRules(conf)
        self._settings = BrowserSettings.from_conf(conf)
        name = "browser.blocked.hosts.file"
        blocked = read_rules_file(conf, name, conf.get_trimmed(name, "browser-blocked-hosts.txt"))
        self._pool = BrowserPool(self._settings, http, {line.strip().lower() for _, line in blocked.lines()})
        self.counters: Counter[str] = Counter()

    def is_always_rendered(self, url: str) -> bool:
        """Return whether a rule renders the page unconditionally."""
        return self._decide(url).mode == RenderMode.RENDER

    async def render(self, url: str, response: FetchResponse, robots_check: RobotsCheck) -> FetchResponse:
        """Return the response, rendered if rules or signs select it."""
        if response.failure is not None or response.status != 200 or not url.startswith(("http://", "https://")):
            return response
        decision = self._decide(url)
        if decision.mode == RenderMode.PLAIN or response.truncated or not self._is_html(url, response):
            return response
        is_auto = decision.mode == RenderMode.AUTO
        if is_auto and not detect_shell_signs(response.content.decode("utf-8", "replace")).is_shell:
            return response
        rendered = await self._render_in_browser(url, response, decision, robots_check)
        self.counters["rendered" if rendered.failure is None else "render_failed"] += 1
        if is_auto:
            self.counters["rendered_shells"] += 1
        return rendered

    def _decide(self, url: str) -> RenderDecision:
        decision = self._rules.decide(url)
        return RenderDecision(RenderMode.RENDER, decision.waits) if self._render_all else decision

    def _is_html(self, url: str, response: FetchResponse) -> bool:
        declared = canonical_headers(response.iter_headers()).get("Content-Type")
        return detect_content_type(declared, url, response.content, self._conf) in HTML_TYPES

    async def _render_in_browser(
        self, url: str, response: FetchResponse, decision: RenderDecision, robots_check: RobotsCheck
    ) -> FetchResponse:
        from playwright.async_api import Error

        async def is_allowed(request_url: str) -> bool:
            """Skip robots.txt for a host that the proxy blocks."""
            return self._pool.is_blocked(urlsplit(request_url).hostname or "") or await robots_check(request_url)

        limit, exclusive = self._http.content_limit, False
        failure = "protocol-browser: the browser was lost"
        for retries_left in reversed(range(_RENDER_ATTEMPTS)):
            exclusive = exclusive or not retries_left
            try:
                async with self._pool.acquire_tab(exclusive=exclusive) as tab:
                    renderer = TabRenderer(tab, self._settings, url, response, limit, is_allowed)
                    try:
                        snapshot = await tab.browser.run_unless_gone(renderer.render(decision.waits))
                    finally:
                        await renderer.close()
                        self.counters["render_robots_denied"] += renderer.robots_denied
            except PageRenderError as error:
                if tab.browser.is_gone():
                    continue  # the browser crashed, not only the page
                self.counters[f"render_failed_{error.limit_property or 'crash'}"] += 1
                message = f"{error.limit_property or 'protocol-browser'}: {error.message}"
                return replace(response, failure=FetchFailure(FailureKind.BROWSER, message), content=b"")
            except BrowserHungError as error:
                failure = f"browser.time.limit: {error}"
                if exclusive:
                    self.counters["render_failed_browser.time.limit"] += 1
                    break
                exclusive = True  # the cause may be this page or another one
                continue
            except (BrowserLostError, Error, TimeoutError) as error:  # browser or driver is gone: retry
                reason = str(error).partition("\n")[0][:200]
                failure = f"protocol-browser: the browser was lost {reason}".rstrip()
                continue
            for limit_property in snapshot.rendered.limits_hit:
                self.counters[f"rendered_until_{limit_property}"] += 1
            content = (
                snapshot.content if snapshot.rendered.document_size <= limit or limit < 0 else snapshot.content[:limit]
            )
            truncated = "length" if 0 <= limit < snapshot.rendered.document_size else ""
            return replace(response, content=content, truncated=truncated, rendered=snapshot.rendered)
        return replace(response, failure=FetchFailure(FailureKind.BROWSER, failure), content=b"")

    async def close(self) -> None:
        """Close the browser."""
        await self._pool.close()
