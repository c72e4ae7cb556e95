"""SolrSchema: checks whether the fields of a collection accept documents, before the first one is sent."""

from __future__ import annotations

from collections.abc import Container, Mapping
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Any

from nutch2py.backends.servers.index_schema import DATE_FIELDS, IndexField, IndexSchema

EXPECTED_FIELDS = ("id", "url", "host", "title", "content", "tstamp", "digest", "boost", "batchId")
"""Fields of the documents of every crawl."""

_REQUIRED_KINDS = {
    "id": "string",
    "content": "text",  # a string is limited to 32,766 bytes
    "boost": "number",
    "pagerank": "number",
    **dict.fromkeys(DATE_FIELDS, "date"),
}


class SolrSchema(IndexSchema):
    """Fields and dynamic fields of a collection, from the response to ``GET /schema``."""

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
        """Return the field that stores ``name``, None when there is none. The longest dynamic pattern wins."""
        field = self.fields.get(name)
        if field is None:
            patterns = [pattern for pattern in self.dynamic_fields if fnmatchcase(name, pattern)]
            field = self.dynamic_fields[max(patterns, key=len)] if patterns else None
        return field

    def supports_in_place_update(self, name: str) -> bool:
        """Return whether Solr can update a field of a document without rebuilding the document from stored fields.

        It can if the field is a single number in docValues, neither indexed nor stored nor copied, and ``_version_`` is
        in docValues only, too (Solr's guide: "In-Place Updates").
        """
        copied = any(each.get("source") == name for each in self._schema.get("copyFields", ()))
        field = self.find_field(name)
        number = field is not None and field.kind == "number" and not field.is_multivalued
        return number and not copied and self._is_docvalues_only(name) and self._is_docvalues_only("_version_")

    def _is_docvalues_only(self, name: str) -> bool:
        field: Mapping[str, Any] = next((each for each in self._schema.get("fields", ()) if each["name"] == name), {})
        kinds = self._schema.get("fieldTypes", ())
        kind: Mapping[str, Any] = next((each for each in kinds if each["name"] == field.get("type")), {})
        defaults = {"indexed": True, "stored": True, "docValues": float(self._schema.get("version", 1.0)) >= 1.7}
        options = {each: field.get(each, kind.get(each, default)) for each, default in defaults.items()}
        return bool(field) and options == {"indexed": False, "stored": False, "docValues": True}

    def find_missing_required(self, names: Container[str]) -> dict[str, str]:
        """Return the required fields of the collection that are not among ``names``."""
        absent = sorted(name for name in self.required_fields if name not in names)
        return {name: f"the collection requires a field {name}, which documents lack" for name in absent}

    def accepts(self, field: IndexField, value: str) -> bool:
        """Return whether a field accepts a value; a date must end in ``Z``."""
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
    class_name = str(kind.get("class", "")).rpartition(".")[2]
    if class_name == "StrField":
        kind_name = "string"
    elif class_name in ("TextField", "SortableTextField"):
        kind_name = "text"
    elif "Date" in class_name:
        kind_name = "date"
    elif any(word in class_name for word in ("Int", "Long", "Float", "Double")):
        kind_name = "number"
    elif class_name == "BoolField":
        kind_name = "boolean"
    else:
        kind_name = "other"
    return IndexField(each["type"], kind_name, bool(each.get("multiValued", kind.get("multiValued", False))))
