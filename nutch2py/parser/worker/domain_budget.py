"""Limits the parse time of a domain: after many slow pages, its further pages get little time.

``parser.timeout`` limits one page, but a domain has any number of pages. ``parser.domain.seconds`` limits the time of
all its slow pages in a task. Both are CPU time, so that a busy machine fails no page.
"""

from __future__ import annotations

from nutch2py.conf.configuration import Configuration
from nutch2py.url.keys import unreverse_host
from nutch2py.url.url_parts import DomainRules

SLOW_PAGE_SECONDS = 1.0
"""Minimum CPU time of a counted page; also the limit of each page once the budget is used up."""
MAX_DOMAINS = 10_000
"""Domains in the budget, each of which has used at least the time of a slow page."""


class DomainTimeBudget:
    """Counts the CPU seconds of slow pages by domain.

    Attributes:
        page_seconds: CPU time limit of a page, 0 for none.
        used_seconds: CPU time of the slow pages by domain.
    """

    def __init__(self, conf: Configuration, page_seconds: float) -> None:
        self.page_seconds = page_seconds
        self._domain_of_host = DomainRules.from_conf(conf).domain_of_host
        self._max_seconds = conf.get_float("parser.domain.seconds", 300.0)
        self.used_seconds: dict[str, float] = {}

    def allowed_seconds(self, key: str) -> float:
        """Return the limit of a row's page in CPU seconds, 0 for none."""
        if (
            not self.used_seconds
            or self._max_seconds < 0
            or self.used_seconds.get(self._domain_of_key(key), 0.0) <= self._max_seconds
        ):
            return self.page_seconds
        return min(self.page_seconds, SLOW_PAGE_SECONDS) if self.page_seconds else SLOW_PAGE_SECONDS

    def record(self, key: str, seconds: float) -> None:
        """Add the CPU time of a page."""
        if seconds <= SLOW_PAGE_SECONDS:
            return
        domain = self._domain_of_key(key)
        self.used_seconds[domain] = self.used_seconds.get(domain, 0.0) + seconds
        if len(self.used_seconds) > MAX_DOMAINS:
            by_time = sorted(self.used_seconds, key=self.used_seconds.__getitem__)
            for known in by_time[: MAX_DOMAINS // 2]:
                del self.used_seconds[known]

    def _domain_of_key(self, key: str) -> str:
        """Return the domain of a row key."""
        return self._domain_of_host(unreverse_host(key.partition(":")[0]))
