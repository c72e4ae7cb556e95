"""subcollection: names of parts of the web, defined by URLs in subcollections.xml."""

from __future__ import annotations

from typing import NamedTuple

from nutch2py.conf.configuration import Configuration
from nutch2py.indexer.filters.index_metadata import metadata_values
from nutch2py.interfaces import IndexingFilter
from nutch2py.records.document import NutchDocument
from nutch2py.records.webpage import WebPage


class Subcollection(NamedTuple):
    """A name for URLs that contain a text of ``whitelist`` and none of ``blacklist``; ``key``: field, or ""."""

    name: str
    whitelist: tuple[str, ...]
    blacklist: tuple[str, ...]
    key: str = ""

    def filter(self, url: str) -> str | None:
        """Return the URL when it belongs to the subcollection, else None."""
        if any(text in url for text in self.blacklist):
            return None
        return url if any(text in url for text in self.whitelist) else None


def split_lines(text: str | None, lower_case: bool = False) -> tuple[str, ...]:
    """Return the non-empty lines of a text, trimmed; in lower case if ``lower_case``."""
    lines = (line.strip() for line in (text or "").splitlines())
    return tuple(line.lower() if lower_case else line for line in lines if line)


def read_subcollections(conf: Configuration, lower_case: bool = False) -> list[Subcollection]:
    """Read the file ``subcollections.config``; return an empty list without it."""
    name = conf.get_trimmed("subcollections.config", "subcollections.xml")
    root = conf.resource_xml(name)
    if root is None:
        return []
    return [
        Subcollection(
            (element.findtext("name") or element.findtext("id") or "").strip(),
            split_lines(element.findtext("whitelist"), lower_case),
            split_lines(element.findtext("blacklist"), lower_case),
            (element.findtext("key") or "").strip(),
        )
        for element in root.iter("subcollection")
    ]


class SubcollectionIndexingFilter(IndexingFilter):
    """Adds the names of the subcollections of a URL, in the order of the file.

    ``subcollection.default.fieldname``: the field (``subcollection``) of subcollections without ``<key>``.
    ``subcollection.case.insensitive``. ``subcollection.metadata.source``: a metadata entry, by default
    ``subcollection``, in which a page names its subcollection; it takes precedence over the file.
    """

    java_class = "org.apache.nutch.indexer.subcollection.SubcollectionIndexingFilter"
    fields = frozenset({WebPage.metadata})

    def __init__(self, conf: Configuration) -> None:
        self.default_field = conf.get_trimmed("subcollection.default.fieldname", "subcollection")
        self.ignores_case = conf.get_bool("subcollection.case.insensitive", False)
        self.metadata_key = conf.get_trimmed("subcollection.metadata.source", "subcollection")
        self.subcollections = read_subcollections(conf, self.ignores_case)

    def filter(self, document: NutchDocument, url: str, page: WebPage) -> NutchDocument | None:
        """Add the names."""
        own = [value.strip() for value in metadata_values(page, self.metadata_key) if value.strip()]
        if own:
            document.add(self.default_field, own[0])
            return document
        text = url.lower() if self.ignores_case else url
        for each in self.subcollections:
            if each.filter(text) is not None:
                document.add(each.key or self.default_field, each.name)
        return document
