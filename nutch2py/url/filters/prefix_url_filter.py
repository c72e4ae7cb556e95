"""urlfilter-prefix: accepts URLs that start with a line of prefix-urlfilter.txt."""

from __future__ import annotations

from nutch2py.conf.configuration import Configuration
from nutch2py.interfaces import URLFilter
from nutch2py.url.rule_files import read_rules


class PrefixURLFilter(URLFilter):
    """Filter by prefixes; without any, every URL is rejected."""

    java_class = "org.apache.nutch.urlfilter.prefix.PrefixURLFilter"

    def __init__(self, conf: Configuration) -> None:
        rules = read_rules(conf, "urlfilter.prefix", "prefix-urlfilter.txt")
        self._prefixes = tuple(line for _, line in rules.lines() if not line.startswith(" "))

    def filter(self, url: str) -> str | None:
        """Return the URL if it starts with a prefix, else None."""
        return url if url.startswith(self._prefixes) else None
