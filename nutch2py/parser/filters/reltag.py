"""microformats-reltag: the tags of a page's ``<a rel="tag">`` links as metadata."""

from __future__ import annotations

from urllib.parse import unquote_plus, urlsplit

from nutch2py.interfaces import HtmlDocument, Parse, ParseFilter
from nutch2py.parser.html.dom import attribute_value
from nutch2py.records.record import RecordField
from nutch2py.records.webpage import WebPage
from nutch2py.url.url_parts import resolve_url

REL_TAG_KEY = "Rel-Tag"
"""Metadata entry: the tags in alphabetical order, each followed by a tab."""


class RelTagParser(ParseFilter):
    """Stores the last path segment of each such link (microformats.org, rel-tag).

    ``rel`` is a list of words and relative links are resolved, as the microformat requires; Nutch does neither.
    """

    java_class = "org.apache.nutch.microformats.reltag.RelTagParser"
    fields: frozenset[RecordField] = frozenset({WebPage.metadata})

    def filter(self, url: str, page: WebPage, parse: Parse, document: HtmlDocument) -> Parse:
        """Set the tags in ``page.metadata``; a page without tags gets an empty entry, as in Nutch."""
        tags = set()
        for node in document.tree.css("a[rel][href]"):
            attributes = node.attributes
            if "tag" not in attribute_value(attributes, "rel").lower().split():
                continue
            try:
                path = urlsplit(resolve_url(document.url, attribute_value(attributes, "href").strip())).path
            except ValueError:
                continue
            tag = unquote_plus(path.rpartition("/")[2])
            if tag:
                tags.add(tag)
        page.metadata[REL_TAG_KEY] = "".join(f"{tag}\t" for tag in sorted(tags)).encode("utf-8", "replace")
        return parse
