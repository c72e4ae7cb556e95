"""index-structured: fields from structured data of pages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from nutch2py.conf.configuration import Configuration
from nutch2py.interfaces import IndexingFilter
from nutch2py.parser.filters.structured_filter import STRUCTURED_DATA_KEY
from nutch2py.records.document import NutchDocument
from nutch2py.records.webpage import WebPage

_MAX_VALUES = 20
_MAX_VALUE_CHARACTERS = 1000
_SCHEMA_PREFIX = "schema:"
_NAME_PROPERTIES = ("name", "headline", "title", "url", "@id")  # text of an item that is a value itself


class StructuredIndexingFilter(IndexingFilter):
    """Adds the properties in ``index.structured.fields``; field names have ``_`` instead of ``:``.

    ``og:…``, ``twitter:…`` and other prefixed names are meta elements. ``schema:NAME`` is a property of items in
    JSON-LD, microdata or RDFa, and ``schema:type`` their types. ``link:canonical``, ``link:next``, ``link:prev`` and
    ``link:hreflang`` (language, space, URL) are links. A field has at most 20 distinct values of 1,000 characters.
    """

    fields = frozenset({WebPage.metadata})

    def __init__(self, conf: Configuration) -> None:
        self._property_names = conf.get_strings("index.structured.fields")

    def filter(self, document: NutchDocument, url: str, page: WebPage) -> NutchDocument | None:
        """Add the fields."""
        cell = page.metadata.get(STRUCTURED_DATA_KEY)
        if cell is None:
            return document
        try:
            data = orjson.loads(cell)
        except ValueError:
            return document
        for name in self._property_names:
            for value in list(dict.fromkeys(_iter_values(data, name)))[:_MAX_VALUES]:
                document.add(name.replace(":", "_"), value[:_MAX_VALUE_CHARACTERS])
        return document


def _iter_values(data: dict[str, Any], name: str) -> Iterator[str]:
    """Yield the values of a property."""
    if name.startswith(_SCHEMA_PREFIX):
        property_name = name.removeprefix(_SCHEMA_PREFIX)
        for item in _iter_items([data.get("jsonld"), data.get("microdata"), data.get("rdfa")]):
            yield from _iter_property_values(item, property_name)
    elif name.startswith("link:"):
        links = data.get("links", {}).get(name.removeprefix("link:"))
        if isinstance(links, dict):
            yield from (f"{language} {url}" for language, url in links.items())
        elif links:
            yield links
    else:
        yield from data.get("meta", {}).get(name.lower(), [])


def _iter_items(data: object) -> Iterator[dict[str, object]]:
    """Yield every object, including nested ones."""
    waiting = [data]
    while waiting:
        value = waiting.pop()
        if isinstance(value, list):
            waiting += value[::-1]
        elif isinstance(value, dict):
            yield value
            waiting += [*value.values()][::-1]


def _iter_property_values(item: dict[str, object], property_name: str) -> Iterator[str]:
    """Yield the values of a property of an item; the text of a nested item is its name."""
    if property_name == "type":
        types = item.get("type" if "properties" in item else "@type", [])
        for each in types if isinstance(types, list) else [types]:
            if isinstance(each, str):
                yield _local_name(each)
        return
    properties = item.get("properties", item)
    for name, values in properties.items() if isinstance(properties, dict) else ():
        if _local_name(name) == property_name:
            for value in values if isinstance(values, list) else [values]:
                yield from _iter_texts(value)


def _local_name(name: str) -> str:
    return name.rstrip("/").rpartition("/")[2].rpartition("#")[2].rpartition(":")[2]


def _iter_texts(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(whole := value.get("value"), str) and whole:
            yield whole
            return
        inner = value.get("properties", value)
        for label in _NAME_PROPERTIES:
            named = inner.get(label) if isinstance(inner, dict) else None
            named = named[0] if isinstance(named, list) and named else named
            if isinstance(named, str) and named.strip():
                yield named.strip()
                return
        if isinstance(literal := value.get("@value"), str | int | float):
            yield str(literal)
    elif isinstance(value, str):
        if value.strip():
            yield value.strip()
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield str(value)
