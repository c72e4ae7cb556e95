"""How long a page may take to parse: little, when others of its domain have taken much.

One page is ended at ``parser.timeout``. A domain has as many pages as it likes, each of which may take nearly that: it
may have ``parser.domain.seconds`` in all, in a task, for what is slow.
"""

from __future__ import annotations

from nutch2py.conf import Configuration
from nutch2py.url.keys import unreverse_host
from nutch2py.url.parts import domain_of_host

_SLOW = (
    1.0  # seconds; a page that takes less is not counted, and one of a domain that has taken too much may take these
)
_MOST_KNOWN = 10_000  # domains, each of which has taken a slow page's time at least


class Patience:
    """Counts the seconds of slow pages by domain. ``whole``: those that a page may take, 0 for any."""

    def __init__(self, conf: Configuration, whole: float) -> None:
        self.whole = whole
        self._most = conf.get_float("parser.domain.seconds", 300.0)
        self._taken: dict[str, float] = {}

    def seconds(self, key: str) -> float:
        """Return how long the page of a row may take, 0 for any time."""
        if not self._taken or self._most < 0 or self._taken.get(_domain(key), 0.0) <= self._most:
            return self.whole
        return min(self.whole, _SLOW) if self.whole else _SLOW

    def took(self, key: str, seconds: float) -> None:
        """Count what a page took."""
        if seconds <= _SLOW:
            return
        domain = _domain(key)
        self._taken[domain] = self._taken.get(domain, 0.0) + seconds
        if len(self._taken) > _MOST_KNOWN:
            by_time = sorted(self._taken, key=self._taken.__getitem__)
            for known in by_time[: _MOST_KNOWN // 2]:
                del self._taken[known]


def _domain(key: str) -> str:
    """Return the domain of a row's key."""
    return domain_of_host(unreverse_host(key.partition(":")[0]))
