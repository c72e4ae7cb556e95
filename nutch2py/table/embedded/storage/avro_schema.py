"""Checks the Avro schema that a table was written with when it is opened."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from nutch2py.conf.configuration import data_dir
from nutch2py.errors import StoreError


@lru_cache(maxsize=8)
def schema_text(name: str) -> str:
    """Return this version's Avro schema of the records ``name``."""
    return (data_dir("schema") / f"{name}.avsc").read_text(encoding="utf-8")


def check_schema(where: str, name: str, stored: str) -> None:
    """Raise :class:`StoreError` unless this version can read a table with the schema ``stored``."""
    ours = schema_text(name)
    if stored != ours:
        problem = find_incompatibility(ours, stored)
        if problem:
            raise StoreError(
                f"{where} was written with another schema of {name}: {problem}; export it with the version that "
                "wrote it (exporttable) and import it here"
            )


def find_incompatibility(reader: str, writer: str) -> str:
    """Return why records of the schema ``writer`` cannot be read with ``reader``, "" if they can.

    In addition to Avro's rules for readers and writers, a field must keep its type: a cell does not store its type, so
    Avro's promotions (int to long, float to double) cannot be applied.
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
            return f"field {field.name} is {_cell_type(field.type)} here and {types[field.name]} in the table"
    return ""


def _field_at(schema: Any, location: str) -> str:
    """Return the name of the top-level field of a location of avro's checker (``/fields/3/type/…``)."""
    parts = location.strip("/").split("/")
    if len(parts) < 2 or parts[0] != "fields" or not parts[1].isdigit():
        return ""
    return str(schema.fields[int(parts[1])].name)


def _cell_type(schema: Any) -> str:
    """Return the type of a cell: for a union with null, the other type."""
    branches = getattr(schema, "schemas", None) if schema.type == "union" else None
    kinds = [branch for branch in branches or [schema] if branch.type != "null"]
    if len(kinds) == 1 and kinds[0].type == "map":
        return f"map of {_cell_type(kinds[0].values)}"
    return " or ".join(str(getattr(kind, "name", None) or kind.type) for kind in kinds)
