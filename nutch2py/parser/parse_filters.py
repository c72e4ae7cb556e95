"""Run the parse filters: plug-ins that read a parsed HTML page and add to it (Nutch's ParseFilters)."""

from __future__ import annotations

from nutch2py.conf.configuration import Configuration
from nutch2py.interfaces import HtmlDocument, Parse, ParseFilter
from nutch2py.plugins.loading import create_ordered_plugins
from nutch2py.plugins.plugin_failures import raise_plugin_error
from nutch2py.records.record import RecordField
from nutch2py.records.webpage import ParseStatusCode, WebPage


class ParseFilters:
    """Runs the enabled parse filters, those named in ``htmlparsefilter.order`` first."""

    def __init__(self, conf: Configuration) -> None:
        self._filters: list[ParseFilter] = create_ordered_plugins(conf, "parsefilter", "htmlparsefilter.order")
        self.needs_scripts = any(parse_filter.needs_scripts for parse_filter in self._filters)
        self.fields: frozenset[RecordField] = frozenset().union(*(f.fields for f in self._filters))

    def filter(self, url: str, page: WebPage, parse: Parse, document: HtmlDocument) -> Parse:
        """Return the filtered parse; a filter that returns None or a failure stops the chain and fails the parse."""
        for parse_filter in self._filters:
            try:
                filtered = parse_filter.filter(url, page, parse, document)
            except RecursionError:  # caused by the page: it is nested too deep
                raise
            except Exception as error:  # noqa: BLE001 - raised again with the plug-in's name
                raise_plugin_error(parse_filter, url, error)
            if filtered is None:
                message = f"{type(parse_filter).__name__} rejected the page"
                return Parse("", "", (), ParseStatusCode.FAILED, ParseStatusCode.EXCEPTION, (message,))
            parse = filtered
            if parse.major != ParseStatusCode.SUCCESS:
                break
        return parse
