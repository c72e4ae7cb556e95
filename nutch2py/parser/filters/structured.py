"""index-structured, the part of the parser: what a page says of itself for machines, as one entry of metadata."""

from __future__ import annotations

from typing import Any

import orjson

from nutch2py.conf import Configuration
from nutch2py.contracts import HtmlDocument, Parse, ParseFilter
from nutch2py.parser.structured import structured_data
from nutch2py.record import Field
from nutch2py.webpage import WebPage

STRUCTURED = "structured"
"""Metadata entry: JSON of :func:`nutch2py.parser.structured.structured_data`."""
_DEEPEST = 40


class StructuredParseFilter(ParseFilter):
    """Keeps at most ``parser.structured.max.bytes`` of JSON; the largest kinds go first when it is more."""

    fields: frozenset[Field[Any]] = frozenset({WebPage.metadata})

    def __init__(self, conf: Configuration) -> None:
        self._most = conf.get_int("parser.structured.max.bytes", 65536)

    def filter(self, url: str, page: WebPage, parse: Parse, document: HtmlDocument) -> Parse:
        """Put the data into ``page.metadata``; an entry of an earlier parse goes when there are none."""
        kept = structured_data(document.tree, document.html, document.meta.base_href or document.url)
        packed = {kind: orjson.dumps(valid(values)) for kind, values in kept.items()}
        while packed and sum(map(len, packed.values())) + 20 * len(packed) > self._most:
            packed.pop(max(packed, key=lambda kind: len(packed[kind])))
        if packed:
            joined = b",".join(b"%s:%s" % (orjson.dumps(kind), values) for kind, values in packed.items())
            page.metadata[STRUCTURED] = b"{%s}" % joined
        else:
            page.metadata.pop(STRUCTURED, None)
        return parse


def valid(value: Any, depth: int = 0) -> Any:
    """Return JSON whose texts can be written as UTF-8, and whose numbers as 64 bits, without what lies too deep."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, list | dict) and depth == _DEEPEST:
        return None
    if isinstance(value, list):
        return [valid(each, depth + 1) for each in value]
    if isinstance(value, dict):
        return {valid(str(name)): valid(each, depth + 1) for name, each in value.items()}
    return str(value) if isinstance(value, int) and value.bit_length() > 63 else value
