"""Which answers are rendered, and what becomes of them: the fetcher's :class:`~nutch2py.fetcher.rendering.Renderer`."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from urllib.parse import urlsplit

from nutch2py.browser.document import PageError
from nutch2py.browser.page import Showing
from nutch2py.browser.pool import Pool
from nutch2py.browser.rules import BrowserRules, Choice, Way
from nutch2py.browser.running import BrowserHungError, BrowserLostError
from nutch2py.browser.settings import BrowserSettings
from nutch2py.browser.shell import signs_of
from nutch2py.conf import Configuration
from nutch2py.errors import ConfigurationError
from nutch2py.fetcher.answer import Answer, Failure, FailureKind
from nutch2py.fetcher.headers import canonical_headers
from nutch2py.fetcher.http_settings import HttpSettings
from nutch2py.fetcher.rendering import Permitted
from nutch2py.parser.mime import content_type
from nutch2py.url.rule_files import read_rules_file

HTML = frozenset({"text/html", "application/xhtml+xml"})
_TRIES = 3  # of a page whose browser was lost; the last in a browser of its own


class BrowserRenderer:
    """Renders with Chromium.

    Counted: pages ``rendered`` and ``render_failed``, those of both that were ``rendered_shells``, limits by property,
    ``render_robots_denied`` requests of pages.
    """

    def __init__(self, conf: Configuration, http: HttpSettings, *, every: bool = False) -> None:
        if http.proxy is not None and not http.proxy.url.startswith("http:"):
            raise ConfigurationError("protocol-browser speaks with no SOCKS proxy: set http.proxy.type to HTTP")
        self._conf, self._http, self._every = conf, http, every
        self._rules = BrowserRules(conf)
        self._settings = BrowserSettings.of(conf)
        name = "browser.blocked.hosts.file"
        blocked = read_rules_file(conf, name, conf.get_trimmed(name, "browser-blocked-hosts.txt"))
        self._pool = Pool(self._settings, http, {line.strip().lower() for _, line in blocked.lines()})
        self.counters: Counter[str] = Counter()

    def always(self, url: str) -> bool:
        """Tell whether a rule has the page rendered whatever it is."""
        return self._choice(url).way == Way.RENDER

    async def render(self, url: str, answer: Answer, permitted: Permitted) -> Answer:
        """Return the answer rendered, where it is a page that rules or signs choose."""
        if answer.failure is not None or answer.status != 200 or not url.startswith(("http://", "https://")):
            return answer
        choice = self._choice(url)
        if choice.way == Way.PLAIN or answer.truncated or not self._is_page(url, answer):
            return answer
        shell = choice.way == Way.AUTO
        if shell and not signs_of(answer.content.decode("utf-8", "replace")).shell:
            return answer
        rendered = await self._rendered(url, answer, choice, permitted)
        self.counters["rendered" if rendered.failure is None else "render_failed"] += 1
        if shell:
            self.counters["rendered_shells"] += 1
        return rendered

    def _choice(self, url: str) -> Choice:
        choice = self._rules.choose(url)
        return Choice(Way.RENDER, choice.waits) if self._every else choice

    def _is_page(self, url: str, answer: Answer) -> bool:
        declared = canonical_headers(answer.fields()).get("Content-Type")
        return content_type(declared, url, answer.content, self._conf) in HTML

    async def _rendered(self, url: str, answer: Answer, choice: Choice, permitted: Permitted) -> Answer:
        from playwright.async_api import Error

        async def may(asked: str) -> bool:
            """Ask no robots.txt of a host that the proxy asks nothing of."""
            return self._pool.blocks(urlsplit(asked).hostname or "") or await permitted(asked)

        limit, alone = self._http.content_limit, False
        failed = "protocol-browser: the browser was lost"
        for left in reversed(range(_TRIES)):
            alone = alone or not left
            try:
                async with self._pool.tab(alone=alone) as tab:
                    showing = Showing(tab, self._settings, url, answer, limit, may)
                    try:
                        taken = await tab.running.unless_gone(showing.take(choice.waits))
                    finally:
                        await showing.close()
                        self.counters["render_robots_denied"] += showing.denied
            except PageError as error:
                if tab.running.gone():
                    continue  # the crash was that of the browser
                self.counters[f"render_failed_{error.limit or 'crash'}"] += 1
                text = f"{error.limit or 'protocol-browser'}: {error.text}"
                return replace(answer, failure=Failure(FailureKind.BROWSER, text), content=b"")
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
            for met in taken.rendered.limits:
                self.counters[f"rendered_until_{met}"] += 1
            content = taken.content if taken.rendered.size <= limit or limit < 0 else taken.content[:limit]
            cut = "length" if 0 <= limit < taken.rendered.size else ""
            return replace(answer, content=content, truncated=cut, rendered=taken.rendered)
        return replace(answer, failure=Failure(FailureKind.BROWSER, failed), content=b"")

    async def close(self) -> None:
        """End the browser."""
        await self._pool.close()
