"""Cache of robots.txt rules, which are fetched once per scheme, host and port before the first page.

The interpretation of a response follows Nutch 2.4 (``HttpRobotRulesParser``): 200 is parsed; 403 disallows all unless
``http.robots.403.allow`` is set; other 4xx allow all; 5xx defers the visit (``http.robots.503.defer.visits``), so that
no page is requested while the file is unavailable (RFC 9309, 2.3.1.4). With that property false, 5xx and failures
allow all for now, as in Nutch 2. Both are requested again later. At most five redirects are followed (RFC 9309,
2.3.1.2).

The cache holds ``http.robots.cache.bytes``; the least recently used rules are evicted and fetched again when needed.
Long work that a site can cause, such as parsing a large file or matching many wildcard rules, runs in a thread, so
that other sites do not wait.
"""

from __future__ import annotations

import time
from asyncio import Future, ensure_future, shield, to_thread
from collections import OrderedDict
from collections.abc import Awaitable, Callable

from nutch2py.conf.configuration import Configuration
from nutch2py.fetcher.protocols.fetch_response import LOCAL_KINDS, FailureKind, FetchFailure, FetchResponse
from nutch2py.fetcher.protocols.http_settings import require_agent_name
from nutch2py.fetcher.robots.robots_rules import (
    ALLOW_ALL,
    DEFER_ALL,
    FORBID_ALL,
    ROBOTS_MAX_BYTES,
    RobotsLimits,
    RobotsRules,
    parse_robots,
    unreachable_rules,
)
from nutch2py.url.java_url import parse_relative, parse_url

_DEFAULT_CACHE_BYTES = 64 * 1024 * 1024
_ENTRY_OVERHEAD = 500  # bytes per site besides its rules
# limits for work in the event loop, a few milliseconds: file size, character comparisons per URL
_MAX_INLINE_BYTES, _MAX_INLINE_COST = 8 * 1024, 1_000_000
_RETRY_AFTER = 60.0  # seconds for which a failure is cached
_SHARED_RULES = frozenset({ALLOW_ALL, DEFER_ALL, FORBID_ALL})
_REDIRECT_CODES = frozenset({301, 302, 303, 307, 308})
_NOT_REQUESTED = frozenset({FailureKind.ADDRESS_FILTER, FailureKind.SCHEME})
"""Failures without a request: a redirect leads to a URL that is not allowed, which says nothing about the pages."""
_UNREACHED = _NOT_REQUESTED | LOCAL_KINDS | {FailureKind.DNS, FailureKind.REFUSED, FailureKind.CONNECT, FailureKind.TLS}
"""Failures to reach a server: its pages fail likewise, and the next page requests the file again."""


def robots_agent_names(conf: Configuration) -> tuple[str, ...]:
    """Return the names to look for in robots.txt: ``http.agent.name``, then ``http.robots.agents`` without ``*``."""
    own = require_agent_name(conf)
    return (own, *(name for name in conf.get_strings("http.robots.agents") if name not in ("*", own)))


class RobotsCache:
    """Rules by site; ``fetch_url`` requests a URL with a content limit in bytes.

    Attributes:
        entries: Rules and the time when they expire, by site, the least recently used first.
        size_bytes: Estimated memory of the rules in bytes.
    """

    def __init__(self, conf: Configuration, fetch_url: Callable[[str, int], Awaitable[FetchResponse]]) -> None:
        self._fetch_url = fetch_url
        self._agents = robots_agent_names(conf)
        self._allow_all_on_403 = conf.get_bool("http.robots.403.allow", True)
        self._defer_visits = conf.get_bool("http.robots.503.defer.visits", True)
        self._max_redirects = conf.get_int("http.robots.redirect.max", 5)
        self._allowlist = {host.lower() for host in conf.get_strings("http.robot.rules.allowlist")}
        self._limits = RobotsLimits.from_conf(conf)
        self._max_bytes = conf.get_int("http.robots.cache.bytes", _DEFAULT_CACHE_BYTES)
        self.entries: OrderedDict[str, tuple[RobotsRules, float]] = OrderedDict()
        self.size_bytes = 0
        self._pending: dict[str, Future[RobotsRules]] = {}

    async def get_rules(self, url: str) -> RobotsRules:
        """Return the rules for the site of a URL; concurrent callers share one request."""
        parts = parse_url(url)
        host = parts.host.lower()
        if parts.protocol == "file" or host in self._allowlist:
            return ALLOW_ALL
        key = f"{parts.protocol}:{host}:{parts.default_port if parts.port < 0 else parts.port}"
        cached = self.entries.get(key)
        if cached is not None and (not cached[1] or time.monotonic() < cached[1]):
            self.entries.move_to_end(key)
            return cached[0]
        request = self._pending.get(key)
        if request is None:
            port = "" if parts.port < 0 else f":{parts.port}"
            bracketed = f"[{host}]" if ":" in host and not host.startswith("[") else host
            request = ensure_future(self._fetch(key, f"{parts.protocol}://{bracketed}{port}/robots.txt"))
            self._pending[key] = request
            request.add_done_callback(lambda _: self._pending.pop(key, None))
        return await shield(request)

    async def _fetch(self, key: str, url: str) -> RobotsRules:
        response = await self._fetch_url(url, ROBOTS_MAX_BYTES + 1)  # one extra byte detects truncation
        if self._defer_visits and response.failure is not None and response.failure.kind in _UNREACHED:
            return unreachable_rules(response.failure)
        for _ in range(self._max_redirects):
            location = response.get_header("Location") if response.status in _REDIRECT_CODES else None
            if response.failure is not None or not location:
                break
            try:
                target = str(parse_relative(parse_url(response.url), location))
            except ValueError:
                break
            if not target.startswith(("http://", "https://")):
                break  # redirects from the web must not reach files
            response = await self._fetch_url(target, ROBOTS_MAX_BYTES + 1)
        rules, is_permanent = await self._interpret(response)
        self._store(key, rules, 0.0 if is_permanent else time.monotonic() + _RETRY_AFTER)
        return rules

    def _store(self, key: str, rules: RobotsRules, expires_at: float) -> None:
        """Cache rules and evict others above the limit; ``expires_at`` 0 means permanent."""
        replaced = self.entries.pop(key, None)
        if replaced is not None:
            self.size_bytes -= _rules_size(replaced[0])
        self.entries[key] = rules, expires_at
        self.size_bytes += _rules_size(rules)
        while self.size_bytes > self._max_bytes and len(self.entries) > 1:
            self.size_bytes -= _rules_size(self.entries.popitem(last=False)[1][0])

    async def _interpret(self, response: FetchResponse) -> tuple[RobotsRules, bool]:
        """Return the rules for a response, and whether they apply for the rest of the fetch."""
        failure = response.failure
        if failure is not None:
            if not self._defer_visits or failure.kind in _NOT_REQUESTED:
                return ALLOW_ALL, False
            if failure.is_local:  # after a redirect
                return unreachable_rules(failure), False
            return unreachable_rules(FetchFailure(FailureKind.ROBOTS, f"robots.txt: {failure.message}")), False
        if response.status == 200:
            args = response.content, self._agents, response.url, self._limits
            is_large = len(response.content) > _MAX_INLINE_BYTES
            return (await to_thread(parse_robots, *args) if is_large else parse_robots(*args)), True
        if response.status == 403 and not self._allow_all_on_403:
            return FORBID_ALL, True
        if response.status >= 500:
            return (DEFER_ALL if self._defer_visits else ALLOW_ALL), False
        return ALLOW_ALL, True


def _rules_size(rules: RobotsRules) -> int:
    return _ENTRY_OVERHEAD + (0 if rules in _SHARED_RULES else rules.size_bytes)


async def is_allowed(rules: RobotsRules, url: str) -> bool:
    """Return whether the rules of its site allow a URL."""
    if rules.match_cost(url) > _MAX_INLINE_COST:
        return await to_thread(rules.is_allowed, url)
    return rules.is_allowed(url)
