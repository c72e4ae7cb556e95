"""tld: the public suffix of a page's host."""

from __future__ import annotations

from typing import Any

from nutch2py.conf import Configuration
from nutch2py.contracts import IndexingFilter
from nutch2py.document import NutchDocument
from nutch2py.record import Field
from nutch2py.url.idn import host_to_unicode
from nutch2py.url.parts import host_of, suffix_of_host
from nutch2py.webpage import WebPage


def suffix_shown(url: str) -> str | None:
    """Return the public suffix in Unicode, the last label when the list has none; None for an address or one label."""
    host = host_of(url)
    suffix = suffix_of_host(host)
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
    fields: frozenset[Field[Any]] = frozenset()

    def __init__(self, conf: Configuration) -> None:
        """Take no property."""

    def filter(self, document: NutchDocument, url: str, page: WebPage) -> NutchDocument | None:
        """Add the suffix, if the host has one."""
        suffix = suffix_shown(url)
        if suffix:
            document.add("tld", suffix)
        return document
