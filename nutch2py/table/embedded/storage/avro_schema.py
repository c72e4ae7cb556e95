"""The Avro schema that a table was written with, checked when it is opened."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from nutch2py.conf.configuration import data_dir
from nutch2py.errors import StoreError


@lru_cache(maxsize=8)
def schema_text(name: str) -> str:
    """Return the Avro schema of this program for the records called ``name``."""
    return (data_dir("schema") / f"{name}.avsc").read_text(encoding="utf-8")


def check_schema(where: str, name: str, stored: str) -> None:
    """Raise :class:`StoreError` unless this program can read a table of the schema ``stored``."""
    ours = schema_text(name)
    if stored != ours:
        problem = find_incompatibility(ours, stored)
        if problem:
            raise StoreError(
                f"{where} was written with another schema of {name}: {problem}; export it with the program that "
                "wrote it (exporttable) and import it here"
            )


def find_incompatibility(reader: str, writer: str) -> str:
    """Return what keeps records of the schema ``writer`` from being read with ``reader``, "" when nothing does.

    Beyond Avro's rules for readers and writers a field must keep its type: a cell says nothing of its own type, so
    Avro's promotions (int to long, float to double) cannot be applied to it.
    """
    import avro.errors
    import avro.schema
    from avro.compatibility import ReaderWriterCompatibilityChecker, SchemaCompatibilityType

    try:
        written: Any = avro.schema.parse(writer)
    except avro.errors.AvroException as error:
        return f"its schema is not readable ({error})"
    read: Any = avro.schema.parse(reader)
    checker: Any = ReaderWriterCompatibilityChecker  # avro's own types are incomplete
    result = checker().get_compatibility(read, written)
    if result.compatibility is not SchemaCompatibilityType.compatible:
        fields = sorted({_field_at(read, location) for location in result.locations} - {""})
        return f"field {', '.join(fields) or '?'}: {'; '.join(sorted(result.messages))}"
    types = {field.name: _cell_type(field.type) for field in written.fields}
    for field in read.fields:
        if types.get(field.name, _cell_type(field.type)) != _cell_type(field.type):
            return f"field {field.name} is {_cell_type(field.type)} here and {types[field.name]} there"
    return ""


def _field_at(schema: Any, location: str) -> str:
    """Return the name of the top-level field that a location of avro's checker (``/fields/3/type/…``) lies in."""
    parts = location.strip("/").split("/")
    if len(parts) < 2 or parts[0] != "fields" or not parts[1].isdigit():
        return ""
    return str(schema.fields[int(parts[1])].name)


def _cell_type(schema: Any) -> str:
    """Return the type as it shows in a cell: a union with null is the other type."""
    branches = getattr(schema, "schemas", None) if schema.type == "union" else None
    kinds = [branch for branch in branches or [schema] if branch.type != "null"]
    if len(kinds) == 1 and kinds[0].type == "map":
        return f"map of {_cell_type(kinds[0].values)}"
    return " or ".join(str(getattr(kind, "name", None) or kind.type) for kind in kinds)
