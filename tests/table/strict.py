"""A decoder of Nutch 2.4's cells that forgives nothing, written from the format and not from this project's code."""

from __future__ import annotations

import struct
from collections.abc import Callable

STATUSES = {1, 2, 3, 4, 5, 34, 38}
PROTOCOL = {1, 2, *range(10, 24)}
MARKS = {"_injmrk_", "dist", "_gnmrk_", "_ftcmrk_", "__prsmrk__", "_updmrk_", "_idxmrk_"}


def zigzag(cell: bytes, at: int) -> tuple[int, int]:
    """Return an Avro number and the offset after it."""
    number = shift = 0
    while True:
        byte = cell[at]
        at += 1
        number |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return (number >> 1) ^ -(number & 1), at


def strings(cell: bytes, at: int) -> tuple[list[str], int]:
    """Return an Avro array of strings in one block, as Gora writes it, and the offset after it."""
    count, at = zigzag(cell, at)
    found = []
    for _ in range(count):
        size, at = zigzag(cell, at)
        found.append(cell[at : at + size].decode())
        at += size
    if count:
        end, at = zigzag(cell, at)
        assert end == 0
    return found, at


def number(form: str, check: Callable[[float], bool] = lambda _: True) -> Callable[[bytes], None]:
    """Return a check of a fixed-width number."""

    def decode(cell: bytes) -> None:
        (value,) = struct.unpack(form, cell)
        assert check(value), value

    return decode


def text(cell: bytes) -> None:
    """Check UTF-8."""
    cell.decode()


def digest(cell: bytes) -> None:
    """Check a signature."""
    assert len(cell) == 16


def protocol_status(cell: bytes) -> None:
    """Check ``f:prot``."""
    code, at = zigzag(cell, 0)
    _, at = strings(cell, at)
    last_modified, at = zigzag(cell, at)
    assert code in PROTOCOL
    assert (last_modified, at) == (0, len(cell))


def parse_status(cell: bytes) -> None:
    """Check ``p:st``."""
    major, at = zigzag(cell, 0)
    minor, at = zigzag(cell, at)
    _, at = strings(cell, at)
    assert major in (0, 1, 2)
    assert minor in (0, 100, 200, 202, 203, 204, 205)
    assert at == len(cell)


def _link(url: str, cell: bytes) -> None:
    assert url.startswith(("http://", "https://"))
    text(cell)


def _mark(name: str, cell: bytes) -> None:
    assert name in MARKS
    value = cell.decode()
    if name == "dist":
        assert int(value) >= 0
    elif name == "_injmrk_":
        assert value in ("y", "s")
    else:
        assert value


def _metadata(name: str, cell: bytes) -> None:
    if name in ("_csh_", "_rs_"):
        assert len(cell) == 4
    elif name == "___rdrdsc__":
        assert cell == b"y"
    else:
        text(cell)


COLUMNS: dict[str, Callable[[bytes], None]] = {
    "f:bas": text,
    "f:st": number(">i", STATUSES.__contains__),
    "f:ts": number(">q", lambda v: v > 10**12),
    "f:pts": number(">q", lambda v: v >= 0),
    "f:fi": number(">i", lambda v: v > 0),
    "f:rsf": number(">i", lambda v: v >= 0),
    "f:mod": number(">q", lambda v: v >= 0),
    "f:pmod": number(">q", lambda v: v >= 0),
    "f:prot": protocol_status,
    "f:cnt": lambda _: None,
    "f:typ": text,
    "f:rpr": text,
    "f:bid": text,
    "p:psig": digest,
    "p:sig": digest,
    "p:t": text,
    "p:c": text,
    "p:st": parse_status,
    "s:s": number(">f", lambda v: v >= 0),
    "s:sp": number(">f"),
}
FAMILIES: dict[str, Callable[[str, bytes], None]] = {
    "h": lambda _, cell: text(cell),
    "ol": _link,
    "il": _link,
    "stm": _link,
    "mk": _mark,
    "mtdt": _metadata,
}


def check(row: bytes, cells: dict[bytes, bytes]) -> None:
    """Check every cell of a row (``family:qualifier -> value``); raise AssertionError at a surprise."""
    host, _, rest = row.decode().partition(":")
    assert host
    assert rest.split("/")[0].split(":")[0] in ("http", "https")
    for column, cell in cells.items():
        name = column.decode()
        family, _, qualifier = name.partition(":")
        if family in FAMILIES:
            FAMILIES[family](qualifier, cell)
        else:
            COLUMNS[name](cell)
