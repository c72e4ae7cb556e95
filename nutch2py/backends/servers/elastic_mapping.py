"""Mappings of Elasticsearch and OpenSearch: the definition of a new index, and whether fields accept documents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from nutch2py.backends.index_fields import TERMS_PREFIX
from nutch2py.backends.servers.index_schema import DATE_FIELDS, IndexField, IndexSchema
from nutch2py.conf.configuration import Configuration, data_dir
from nutch2py.errors import ConfigurationError

_TEXT_TYPES = ("text", "match_only_text", "search_as_you_type")
_STRING_TYPES = ("keyword", "wildcard", "constant_keyword")
_DATE_TYPES = ("date", "date_nanos")
_INTEGER_TYPES = ("long", "integer", "short", "byte", "unsigned_long")
_FLOAT_TYPES = ("double", "float", "half_float", "scaled_float")
_OBJECT_TYPES = ("object", "nested")


class ElasticMapping(IndexSchema):
    """The fields of one index, from its part of the response to ``GET /INDEX/_mapping``.

    Every field accepts several values. The first document with an unmapped field creates it, unless the index forbids
    that (``"dynamic": "strict"``).
    """

    required_kinds: Mapping[str, str] = {
        "content": "text",  # a keyword is limited to 32,766 bytes
        "boost": "number",
        "pagerank": "number",
        **dict.fromkeys(DATE_FIELDS, "date"),
    }

    def __init__(self, response: Mapping[str, Any]) -> None:
        mappings = response.get("mappings", {})
        self.fields = dict(_iter_fields(mappings.get("properties", {}), ""))
        self.source_options: Mapping[str, Any] = mappings.get("_source", {})
        self.is_strict = str(mappings.get("dynamic", "true")).lower() == "strict"

    def find_field(self, name: str) -> IndexField | None:
        """Return the field ``name``; for an unmapped field of a dynamic index, one that accepts everything."""
        field = self.fields.get(name)
        return IndexField("dynamic", "other", True) if field is None and not self.is_strict else field

    @property
    def has_terms_fields(self) -> bool:
        """Whether the index has the term fields that our search requires."""
        field = self.fields.get(f"{TERMS_PREFIX}content")
        return field is not None and field.kind == "text"

    @property
    def has_full_source(self) -> bool:
        """Whether ``_source`` holds everything that is sent, so that the server can rebuild a document from it."""
        excluded = [
            name
            for name in self.source_options.get("excludes", ())
            if self.has_terms_fields or name != f"{TERMS_PREFIX}*"
        ]
        return (
            bool(self.source_options.get("enabled", True)) and not self.source_options.get("includes") and not excluded
        )

    def find_type_problems(self) -> dict[str, str]:
        """Return the problems of Nutch's fields with any document, as :meth:`find_problems` does."""
        return self.find_problems({name: [] for name in self.required_kinds if name in self.fields}, {})

    def accepts(self, field: IndexField, value: str) -> bool:
        """Return whether a field accepts a text."""
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


def _iter_fields(properties: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, IndexField]]:
    for name, each in properties.items():
        kind = str(each.get("type", "object"))
        yield (
            f"{prefix}{name}",
            IndexField(kind, _kind_of_type(kind), True, "format" in each or "ignore_malformed" in each),
        )
        yield from _iter_fields(each.get("properties", {}), f"{prefix}{name}.")


def _kind_of_type(name: str) -> str:
    if name in _TEXT_TYPES:
        return "text"
    if name in _STRING_TYPES:
        return "string"
    if name in _DATE_TYPES:
        return "date"
    if name in (*_INTEGER_TYPES, *_FLOAT_TYPES):
        return "number"
    if name in _OBJECT_TYPES:
        return "object"
    return name if name == "boolean" else "other"


def read_index_definition(conf: Configuration) -> bytes:
    """Return settings and mappings of a new index as JSON (``elastic.index.file``).

    Raises:
        ConfigurationError: The file is missing or invalid.
    """
    import orjson

    name = conf.get_trimmed("elastic.index.file")
    path = conf.resource(name) if name else data_dir("schema") / "elastic" / "index.json"
    if path is None:
        raise ConfigurationError(
            f"elastic.index.file is {name}, which is not in the configuration folder: put it there"
        )
    try:
        definition = path.read_bytes()
        orjson.loads(definition)
    except (OSError, orjson.JSONDecodeError) as error:
        raise ConfigurationError(f"cannot read {path}: {error}: repair the file's JSON") from error
    return definition
