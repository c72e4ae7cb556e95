"""Which answers are rendered, and what becomes of them: the fetcher's :class:`~nutch2py.fetcher.page_renderer.PageRenderer`."""

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
_RENDER_ATTEMPTS = 3  # of a page whose browser was lost; the last in a browser of its own


class BrowserRenderer:
    """Renders with Chromium.

    Counted: pages ``rendered`` and ``render_failed``, those of both that were ``rendered_shells``, limits by property,
    ``render_robots_denied`` requests of pages.
    """

    def __init__(self, conf: Configuration, http: HttpSettings, *, render_all: bool = False) -> None:
        if http.proxy is not None and not http.proxy.url.startswith("http:"):
            raise ConfigurationError("protocol-browser speaks with no SOCKS proxy: set http.proxy.type to HTTP")
        self._conf, self._http, self._render_all = conf, http, render_all
        self._rules = BrowserRules(conf)
        self._settings = BrowserSettings.from_conf(conf)
        name = "browser.blocked.hosts.file"
        blocked = read_rules_file(conf, name, conf.get_trimmed(name, "browser-blocked-hosts.txt"))
        self._pool = BrowserPool(self._settings, http, {line.strip().lower() for _, line in blocked.lines()})
        self.counters: Counter[str] = Counter()

    def is_always_rendered(self, url: str) -> bool:
        """Tell whether a rule has the page rendered whatever it is."""
        return self._decide(url).mode == RenderMode.RENDER

    async def render(self, url: str, response: FetchResponse, robots_check: RobotsCheck) -> FetchResponse:
        """Return the answer rendered, where it is a page that rules or signs choose."""
        if response.failure is not None or response.status != 200 or not url.startswith(("http://", "https://")):
            return response
        choice = self._decide(url)
        if choice.mode == RenderMode.PLAIN or response.truncated or not self._is_html(url, response):
            return response
        shell = choice.mode == RenderMode.AUTO
        if shell and not detect_shell_signs(response.content.decode("utf-8", "replace")).is_shell:
            return response
        rendered = await self._render_in_browser(url, response, choice, robots_check)
        self.counters["rendered" if rendered.failure is None else "render_failed"] += 1
        if shell:
            self.counters["rendered_shells"] += 1
        return rendered

    def _decide(self, url: str) -> RenderDecision:
        choice = self._rules.decide(url)
        return RenderDecision(RenderMode.RENDER, choice.waits) if self._render_all else choice

    def _is_html(self, url: str, answer: FetchResponse) -> bool:
        declared = canonical_headers(answer.iter_headers()).get("Content-Type")
        return detect_content_type(declared, url, answer.content, self._conf) in HTML_TYPES

    async def _render_in_browser(
        self, url: str, answer: FetchResponse, choice: RenderDecision, permitted: RobotsCheck
    ) -> FetchResponse:
        from playwright.async_api import Error

        async def may(asked: str) -> bool:
            """Ask no robots.txt of a host that the proxy asks nothing of."""
            return self._pool.is_blocked(urlsplit(asked).hostname or "") or await permitted(asked)

        limit, alone = self._http.content_limit, False
        failed = "protocol-browser: the browser was lost"
        for left in reversed(range(_RENDER_ATTEMPTS)):
            alone = alone or not left
            try:
                async with self._pool.acquire_tab(exclusive=alone) as tab:
                    showing = TabRenderer(tab, self._settings, url, answer, limit, may)
                    try:
                        taken = await tab.browser.run_unless_gone(showing.render(choice.waits))
                    finally:
                        await showing.close()
                        self.counters["render_robots_denied"] += showing.robots_denied
            except PageRenderError as error:
                if tab.browser.is_gone():
                    continue  # the crash was that of the browser
                self.counters[f"render_failed_{error.limit_property or 'crash'}"] += 1
                text = f"{error.limit_property or 'protocol-browser'}: {error.message}"
                return replace(answer, failure=FetchFailure(FailureKind.BROWSER, text), content=b"")
            except BrowserHungError as error:
                failed = f"browser.time.limit: {error}"
                if alone:
                    self.counters["render_failed_browser.time.limit"] += 1
                    break
                alone = True  # the cause may be this page or another
                continue
            except (BrowserLostError, Error, TimeoutError) as error:  # it or its driver is gone: another one tries
                reason = str(error).partition("\n")[0][:200]
                failed = f"protocol-browser: the browser was lost {reason}".rstrip()
                continue
            for met in taken.rendered.limits_hit:
                self.counters[f"rendered_until_{met}"] += 1
            content = taken.content if taken.rendered.document_size <= limit or limit < 0 else taken.content[:limit]
            cut = "length" if 0 <= limit < taken.rendered.document_size else ""
            return replace(answer, content=content, truncated=cut, rendered=taken.rendered)
        return replace(answer, failure=FetchFailure(FailureKind.BROWSER, failed), content=b"")

    async def close(self) -> None:
        """End the browser."""
        await self._pool.close()
