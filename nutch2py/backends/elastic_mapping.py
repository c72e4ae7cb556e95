"""ElasticMapping: the fields of an index of Elasticsearch or OpenSearch, and what they do not take."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from nutch2py.backends.field_types import DATES, IndexField, IndexFields
from nutch2py.backends.index_folder import TERMS

_TEXT = ("text", "match_only_text", "search_as_you_type")
_STRING = ("keyword", "wildcard", "constant_keyword")
_DATE = ("date", "date_nanos")
_WHOLE = ("long", "integer", "short", "byte", "unsigned_long")
_DECIMAL = ("double", "float", "half_float", "scaled_float")
_OBJECT = ("object", "nested")


class ElasticMapping(IndexFields):
    """The fields of one index, made of its part of the answer to ``GET /INDEX/_mapping``.

    Every field takes several values, and a field that is not there is made by the first document that has it, unless
    the index forbids that (``"dynamic": "strict"``).
    """

    wanted: Mapping[str, str] = {
        "content": "text",  # a keyword ends at 32,766 bytes
        "boost": "number",
        "pagerank": "number",
        **dict.fromkeys(DATES, "date"),
    }

    def __init__(self, answer: Mapping[str, Any]) -> None:
        mappings = answer.get("mappings", {})
        self.fields = dict(_fields(mappings.get("properties", {}), ""))
        self.source: Mapping[str, Any] = mappings.get("_source", {})
        self.strict = str(mappings.get("dynamic", "true")).lower() == "strict"

    def field(self, name: str) -> IndexField | None:
        """Return the field ``name``; of one that would be made, a field that takes everything."""
        found = self.fields.get(name)
        return IndexField("dynamic", "other", True) if found is None and not self.strict else found

    @property
    def takes_terms(self) -> bool:
        """Whether the index has the fields that our search asks."""
        field = self.fields.get(f"{TERMS}content")
        return field is not None and field.kind == "text"

    @property
    def keeps_all(self) -> bool:
        """Whether ``_source`` has all that is sent, so that a document can be made anew of it with other values."""
        left_out = [name for name in self.source.get("excludes", ()) if self.takes_terms or name != f"{TERMS}*"]
        return bool(self.source.get("enabled", True)) and not self.source.get("includes") and not left_out

    def unfit(self) -> dict[str, str]:
        """Return what is wrong with fields that Nutch knows, whatever documents will hold, as :meth:`problems` does."""
        return self.problems({name: [] for name in self.wanted if name in self.fields}, {})

    def takes(self, field: IndexField, value: str) -> bool:
        """Tell whether a field takes a text."""
        try:
            if field.kind == "number":
                float(value)
            elif field.type == "date":
                datetime.fromisoformat(value)
            elif field.kind == "boolean":
                return value in ("true", "false", "")
        except ValueError:
            return False
        return field.kind != "object"


def _fields(properties: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, IndexField]]:
    for name, each in properties.items():
        kind = str(each.get("type", "object"))
        yield f"{prefix}{name}", IndexField(kind, _kind(kind), True, "format" in each or "ignore_malformed" in each)
        yield from _fields(each.get("properties", {}), f"{prefix}{name}.")


def _kind(name: str) -> str:
    if name in _TEXT:
        return "text"
    if name in _STRING:
        return "string"
    if name in _DATE:
        return "date"
    if name in (*_WHOLE, *_DECIMAL):
        return "number"
    if name in _OBJECT:
        return "object"
    return name if name == "boolean" else "other"
