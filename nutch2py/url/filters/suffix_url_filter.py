"""urlfilter-suffix: accepts or rejects URLs by their suffix, from suffix-urlfilter.txt.

A line ``+`` accepts URLs without a listed suffix, ``-`` (the default) URLs with one. After the sign, ``I`` ignores case
and ``P`` compares the path only, as in ``+IP``. The last such line applies.
"""

from __future__ import annotations

from contextlib import suppress

from nutch2py.conf.configuration import Configuration
from nutch2py.interfaces import URLFilter
from nutch2py.url.java_url import parse_url
from nutch2py.url.rule_files import read_rules


class SuffixURLFilter(URLFilter):
    """Filter by the suffixes and the mode of the file."""

    java_class = "org.apache.nutch.urlfilter.suffix.SuffixURLFilter"

    def __init__(self, conf: Configuration) -> None:
        rules = read_rules(conf, "urlfilter.suffix", "suffix-urlfilter.txt")
        suffixes: list[str] = []
        self._accepts_others = self._ignores_case = self._path_only = False
        for _, line in rules.lines():
            line = line.strip()
            if line[0] in "+-":
                self._accepts_others = line[0] == "+"
                self._path_only |= "P" in line
                self._ignores_case |= "I" in line
            elif not line.startswith("#"):
                suffixes.append(line)
        self._suffixes = tuple(suffix.lower() if self._ignores_case else suffix for suffix in suffixes)

    def filter(self, url: str) -> str | None:
        """Return the URL, or None if its suffix is rejected."""
        text = url.lower() if self._ignores_case else url
        if self._path_only:
            with suppress(ValueError):  # a malformed URL is compared as a whole, as in Nutch
                text = parse_url(text).path
        return url if text.endswith(self._suffixes) != self._accepts_others else None
