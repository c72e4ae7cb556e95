"""Parse filter of index-structured: a page's structured data as one metadata entry."""

from __future__ import annotations

import orjson

from nutch2py.conf.configuration import Configuration
from nutch2py.interfaces import HtmlDocument, Parse, ParseFilter
from nutch2py.parser.html.structured_data import extract_structured_data
from nutch2py.records.record import RecordField
from nutch2py.records.webpage import WebPage
from nutch2py.support.formatting import valid_utf8

STRUCTURED_DATA_KEY = "structured"
"""Metadata entry: JSON of :func:`nutch2py.parser.html.structured_data.extract_structured_data`."""
_MAX_DEPTH = 40


class StructuredParseFilter(ParseFilter):
    """Stores at most ``parser.structured.max.bytes`` of JSON; drops the largest kinds when there is more."""

    fields: frozenset[RecordField] = frozenset({WebPage.metadata})

    def __init__(self, conf: Configuration) -> None:
        self._max_bytes = conf.get_int("parser.structured.max.bytes", 65536)

    def filter(self, url: str, page: WebPage, parse: Parse, document: HtmlDocument) -> Parse:
        """Set the data in ``page.metadata``; removes an earlier entry when the page has none."""
        kept = extract_structured_data(document.tree, document.html, document.meta.base_href or document.url)
        packed = {kind: orjson.dumps(to_valid_json(values)) for kind, values in kept.items()}
        while packed and sum(map(len, packed.values())) + 20 * len(packed) > self._max_bytes:
            packed.pop(max(packed, key=lambda kind: len(packed[kind])))
        if packed:
            joined = b",".join(b"%s:%s" % (orjson.dumps(kind), values) for kind, values in packed.items())
            page.metadata[STRUCTURED_DATA_KEY] = b"{%s}" % joined
        else:
            page.metadata.pop(STRUCTURED_DATA_KEY, None)
        return parse


def to_valid_json(value: object, depth: int = 0) -> object:
    """Return JSON with valid UTF-8 texts and 64-bit numbers, without levels deeper than the limit."""
    if isinstance(value, str):
        return valid_utf8(value)
    if isinstance(value, list | dict) and depth == _MAX_DEPTH:
        return None
    if isinstance(value, list):
        return [to_valid_json(each, depth + 1) for each in value]
    if isinstance(value, dict):
        return {to_valid_json(str(name)): to_valid_json(each, depth + 1) for name, each in value.items()}
    return str(value) if isinstance(value, int) and value.bit_length() > 63 else value
