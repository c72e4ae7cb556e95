"""parse-metatags: meta tags as metadata ``meta_<lower-case name>``, several values separated by tabs."""

from __future__ import annotations

from nutch2py.conf.configuration import Configuration
from nutch2py.interfaces import HtmlDocument, Parse, ParseFilter
from nutch2py.records.record import RecordField
from nutch2py.records.webpage import WebPage

META_PREFIX = "meta_"


class MetaTagsParseFilter(ParseFilter):
    """Stores the meta tags listed in ``metatags.names`` (``*``: all), named by ``name`` or ``http-equiv``.

    Nutch 2.4 also copies every existing metadata entry at each parse (``meta__csh_``, ``meta_meta__csh_``, …), so rows
    grow without limit. Here only the page's own tags are stored; an earlier Nutch's copies are neither removed nor
    multiplied. A listed tag that the page no longer has is removed.
    """

    java_class = "org.apache.nutch.parse.metatags.MetaTagsParser"
    fields: frozenset[RecordField] = frozenset({WebPage.metadata})

    def __init__(self, conf: Configuration) -> None:
        self._names = {name.lower() for name in conf.get_strings("metatags.names", ["*"])}

    def filter(self, url: str, page: WebPage, parse: Parse, document: HtmlDocument) -> Parse:
        """Set the page's tags in ``page.metadata``."""
        found = {name: "\t".join(values) for name, values in document.meta.general.items()}
        found.update(document.meta.http_equiv)  # as in Nutch, http-equiv wins over an equal name
        for name, value in found.items():
            if "*" in self._names or name in self._names:
                page.metadata[META_PREFIX + name] = value.encode("utf-8", "replace")
        for name in self._names - {"*"} - found.keys():
            page.metadata.pop(META_PREFIX + name, None)
        return parse
