"""SolrSchema: does a collection take the documents that are to be sent? Asked before the first one is sent."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

EXPECTED = ("id", "url", "host", "title", "content", "tstamp", "digest", "boost", "batchId")
"""What the documents of every crawl have."""

_WANTED = {
    "id": "string",
    "content": "text",  # a string ends at 32,766 bytes
    "boost": "number",
    "pagerank": "number",
    **dict.fromkeys(("tstamp", "date", "lastModified", "publishedDate", "updatedDate"), "date"),
}


class SolrField(NamedTuple):
    """A field of a collection: its type's name, ``kind`` (text, string, date, number, boolean or other)."""

    type: str
    kind: str
    many: bool


class SolrSchema:
    """Fields and dynamic fields of a collection, made of the answer to ``GET /schema``."""

    def __init__(self, answer: Mapping[str, Any]) -> None:
        schema = answer["schema"]
        types = {each["name"]: each for each in schema.get("fieldTypes", ())}
        self.unique_key: str = schema.get("uniqueKey", "id")
        self.fields = {each["name"]: _field(each, types) for each in schema.get("fields", ())}
        self.dynamic = {each["name"]: _field(each, types) for each in schema.get("dynamicFields", ())}
        self.required = {
            each["name"]
            for each in schema.get("fields", ())
            if each.get("required") and "default" not in each and each["name"] != self.unique_key
        }

    def field(self, name: str) -> SolrField | None:
        """Return the field that takes ``name``, None when there is none. Of dynamic fields the longest pattern wins."""
        found = self.fields.get(name)
        if found is None:
            patterns = [pattern for pattern in self.dynamic if fnmatchcase(name, pattern)]
            found = self.dynamic[max(patterns, key=len)] if patterns else None
        return found

    def problems(self, columns: Mapping[str, Sequence[Sequence[str]]], origin: Mapping[str, str]) -> dict[str, str]:
        """Return what is wrong with fields: name -> one clause.

        ``columns``: field -> the values that it has in each of some documents. ``origin``: field of Solr -> field of
        Nutch, where they have different names.
        """
        wrong = {name: self._problem(name, rows, origin.get(name, name)) for name, rows in columns.items()}
        return {name: problem for name, problem in wrong.items() if problem}

    def missing(self, names: Iterable[str]) -> dict[str, str]:
        """Return the fields among ``names`` that the collection lacks, as :meth:`problems` does."""
        return {name: f"field {name} is missing" for name in names if self.field(name) is None}

    def demanded(self, names: Container[str]) -> dict[str, str]:
        """Return the fields beside ``names`` without which the collection takes no document."""
        absent = sorted(name for name in self.required if name not in names)
        return {name: f"it demands a field {name}, which documents do not have" for name in absent}

    def _problem(self, name: str, rows: Sequence[Sequence[str]], nutch_name: str) -> str:
        field = self.field(name)
        if field is None:
            return f"field {name} is missing"
        wanted = _WANTED.get(nutch_name, "")
        if wanted and field.kind not in (wanted, "other"):
            return f"field {name} has the type {field.type}, a {wanted} is needed"
        if not field.many and any(len(values) > 1 for values in rows):
            return f"field {name} takes one value, pages have several (set multiValued)"
        # one value that does not fit is a bad document, which Solr refuses; when none fits, it is the field
        if not wanted and not any(_takes(field, value) for values in rows for value in values):
            return f"field {name} has the type {field.type}, which does not take {rows[0][0][:40]!r}"
        return ""


def _takes(field: SolrField, value: str) -> bool:
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


def _field(each: Mapping[str, Any], types: Mapping[str, Mapping[str, Any]]) -> SolrField:
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
    return SolrField(each["type"], shown, bool(each.get("multiValued", kind.get("multiValued", False))))
