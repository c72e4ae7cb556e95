"""index-structured: fields of what pages say of themselves for machines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from nutch2py.conf import Configuration
from nutch2py.contracts import IndexingFilter
from nutch2py.document import NutchDocument
from nutch2py.parser.filters.structured import STRUCTURED
from nutch2py.webpage import WebPage

_MOST_VALUES = 20
_MOST_CHARACTERS = 1000
_SCHEMA = "schema:"
_LABELS = ("name", "headline", "title", "url", "@id")  # what a thing is called, when it is a value itself


class StructuredIndexingFilter(IndexingFilter):
    """Adds the properties that ``index.structured.fields`` lists, each as a field whose name has ``_`` for ``:``.

    ``og:…``, ``twitter:…`` and whatever else a meta element says in this form; ``schema:NAME``, a property of things in
    JSON-LD, microdata or RDFa, and ``schema:type``, what they are; ``link:canonical``, ``link:next``, ``link:prev`` and
    ``link:hreflang`` (language, space, URL). A field has 20 values of 1,000 characters at most, each once.
    """

    fields = frozenset({WebPage.metadata})

    def __init__(self, conf: Configuration) -> None:
        self._names = conf.get_strings("index.structured.fields")

    def filter(self, document: NutchDocument, url: str, page: WebPage) -> NutchDocument | None:
        """Add the fields."""
        cell = page.metadata.get(STRUCTURED)
        if cell is None:
            return document
        try:
            data = orjson.loads(cell)
        except ValueError:
            return document
        for name in self._names:
            for value in list(dict.fromkeys(_values(data, name)))[:_MOST_VALUES]:
                document.add(name.replace(":", "_"), value[:_MOST_CHARACTERS])
        return document


def _values(data: dict[str, Any], name: str) -> Iterator[str]:
    """Yield what is said under a name."""
    if name.startswith(_SCHEMA):
        wanted = name.removeprefix(_SCHEMA)
        for thing in _things([data.get("jsonld"), data.get("microdata"), data.get("rdfa")]):
            yield from _said(thing, wanted)
    elif name.startswith("link:"):
        found = data.get("links", {}).get(name.removeprefix("link:"))
        if isinstance(found, dict):
            yield from (f"{language} {url}" for language, url in found.items())
        elif found:
            yield found
    else:
        yield from data.get("meta", {}).get(name.lower(), [])


def _things(data: Any) -> Iterator[dict[str, Any]]:
    """Yield every object, those within others, too."""
    waiting = [data]
    while waiting:
        value = waiting.pop()
        if isinstance(value, list):
            waiting += value[::-1]
        elif isinstance(value, dict):
            yield value
            waiting += [*value.values()][::-1]


def _said(thing: dict[str, Any], wanted: str) -> Iterator[str]:
    """Yield the values of one property of a thing; another thing is called by its name."""
    if wanted == "type":
        types = thing.get("type" if "properties" in thing else "@type", [])
        for each in types if isinstance(types, list) else [types]:
            if isinstance(each, str):
                yield _local(each)
        return
    properties = thing.get("properties", thing)
    for name, values in properties.items() if isinstance(properties, dict) else ():
        if _local(name) == wanted:
            for value in values if isinstance(values, list) else [values]:
                yield from _text(value)


def _local(name: str) -> str:
    return name.rstrip("/").rpartition("/")[2].rpartition("#")[2].rpartition(":")[2]


def _text(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(whole := value.get("value"), str) and whole:
            yield whole
            return
        inner = value.get("properties", value)
        for label in _LABELS:
            named = inner.get(label) if isinstance(inner, dict) else None
            named = named[0] if isinstance(named, list) and named else named
            if isinstance(named, str) and named.strip():
                yield named.strip()
                return
        if isinstance(said := value.get("@value"), str | int | float):
            yield str(said)
    elif isinstance(value, str):
        if value.strip():
            yield value.strip()
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield str(value)
