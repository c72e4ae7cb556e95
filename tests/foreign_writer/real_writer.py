"""The other writer beside a real HBase: a Java program with HBase's own client, and writes that only HBase has."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from nutch2py.conf.configuration import Configuration
from nutch2py.records.webpage import DerivedRow, WebPage
from nutch2py.table import open_store
from tests.foreign_writer.scenarios import SCENARIOS, TS, Scenario, Writer
from tests.table.hbase_server import Server


class ClientProgram:
    """The running Java program; a context manager that ends it. ``scratch`` is a folder for its files."""

    def __init__(self, server: Server, scratch: Path) -> None:
        command = server.java_command(Path(__file__).with_name("OtherWriter.java"), scratch.as_uri())
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._read_response("start")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._process:  # closes its input, by which it ends, and waits
            pass

    def run(self, *words: bytes | int | str) -> str:
        """Run a command; bytes are sent in hexadecimal digits. Return the result."""
        line = " ".join((word.hex() or "-") if isinstance(word, bytes) else str(word) for word in words)
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()
        return self._read_response(line[:200])

    def _read_response(self, command: str) -> str:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("=> "):
                assert line.startswith("=> ok"), f"{command}: {line}"
                return line.removeprefix("=> ok").strip()
        raise AssertionError(f"{command}: the writer has ended")


class HBaseWriter(Writer):
    """The other program beside a real HBase."""

    def __init__(self, program: ClientProgram, conf: Configuration) -> None:
        super().__init__(conf)
        self._program, self._snapshots = program, 0

    def run(self, command: str, *words: bytes | int | str) -> str:
        """Run a command of the Java program on the table."""
        return self._program.run(command, self.table.decode(), *words)

    def cell_time(self, number: int) -> int:
        """Return the timestamp of a row's due time, 0 if it has none."""
        return int(self.run("time", self.key(number), TS))

    def put(self, number: int, column: bytes, value: bytes, stamp: int = 0) -> None:
        """Write a cell; by default with the current time."""
        self.run("put", self.key(number), column, value, stamp or self.clock.next())

    def load(self, rows: Mapping[int, int], stamp: int) -> None:
        """Load rows (number -> due time) in bulk: by a file of HBase's format."""
        words = [word for number, time in rows.items() for word in (self.key(number), time.to_bytes(8, signed=True))]
        self.run("load", TS, stamp, *words)

    def delete(self, number: int, column: bytes = TS) -> None:
        """Delete a column or a family."""
        self.run("delete", self.key(number), column, self.clock.next())

    def remove(self, number: int) -> None:
        """Delete every version of a row, and compact the table."""
        self.run("remove", self.key(number))

    def expire(self, number: int, column: bytes = TS) -> None:
        """Give a cell a time to live that ends at once, and compact the table."""
        self.run("expire", self.key(number), column)

    def restore_snapshot(self, drawn: random.Random) -> None:
        """Take a snapshot, write, and restore the snapshot."""
        self._snapshots += 1
        name = f"s{self._snapshots}_{self.table.decode().replace(':', '_')}"
        self.run("snapshot", name)
        for each in drawn.sample([*SCENARIOS], 3):
            SCENARIOS[each](self, drawn)
        self.run("restore", name)

    def drop(self) -> None:
        """Delete the tables of the crawl."""
        open_store(self.conf, WebPage).due_index().drop()
        for record in (WebPage, DerivedRow):
            open_store(self.conf, record).drop()


def _split(writer: Writer, drawn: random.Random) -> None:
    assert isinstance(writer, HBaseWriter)
    writer.run("split", writer.key(drawn.randrange(60, 90_000)))


def _run(command: str) -> Scenario:
    def scenario(writer: Writer, _: random.Random) -> None:
        assert isinstance(writer, HBaseWriter)
        writer.run(command)

    return scenario


def _restore(writer: Writer, drawn: random.Random) -> None:
    assert isinstance(writer, HBaseWriter)
    writer.restore_snapshot(drawn)


REAL_SCENARIOS: dict[str, Scenario] = {
    **SCENARIOS,
    "the table is flushed": _run("flush"),
    "the table is compacted": _run("compact"),
    "a region is split": _split,
    "a snapshot is restored": _restore,
}
"""Name -> write: :data:`SCENARIOS`, and what only HBase itself does."""
