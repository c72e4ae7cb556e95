"""Encoding of cells: the bytes that Nutch 2 (Gora 0.8, HBaseByteInterface) writes into HBase for each Avro type.

Integers and floats are big-endian and of fixed width; text is UTF-8; a union with null is the bare value; the two
status records are Avro binary without a header. A cell too short for its number makes the Java jobs die; here it raises
:class:`CellError`, to which a record's field adds the column. Bytes past the width are ignored, as by HBase's
``Bytes``.
"""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from nutch2py.conf.configuration import data_dir
from nutch2py.support.bounded_cache import bounded_cache

_INT, _LONG, _FLOAT = struct.Struct(">i"), struct.Struct(">q"), struct.Struct(">f")


class CellError(ValueError):
    """The bytes of a cell are not a value of the column's type."""


class ProtocolStatus(NamedTuple):
    """Result of a protocol: a code of :class:`nutch2py.records.webpage.ProtocolStatusCode`, and its arguments."""

    code: int
    args: tuple[str, ...] = ()
    last_modified: int = 0


class ParseStatus(NamedTuple):
    """Result of a parse: codes of :class:`nutch2py.records.webpage.ParseStatusCode`, and its arguments."""

    major: int
    minor: int = 0
    args: tuple[str, ...] = ()


def encode_int(value: int) -> bytes:
    """Return 4 bytes, big-endian two's complement; ``struct.error`` beyond 32 bits."""
    return _INT.pack(value)


def decode_int(cell: bytes) -> int:
    """Return the number in the first 4 bytes."""
    if len(cell) < 4:
        raise CellError(f"{len(cell)} bytes where an int has 4")
    return int(_INT.unpack_from(cell)[0])


def encode_long(value: int) -> bytes:
    """Return 8 bytes, big-endian two's complement; ``struct.error`` beyond 64 bits."""
    return _LONG.pack(value)


def decode_long(cell: bytes) -> int:
    """Return the number in the first 8 bytes."""
    if len(cell) < 8:
        raise CellError(f"{len(cell)} bytes where a long has 8")
    return int(_LONG.unpack_from(cell)[0])


def encode_float(value: float) -> bytes:
    """Return IEEE-754 binary32, big-endian; values out of range become infinity."""
    try:
        return _FLOAT.pack(value)
    except OverflowError:  # Java's (float) cast gives infinity
        return _FLOAT.pack(float("inf") if value > 0 else float("-inf"))


def decode_float(cell: bytes) -> float:
    """Return the binary32 number in the first 4 bytes."""
    if len(cell) < 4:
        raise CellError(f"{len(cell)} bytes where a float has 4")
    return float(_FLOAT.unpack_from(cell)[0])


def float32(value: float) -> float:
    """Round to the nearest float of four bytes, the type of every score of Nutch."""
    return decode_float(encode_float(value))


def encode_text(value: str) -> bytes:
    """Return UTF-8, a lone surrogate as ``?``."""
    try:
        return value.encode("utf-8")
    except UnicodeEncodeError:
        return value.encode("utf-8", "replace")


def decode_text(cell: bytes) -> str:
    """Return the text; bytes that are not UTF-8 become U+FFFD, as in Java."""
    return cell.decode("utf-8", "replace")


def encode_entries(entries: Mapping[str, Any], encode: Callable[[Any], bytes]) -> dict[bytes, bytes]:
    """Return the entries of a map as cells. Fast for texts: links and anchors are most of the data that jobs encode."""
    if encode is encode_text:
        try:
            return {key.encode(): value.encode() for key, value in entries.items()}
        except UnicodeEncodeError:
            pass
    return {encode_text(key): encode(value) for key, value in entries.items()}


def decode_entries(cells: Mapping[bytes, bytes], decode: Callable[[bytes], Any]) -> list[tuple[str, Any]]:
    """Decode cells into the entries of a map."""
    if decode is decode_text:
        return [(key.decode("utf-8", "replace"), cell.decode("utf-8", "replace")) for key, cell in cells.items()]
    return [(decode_text(key), decode(cell)) for key, cell in cells.items()]


def identity(cell: bytes) -> bytes:
    """Return the bytes of a column of the Avro type bytes: identical to the cell."""
    return cell


@lru_cache(maxsize=1)
def _status_schemas() -> tuple[object, object]:
    """Return the parsed schemas of the two records in webpage.avsc (lazy import: fastavro costs start-up time)."""
    import fastavro

    fields = json.loads((data_dir("schema") / "webpage.avsc").read_text(encoding="utf-8"))["fields"]
    by_name = {
        field["name"]: next(t for t in field["type"] if t != "null") for field in fields if "Status" in field["name"]
    }
    return fastavro.parse_schema(by_name["protocolStatus"]), fastavro.parse_schema(by_name["parseStatus"])


def _write_avro(schema: Any, record: dict[str, Any]) -> bytes:
    import fastavro

    out = io.BytesIO()
    fastavro.schemaless_writer(out, schema, record)
    return out.getvalue()


def _read_avro(schema: Any, cell: bytes) -> dict[str, Any]:
    import fastavro

    try:
        record: Any = fastavro.schemaless_reader(io.BytesIO(cell), schema, None)
    except (EOFError, ValueError, IndexError, TypeError, UnicodeDecodeError, MemoryError, OverflowError) as error:
        raise CellError(f"not an Avro record: {error}") from error
    found: dict[str, Any] = record
    return found


def _args_size(status: ProtocolStatus | ParseStatus) -> int:
    return sum(map(len, status.args))


@bounded_cache(4096, size=_args_size)
def encode_protocol_status(status: ProtocolStatus) -> bytes:
    """Return the Avro binary of ``f:prot``: code, arguments in one block, last-modified."""
    return _write_avro(
        _status_schemas()[0], {"code": status.code, "args": list(status.args), "lastModified": status.last_modified}
    )


@bounded_cache(4096)
def decode_protocol_status(cell: bytes) -> ProtocolStatus:
    """Decode the record; its array may consist of several blocks."""
    record = _read_avro(_status_schemas()[0], cell)
    return ProtocolStatus(record["code"], tuple(record["args"]), record["lastModified"])


@bounded_cache(4096, size=_args_size)
def encode_parse_status(status: ParseStatus) -> bytes:
    """Return the Avro binary of ``p:st``: major code, minor code, arguments in one block."""
    return _write_avro(
        _status_schemas()[1], {"majorCode": status.major, "minorCode": status.minor, "args": list(status.args)}
    )


@bounded_cache(4096)
def decode_parse_status(cell: bytes) -> ParseStatus:
    """Decode the record; its array may consist of several blocks."""
    record = _read_avro(_status_schemas()[1], cell)
    return ParseStatus(record["majorCode"], record["minorCode"], tuple(record["args"]))
