"""Lines of a dump that may be anything: read with a limit, and counted when they are no rows."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from io import BufferedIOBase
from pathlib import Path
from typing import NamedTuple

from nutch2py.conf import Configuration
from nutch2py.errors import InputError
from nutch2py.reporting import warn

_GZIP_MAGIC = b"\x1f\x8b"
_PIECE = 1 << 20
_TOLD = 10
_ENOUGH = 1_000
"""Lines after which a file that has too many bad ones is given up; a shorter one at its end."""


class ImportRules(NamedTuple):
    """``line_bytes``: bytes that a line may have; ``share``: the part of the lines that may be no sound rows."""

    line_bytes: int = 64 << 20
    share: float = 0.1

    @classmethod
    def of(cls, conf: Configuration) -> ImportRules:
        """Return what ``storage.import.line.bytes`` and ``storage.import.bad.share`` say."""
        return cls(conf.get_int("storage.import.line.bytes", 64 << 20), conf.get_float("storage.import.bad.share", 0.1))


class BadLines:
    """Counts lines and what is wrong with them; ``lines`` and ``cells`` were left out. The first ten are warned of."""

    def __init__(self, source: Path, share: float) -> None:
        self.source, self.share = source, share
        self.lines = self.cells = 0
        self._bad = self._read = self._last = 0
        self._first = ""

    def line(self, number: int, reason: str) -> None:
        """Leave a line out."""
        self.lines += 1
        self._note(number, reason, "left out")

    def cell(self, number: int, reason: str) -> None:
        """Leave a cell out; the row's others are taken."""
        self.cells += 1
        self._note(number, reason, "the cell is left out")

    def _note(self, number: int, reason: str, what: str) -> None:
        self._first = self._first or f"{self.source}, line {number}: {reason}"
        if self.lines + self.cells <= _TOLD:
            more = " (no further ones are named)" if self.lines + self.cells == _TOLD else ""
            warn(f"{self.source}, line {number}: {reason}: {what}{more}")
        if number != self._last:
            self._bad, self._last = self._bad + 1, number

    def passed(self, number: int) -> None:
        """Go on to the next line; raise :class:`InputError` when too many are bad by now."""
        self._read = number
        if self._bad and number >= _ENOUGH:
            self.finish()

    def finish(self) -> None:
        """Raise :class:`InputError` when too many lines were bad."""
        if self._bad > self.share * self._read:
            raise InputError(
                f"{self._first}; {self._bad} of {self._read} lines are bad, which is more than "
                f"storage.import.bad.share allows: mend them and import again"
            )


def dump_lines(source: Path, most: int) -> Iterator[bytes | None]:
    """Yield the lines of a dump, packed with gzip or not; None for one of more than ``most`` bytes, which is not kept.

    Raises :class:`InputError` when the file cannot be read to its end.
    """
    try:
        with source.open("rb") as raw:
            packed = raw.read(2) == _GZIP_MAGIC
            raw.seek(0)
            file: BufferedIOBase = gzip.GzipFile(fileobj=raw) if packed else raw
            while line := file.readline(most + 1):
                if len(line) <= most or line.endswith(b"\n"):
                    yield line
                    continue
                while (piece := file.readline(_PIECE)) and not piece.endswith(b"\n"):
                    pass
                yield None
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"cannot read the dump {source}: {error}") from error
