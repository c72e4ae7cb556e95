"""Exported pages as Arrow tables and Parquet files (extra ``export``)."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator, Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import orjson

from nutch2py.errors import ConfigurationError
from nutch2py.jobs.export.export_columns import EXPORT_COLUMNS
from nutch2py.version import __version__

if TYPE_CHECKING:
    import pyarrow

BLOCK_BYTES = 16 << 20
"""Bytes of JSON lines in a row group."""
_GENERATOR = f"nutch2py {__version__}"


def require_pyarrow(used_by: str) -> Any:
    """Return the package pyarrow; raise ConfigurationError with installation instructions when it is missing."""
    try:
        import pyarrow
    except ImportError as error:
        raise ConfigurationError(
            f"{used_by} needs the package pyarrow, which is not installed ({error}): pip install 'nutch2py[export]'"
        ) from None
    return pyarrow


def make_schema(columns: Sequence[str]) -> pyarrow.Schema:
    """Return the Arrow schema of columns, by their names in :data:`EXPORT_COLUMNS`."""
    pa = require_pyarrow("an Arrow table")
    pairs = {
        "links": pa.list_(pa.struct([("url", pa.string()), ("anchor", pa.string())])),
        "headers": pa.list_(pa.struct([("name", pa.string()), ("value", pa.string())])),
        "timestamp": pa.timestamp("ms", "UTC"),
    }
    types = {name: EXPORT_COLUMNS[name].type for name in columns}
    return pa.schema(
        [pa.field(name, pairs.get(kind) or getattr(pa, kind)()) for name, kind in types.items()],
        metadata={"generator": _GENERATOR},
    )


def read_json_lines(source: BinaryIO, schema: pyarrow.Schema) -> Iterator[pyarrow.Table]:
    """Yield tables of some thousand rows of JSON lines. A line may have any length."""
    while lines := source.readlines(BLOCK_BYTES):
        yield make_table(lines, schema)


def make_table(lines: Sequence[bytes], schema: pyarrow.Schema) -> pyarrow.Table:
    """Return the table of some JSON lines, each a row with values of the schema's columns."""
    pa = require_pyarrow("an Arrow table")
    from pyarrow import json

    binary = [field.name for field in schema if pa.types.is_binary(field.type)]
    as_text = schema
    for name in binary:
        as_text = as_text.set(as_text.get_field_index(name), pa.field(name, pa.string()))
    block = b"".join(lines)
    table = json.read_json(
        BytesIO(block),
        read_options=json.ReadOptions(use_threads=False, block_size=len(block) + 1),
        parse_options=json.ParseOptions(explicit_schema=as_text, unexpected_field_behavior="error"),
    )
    for name in binary:
        at, texts = schema.get_field_index(name), table.column(name).to_pylist()
        values = pa.array([None if text is None else b64decode(text) for text in texts], pa.binary())
        table = table.set_column(at, pa.field(name, pa.binary()), values)
    return table.select(schema.names).cast(schema)


def write_parquet(source: BinaryIO, target: Path, columns: Sequence[str]) -> None:
    """Write a Parquet file (zstd, with page index) of JSON lines, one row group for about 16 MiB of them."""
    require_pyarrow("-format parquet")
    from pyarrow import parquet

    schema = make_schema(columns)
    with parquet.ParquetWriter(target, schema, compression="zstd", write_page_index=True) as writer:
        for table in read_json_lines(source, schema):
            writer.write_table(table)


def rows_to_tables(rows: Iterator[dict[str, object]], schema: pyarrow.Schema) -> Iterator[pyarrow.Table]:
    """Yield the tables of rows with JSON values, about 16 MiB of JSON each."""
    lines: list[bytes] = []
    size = 0
    for row in rows:
        lines.append(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE))
        size += len(lines[-1])
        if size >= BLOCK_BYTES:
            yield make_table(lines, schema)
            lines, size = [], 0
    if lines:
        yield make_table(lines, schema)
