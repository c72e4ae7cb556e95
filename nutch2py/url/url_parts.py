"""Host, registered domain and public suffix of a URL, and the choice of the URL that represents a page.

Domains follow the ICANN part of the public suffix list: ``uk.com`` is a domain, ``co.uk`` a suffix. With
``publicsuffix.private`` the private part counts as well: ``uk.com`` and ``github.io`` are suffixes. A last label
that is not on the list counts as a suffix, by the list's rule ``*``. IP addresses and single labels are their own
domain.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, cached_property
from typing import TYPE_CHECKING

from nutch2py.support.bounded_cache import bounded_cache
from nutch2py.url.idn import host_to_ascii, url_to_ascii, url_to_unicode
from nutch2py.url.java_url import JavaURL, compose_url, parse_relative, parse_url, resolve_url, url_resolver

if TYPE_CHECKING:
    from publicsuffixlist import PublicSuffixList

    from nutch2py.conf.configuration import Configuration

__all__ = [
    "ICANN_DOMAINS",
    "DomainRules",
    "JavaURL",
    "choose_repr",
    "compose_url",
    "domain_of",
    "domain_of_host",
    "host_of",
    "parent_domains",
    "parse_relative",
    "parse_url",
    "resolve_url",
    "segments_of",
    "suffix_of",
    "suffix_of_host",
    "tld_of",
    "url_resolver",
    "url_to_ascii",
    "url_to_unicode",
]

_IPV4 = re.compile(r"(?:[0-9]{1,3}\.){3}[0-9]{1,3}")


class DomainRules:
    """Registered domains and public suffixes of hosts, by one part of the list or by both."""

    def __init__(self, has_private_suffixes: bool) -> None:
        self._has_private_suffixes = has_private_suffixes
        self.suffix_of_host = bounded_cache(65_536)(self._find_suffix)
        self.domain_of_host = bounded_cache(65_536)(self._find_domain)

    @classmethod
    def from_conf(cls, conf: Configuration) -> DomainRules:
        """Return the rules of the configuration; those of all configurations share their caches."""
        return _domain_rules(conf.get_bool("publicsuffix.private", False))

    @cached_property
    def _list(self) -> PublicSuffixList:
        from publicsuffixlist import PublicSuffixList

        return PublicSuffixList(only_icann=not self._has_private_suffixes, accept_unknown=False)

    def _find_suffix(self, host: str) -> str | None:
        """Return the public suffix of a host, in its ``xn--`` form, or None."""
        host = host.lower().removesuffix(".")
        if not host or host[0] in "[." or _IPV4.fullmatch(host):
            return None
        if not host.isascii():
            try:
                host = host_to_ascii(host)
            except ValueError:
                return None
        found = self._list.publicsuffix(host)
        return None if found is None else str(found)

    def _find_domain(self, host: str) -> str:
        """Return the registered domain of a host (public suffix and one label), or the host itself if it has none."""
        host = host.lower().removesuffix(".")
        suffix = self.suffix_of_host(host)
        if suffix is None:
            if not host or host[0] in "[." or _IPV4.fullmatch(host):
                return host
            suffix = host.rpartition(".")[2]
        labels = host.split(".")
        return ".".join(labels[-suffix.count(".") - 2 :])

    def domain_of(self, url: str) -> str:
        """Return the registered domain of the URL's host; raise ValueError if the URL is malformed."""
        return self.domain_of_host(parse_url(url).host)


@cache
def _domain_rules(has_private_suffixes: bool) -> DomainRules:
    return DomainRules(has_private_suffixes)


ICANN_DOMAINS = _domain_rules(False)
"""The rules by default."""
domain_of = ICANN_DOMAINS.domain_of
domain_of_host = ICANN_DOMAINS.domain_of_host
suffix_of_host = ICANN_DOMAINS.suffix_of_host


def host_of(url: str) -> str:
    """Return the host in lower case, "" if there is none; raise ValueError if the URL is malformed."""
    return parse_url(url).host.lower()


def suffix_of(url: str) -> str | None:
    """Return the public suffix (``co.uk``, international ones as ``xn--``), None for IPs and unknown suffixes."""
    return suffix_of_host(parse_url(url).host)


def tld_of(url: str) -> str | None:
    """Return the last label of the public suffix, None if there is none."""
    suffix = suffix_of(url)
    return None if suffix is None else suffix.rpartition(".")[2]


def parent_domains(host: str, max_length: int) -> Iterator[str]:
    """Yield the parent domains of a host, longest first, those with at most ``max_length`` characters.

    Callers pass the length of the longest name they look for: without a limit, a host of many dots takes quadratic
    time.
    """
    at = host.find(".", max(len(host) - max_length - 1, 0))
    while at >= 0:
        yield host[at + 1 :]
        at = host.find(".", at + 1)


def segments_of(url: str) -> list[str]:
    """Return the labels of the host; an IPv4 address is a single segment."""
    host = parse_url(url).host
    if _IPV4.fullmatch(host):
        return [host]
    labels = host.split(".")
    while len(labels) > 1 and not labels[-1]:  # Java's split drops empty labels at the end
        labels.pop()
    return labels


def choose_repr(source: str, target: str, temporary: bool, domains: DomainRules = ICANN_DOMAINS) -> str:
    """Return the end of a redirect that represents the page in the index (``URLUtil.chooseRepr``).

    Another domain: the target. Permanent: the source if it is a home page, else the target. Temporary: the one home
    page of the two; on one host the one with fewer path segments, then the shorter; else the host with fewer labels;
    ties go to the source.
    """
    try:
        src, dst = parse_url(source), parse_url(target)
    except ValueError:
        return target
    if domains.domain_of_host(src.host) != domains.domain_of_host(dst.host):
        return target
    src_root, dst_root = src.file in {"", "/"}, dst.file in {"", "/"}
    if not temporary:
        return source if src_root else target
    if src_root != dst_root:
        return source if src_root else target
    if not src_root and src.host == dst.host:
        src_size, dst_size = (_count_segments(src.file), len(src.file)), (_count_segments(dst.file), len(dst.file))
    else:
        src_size, dst_size = (src.host.count("."), 0), (dst.host.count("."), 0)
    return target if dst_size < src_size else source


def _count_segments(file: str) -> int:
    return len(file.rstrip("/").split("/"))
