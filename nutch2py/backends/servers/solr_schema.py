"""SolrSchema: does a collection take the documents that are to be sent? Asked before the first one is sent."""

from __future__ import annotations

from collections.abc import Container, Mapping
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Any

from nutch2py.backends.servers.index_schema import DATE_FIELDS, IndexField, IndexSchema

EXPECTED_FIELDS = ("id", "url", "host", "title", "content", "tstamp", "digest", "boost", "batchId")
"""What the documents of every crawl have."""

_REQUIRED_KINDS = {
    "id": "string",
    "content": "text",  # a string ends at 32,766 bytes
    "boost": "number",
    "pagerank": "number",
    **dict.fromkeys(DATE_FIELDS, "date"),
}


class SolrSchema(IndexSchema):
    """Fields and dynamic fields of a collection, made of the answer to ``GET /schema``."""

    required_kinds = _REQUIRED_KINDS
    single_value_problem = "takes one value, pages have several (set multiValued)"

    def __init__(self, response: Mapping[str, Any]) -> None:
        schema = response["schema"]
        types = {each["name"]: each for each in schema.get("fieldTypes", ())}
        self._schema = schema
        self.unique_key: str = schema.get("uniqueKey", "id")
        self.fields = {each["name"]: _parse_field(each, types) for each in schema.get("fields", ())}
        self.dynamic_fields = {each["name"]: _parse_field(each, types) for each in schema.get("dynamicFields", ())}
        self.required_fields = {
            each["name"]
            for each in schema.get("fields", ())
            if each.get("required") and "default" not in each and each["name"] != self.unique_key
        }

    def find_field(self, name: str) -> IndexField | None:
        """Return the field that takes ``name``, None when there is none. Of dynamic fields the longest pattern wins."""
        found = self.fields.get(name)
        if found is None:
            patterns = [pattern for pattern in self.dynamic_fields if fnmatchcase(name, pattern)]
            found = self.dynamic_fields[max(patterns, key=len)] if patterns else None
        return found

    def supports_in_place_update(self, name: str) -> bool:
        """Tell whether a field of a document can be set without making the document anew of what is stored.

        Solr does so with a number that has one value in docValues, is neither indexed nor stored nor copied, in a
        collection whose ``_version_`` is so, too (its guide: "In-Place Updates").
        """
        copied = any(each.get("source") == name for each in self._schema.get("copyFields", ()))
        field = self.find_field(name)
        number = field is not None and field.kind == "number" and not field.is_multivalued
        return number and not copied and self._is_docvalues_only(name) and self._is_docvalues_only("_version_")

    def _is_docvalues_only(self, name: str) -> bool:
        field: Mapping[str, Any] = next((each for each in self._schema.get("fields", ()) if each["name"] == name), {})
        kinds = self._schema.get("fieldTypes", ())
        kind: Mapping[str, Any] = next((each for each in kinds if each["name"] == field.get("type")), {})
        usual = {"indexed": True, "stored": True, "docValues": float(self._schema.get("version", 1.0)) >= 1.7}
        told = {each: field.get(each, kind.get(each, default)) for each, default in usual.items()}
        return bool(field) and told == {"indexed": False, "stored": False, "docValues": True}

    def find_missing_required(self, names: Container[str]) -> dict[str, str]:
        """Return the fields beside ``names`` without which the collection takes no document."""
        absent = sorted(name for name in self.required_fields if name not in names)
        return {name: f"it demands a field {name}, which documents do not have" for name in absent}

    def accepts(self, field: IndexField, value: str) -> bool:
        """Tell whether a field takes a value; a date ends in ``Z``."""
        try:
            if field.kind == "number":
                float(value)
            elif field.kind == "date":
                datetime.fromisoformat(value)
                return value.endswith("Z")
            elif field.kind == "boolean":
                return value.lower() in ("true", "false")
        except ValueError:
            return False
        return True


def _parse_field(each: Mapping[str, Any], types: Mapping[str, Mapping[str, Any]]) -> IndexField:
    kind = types.get(each["type"], {})
    name = str(kind.get("class", "")).rpartition(".")[2]
    if name == "StrField":
        shown = "string"
    elif name in ("TextField", "SortableTextField"):
        shown = "text"
    elif "Date" in name:
        shown = "date"
    elif any(word in name for word in ("Int", "Long", "Float", "Double")):
        shown = "number"
    elif name == "BoolField":
        shown = "boolean"
    else:
        shown = "other"
    return IndexField(each["type"], shown, bool(each.get("multiValued", kind.get("multiValued", False))))
