"""How long a page may take to parse: little, when others of its domain have taken much.

One page is ended at ``parser.timeout``. A domain has as many pages as it likes, each of which may take nearly that: it
may have ``parser.domain.seconds`` in all, in a task, for what is slow.
"""

from __future__ import annotations

from nutch2py.conf.configuration import Configuration
from nutch2py.url.keys import unreverse_host
from nutch2py.url.url_parts import domain_of_host

_SLOW_PAGE_SECONDS = (
    1.0  # seconds; a page that takes less is not counted, and one of a domain that has taken too much may take these
)
_MAX_DOMAINS = 10_000  # domains, each of which has taken a slow page's time at least


class DomainTimeBudget:
    """Counts the seconds of slow pages by domain. ``page_seconds``: those that a page may take, 0 for any."""

    def __init__(self, conf: Configuration, page_seconds: float) -> None:
        self.page_seconds = page_seconds
        self._max_seconds = conf.get_float("parser.domain.seconds", 300.0)
        self._used_seconds: dict[str, float] = {}

    def allowed_seconds(self, key: str) -> float:
        """Return how long the page of a row may take, 0 for any time."""
        if (
            not self._used_seconds
            or self._max_seconds < 0
            or self._used_seconds.get(_domain_of_key(key), 0.0) <= self._max_seconds
        ):
            return self.page_seconds
        return min(self.page_seconds, _SLOW_PAGE_SECONDS) if self.page_seconds else _SLOW_PAGE_SECONDS

    def record(self, key: str, seconds: float) -> None:
        """Count what a page took."""
        if seconds <= _SLOW_PAGE_SECONDS:
            return
        domain = _domain_of_key(key)
        self._used_seconds[domain] = self._used_seconds.get(domain, 0.0) + seconds
        if len(self._used_seconds) > _MAX_DOMAINS:
            by_time = sorted(self._used_seconds, key=self._used_seconds.__getitem__)
            for known in by_time[: _MAX_DOMAINS // 2]:
                del self._used_seconds[known]


def _domain_of_key(key: str) -> str:
    """Return the domain of a row's key."""
    return domain_of_host(unreverse_host(key.partition(":")[0]))
