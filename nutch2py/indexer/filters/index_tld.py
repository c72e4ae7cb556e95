"""tld: the public suffix of a page's host."""

from __future__ import annotations

from nutch2py.conf.configuration import Configuration
from nutch2py.interfaces import IndexingFilter
from nutch2py.records.document import NutchDocument
from nutch2py.records.record import RecordField
from nutch2py.records.webpage import WebPage
from nutch2py.url.idn import host_to_unicode
from nutch2py.url.url_parts import ICANN_DOMAINS, DomainRules, host_of


def unicode_suffix(url: str, domains: DomainRules = ICANN_DOMAINS) -> str | None:
    """Return the public suffix in Unicode, or the last label without one; None for an address or a single label."""
    host = host_of(url)
    suffix = domains.suffix_of_host(host)
    if suffix is None:
        _, dot, suffix = host.removesuffix(".").rpartition(".")
        if not dot or suffix.isdecimal() or suffix.endswith("]"):
            return None
    try:
        return host_to_unicode(suffix)
    except ValueError:
        return suffix


class TLDIndexingFilter(IndexingFilter):
    """Adds ``tld``: ``org``, ``co.uk``, ``組織.tw``."""

    java_class = "org.apache.nutch.indexer.tld.TLDIndexingFilter"
    fields: frozenset[RecordField] = frozenset()

    def __init__(self, conf: Configuration) -> None:
        self._domains = DomainRules.from_conf(conf)

    def filter(self, document: NutchDocument, url: str, page: WebPage) -> NutchDocument | None:
        """Add the suffix, if the host has one."""
        suffix = unicode_suffix(url, self._domains)
        if suffix:
            document.add("tld", suffix)
        return document
