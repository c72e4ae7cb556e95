"""robots.txt: fetched once for each scheme, host and port, before the first page from there.

What an answer means follows Nutch 2.4 (``HttpRobotRulesParser``): 200 is read; 403 forbids all unless
``http.robots.403.allow``; other 4xx allow all; 5xx puts the visit off (``http.robots.503.defer.visits``), and so no
page is asked for while the file cannot be had (RFC 9309, 2.3.1.4). With that property false 5xx and failures allow all
for now, as in Nutch 2. Both are asked for again after a while. Up to five redirects are followed (RFC 9309, 2.3.1.2).

Rules are remembered up to ``http.robots.cache.bytes``; those not asked for longest go first, and are fetched anew when
a page of their site comes again. What a site can make long, reading a large file and asking many rules with ``*``, is
done in a thread, so that no other site waits for it.
"""

from __future__ import annotations

import time
from asyncio import Future, ensure_future, shield, to_thread
from collections import OrderedDict
from collections.abc import Awaitable, Callable

from nutch2py.conf.configuration import Configuration
from nutch2py.fetcher.protocols.fetch_response import FailureKind, FetchFailure, FetchResponse
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
_ENTRY_OVERHEAD = 500  # of a site in the cache, beside its rules
# what takes a few milliseconds at the most is done in the event loop: bytes of a file, comparisons for a URL
_MAX_INLINE_BYTES, _MAX_INLINE_COST = 8 * 1024, 1_000_000
_RETRY_AFTER = 60.0  # seconds for which a failure to get the file is remembered
_SHARED_RULES = frozenset({ALLOW_ALL, DEFER_ALL, FORBID_ALL})
_REDIRECT_CODES = frozenset({301, 302, 303, 307, 308})
_NOT_REQUESTED = frozenset({FailureKind.ADDRESS_FILTER, FailureKind.SCHEME})
"""We do not ask there, whoever redirects to it: that says nothing of the pages of who does."""
_UNREACHED = _NOT_REQUESTED | {
    FailureKind.DNS,
    FailureKind.REFUSED,
    FailureKind.CONNECT,
    FailureKind.SOCKET,
    FailureKind.TLS,
}
"""No server was reached: that is what its pages fail with, too, and the next page asks again, as it would by itself."""


def robots_agent_names(conf: Configuration) -> tuple[str, ...]:
    """Return the names that a robots.txt may mean us by: ``http.agent.name``, then ``http.robots.agents`` but ``*``."""
    own = require_agent_name(conf)
    return (own, *(name for name in conf.get_strings("http.robots.agents") if name not in ("*", own)))


class RobotsCache:
    """The rules of the hosts met so far. ``get``: asks for a URL, with a limit in bytes."""

    def __init__(self, conf: Configuration, fetch_url: Callable[[str, int], Awaitable[FetchResponse]]) -> None:
        self._fetch_url = fetch_url
        self._agents = robots_agent_names(conf)
        self._allow_all_on_403 = conf.get_bool("http.robots.403.allow", True)
        self._defer_visits = conf.get_bool("http.robots.503.defer.visits", True)
        self._max_redirects = conf.get_int("http.robots.redirect.max", 5)
        self._allowlist = {host.lower() for host in conf.get_strings("http.robot.rules.allowlist")}
        self._limits = RobotsLimits.from_conf(conf)
        self._max_bytes = conf.get_int("http.robots.cache.bytes", _DEFAULT_CACHE_BYTES)
        self._rules: OrderedDict[str, tuple[RobotsRules, float]] = OrderedDict()
        self.size_bytes = 0  # bytes that the rules take
        self._pending: dict[str, Future[RobotsRules]] = {}

    async def get_rules(self, url: str) -> RobotsRules:
        """Return the rules for the site of a URL; asks the site only once, however many wait."""
        parts = parse_url(url)
        host = parts.host.lower()
        if parts.protocol == "file" or host in self._allowlist:
            return ALLOW_ALL
        key = f"{parts.protocol}:{host}:{parts.default_port if parts.port < 0 else parts.port}"
        known = self._rules.get(key)
        if known is not None and (not known[1] or time.monotonic() < known[1]):
            self._rules.move_to_end(key)
            return known[0]
        asked = self._pending.get(key)
        if asked is None:
            port = "" if parts.port < 0 else f":{parts.port}"
            bracketed = f"[{host}]" if ":" in host and not host.startswith("[") else host
            asked = ensure_future(self._fetch(key, f"{parts.protocol}://{bracketed}{port}/robots.txt"))
            self._pending[key] = asked
            asked.add_done_callback(lambda _: self._pending.pop(key, None))
        return await shield(asked)

    async def _fetch(self, key: str, url: str) -> RobotsRules:
        answer = await self._fetch_url(url, ROBOTS_MAX_BYTES + 1)  # one more tells that it was cut
        if self._defer_visits and answer.failure is not None and answer.failure.kind in _UNREACHED:
            return unreachable_rules(answer.failure)
        for _ in range(self._max_redirects):
            location = answer.get_header("Location") if answer.status in _REDIRECT_CODES else None
            if answer.failure is not None or not location:
                break
            try:
                target = str(parse_relative(parse_url(answer.url), location))
            except ValueError:
                break
            if not target.startswith(("http://", "https://")):
                break  # nor does a redirect lead from the web to a file
            answer = await self._fetch_url(target, ROBOTS_MAX_BYTES + 1)
        rules, lasting = await self._interpret(answer)
        self._store(key, rules, 0.0 if lasting else time.monotonic() + _RETRY_AFTER)
        return rules

    def _store(self, key: str, rules: RobotsRules, until: float) -> None:
        """Remember rules, and forget others when that is too much; ``until`` is 0 for ever."""
        before = self._rules.pop(key, None)
        if before is not None:
            self.size_bytes -= _rules_size(before[0])
        self._rules[key] = rules, until
        self.size_bytes += _rules_size(rules)
        while self.size_bytes > self._max_bytes and len(self._rules) > 1:
            self.size_bytes -= _rules_size(self._rules.popitem(last=False)[1][0])

    async def _interpret(self, answer: FetchResponse) -> tuple[RobotsRules, bool]:
        """Return the rules that an answer stands for, and whether they hold for the rest of the fetch."""
        failure = answer.failure
        if failure is not None:
            if not self._defer_visits or failure.kind in _NOT_REQUESTED:
                return ALLOW_ALL, False
            return unreachable_rules(FetchFailure(FailureKind.ROBOTS, f"robots.txt: {failure.message}")), False
        if answer.status == 200:
            args = answer.content, self._agents, answer.url, self._limits
            large = len(answer.content) > _MAX_INLINE_BYTES
            return (await to_thread(parse_robots, *args) if large else parse_robots(*args)), True
        if answer.status == 403 and not self._allow_all_on_403:
            return FORBID_ALL, True
        if answer.status >= 500:
            return (DEFER_ALL if self._defer_visits else ALLOW_ALL), False
        return ALLOW_ALL, True


def _rules_size(rules: RobotsRules) -> int:
    return _ENTRY_OVERHEAD + (0 if rules in _SHARED_RULES else rules.size_bytes)


async def is_allowed(rules: RobotsRules, url: str) -> bool:
    """Tell whether the rules of its site allow a URL."""
    if rules.match_cost(url) > _MAX_INLINE_COST:
        return await to_thread(rules.is_allowed, url)
    return rules.is_allowed(url)
