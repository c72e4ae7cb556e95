"""Types and helpers shared by fuzz targets."""

from __future__ import annotations

from collections.abc import Callable

from nutch2py.conf.configuration import Configuration

Run = Callable[[bytes], object]


def conf(**properties: str) -> Configuration:
    given = {name.replace("_", "."): value for name, value in properties.items()}
    return Configuration.load(overrides={"http.agent.name": "fuzz", **given})


def pieces(data: bytes, count: int) -> list[bytes]:
    """Split an input at NUL: the first parts and the rest."""
    found = data.split(b"\0", count - 1)
    return found + [b""] * (count - len(found))


def text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
