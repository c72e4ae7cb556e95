"""urlfilter-domain and urlfilter-domaindenylist: accept, or reject, URLs of the listed domains.

A line of domain-urlfilter.txt (domaindenylist-urlfilter.txt) is a public suffix (``org``, ``co.uk``), a domain
(``apache.org``) or a host (``www.apache.org``). International names are equal in both forms: ``flå.no`` is
``xn--fl-zia.no``.
"""

from __future__ import annotations

from nutch2py.conf.configuration import Configuration
from nutch2py.interfaces import URLFilter
from nutch2py.url.idn import host_to_ascii
from nutch2py.url.java_url import parse_url
from nutch2py.url.rule_files import read_rules
from nutch2py.url.url_parts import DomainRules


class _DomainSet:
    def __init__(self, conf: Configuration, prefix: str, default_file: str) -> None:
        self._domains = DomainRules.from_conf(conf)
        rules = read_rules(conf, prefix, default_file)
        self.names: frozenset[str | None] = frozenset(_host_to_ascii(line.strip().lower()) for _, line in rules.lines())

    def contains(self, url: str) -> bool:
        """Return whether suffix, domain or host of the URL is listed; raise ValueError if it is malformed."""
        host = _host_to_ascii(parse_url(url).host.lower())
        domains = self._domains
        return not self.names.isdisjoint((host, domains.domain_of_host(host), domains.suffix_of_host(host)))


def _host_to_ascii(host: str) -> str:
    if host.isascii():
        return host
    try:
        return host_to_ascii(host)
    except ValueError:
        return host


class DomainURLFilter(URLFilter):
    """Accept URLs of listed domains; an empty list accepts everything."""

    java_class = "org.apache.nutch.urlfilter.domain.DomainURLFilter"

    def __init__(self, conf: Configuration) -> None:
        self._domains = _DomainSet(conf, "urlfilter.domain", "domain-urlfilter.txt")

    def filter(self, url: str) -> str | None:
        """Return the URL if its domain is listed, else None."""
        if not self._domains.names:
            return url
        try:
            return url if self._domains.contains(url) else None
        except ValueError:
            return None


class DomainDenylistURLFilter(URLFilter):
    """Reject URLs of listed domains, and malformed URLs."""

    java_class = "org.apache.nutch.urlfilter.domaindenylist.DomainDenylistURLFilter"

    def __init__(self, conf: Configuration) -> None:
        self._domains = _DomainSet(conf, "urlfilter.domaindenylist", "domaindenylist-urlfilter.txt")

    def filter(self, url: str) -> str | None:
        """Return the URL, or None if its domain is listed."""
        try:
            return None if self._domains.contains(url) else url
        except ValueError:
            return None
