"""headings (Nutch 1): the text of headings as metadata, one entry per element, values separated by tabs."""

from __future__ import annotations

from nutch2py.conf.configuration import Configuration
from nutch2py.interfaces import HtmlDocument, Parse, ParseFilter
from nutch2py.parser.html.dom import node_text
from nutch2py.records.record import RecordField
from nutch2py.records.webpage import WebPage


class HeadingsParseFilter(ParseFilter):
    """Stores the elements listed in ``headings``: the first of each, or all with ``headings.multivalued``."""

    java_class = "org.apache.nutch.parse.headings.HeadingsParseFilter"
    fields: frozenset[RecordField] = frozenset({WebPage.metadata})

    def __init__(self, conf: Configuration) -> None:
        self.tag_names = conf.get_strings("headings", ("h1", "h2"))
        self.keeps_all = conf.get_bool("headings.multivalued", False)

    def filter(self, url: str, page: WebPage, parse: Parse, document: HtmlDocument) -> Parse:
        """Set the headings in ``page.metadata``; removes entries without headings."""
        for name in self.tag_names:
            nodes = document.tree.css(name.lower())
            texts = (" ".join(node_text(node).split()) for node in (nodes if self.keeps_all else nodes[:1]))
            value = "\t".join(text for text in texts if text)
            if value:
                page.metadata[name] = value.encode()
            else:
                page.metadata.pop(name, None)
        return parse
