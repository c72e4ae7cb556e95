"""In-process fake of HBase and its gateway: tables with cells, timestamps and deletions, as HBase's.

It answers the calls of the first Thrift interface that the store makes, so that what takes thousands of tables, or a
kill between two calls, can be tried without a server. That HBase itself does so is tested on a real one.
"""

# ruff: noqa: N802 - the names are the interface's
from __future__ import annotations

import os
import re
import threading
from bisect import bisect_left
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

from nutch2py.table.hbase.thrift_client.hbase_retry_policy import HBaseRetryPolicy
from nutch2py.table.hbase.thrift_client.hbase_settings import GatewayAddress, HBaseSettings
from nutch2py.table.hbase.thrift_client.thrift_types import HBaseError

Cell = tuple[int, bytes]
_RANGE = re.compile(
    rb"SingleColumnValueFilter\('([^']*)','([^']*)',(<=|>=),'binary:((?:''|[^'])*)',false,true\)", re.DOTALL
)
_MARK = re.compile(rb"SingleColumnValueFilter\('(.*)','(.*)',(>?=),'binary:(.*)',true,true\)", re.DOTALL)


class _Result:
    """``TRowResult`` and ``TCell``."""

    def __init__(self, **values: Any) -> None:
        self.__dict__.update(values)


class _Table:
    def __init__(self, families: list[bytes]) -> None:
        self.families = families
        self.puts: dict[bytes, dict[bytes, dict[int, bytes]]] = {}
        self.gone: dict[bytes, dict[bytes, int]] = {}

    def row(self, key: bytes) -> dict[bytes, Any]:
        """Return the newest cells that no deletion hides."""
        found = {}
        gone = self.gone.get(key, {})
        for column, versions in self.puts.get(key, {}).items():
            time = max(versions)
            if time > max(gone.get(column, -1), gone.get(column.partition(b":")[0], -1)):
                found[column] = _Result(value=versions[time], timestamp=time)
        return found


class Server:
    """Tables by name. ``before``: called with the name of each table that is about to be written."""

    def __init__(self) -> None:
        self.tables: dict[bytes, _Table] = {}
        self.before: Callable[[bytes], object] = lambda _table: None
        self.scans: list[Iterator[Any]] = []
        self.lock = threading.RLock()
        self.ready = os.open(os.devnull, os.O_RDONLY)  # replaces a socket: a response is always readable

    def put(self, table: bytes, key: bytes, column: bytes, value: bytes, time: int) -> None:
        """Write a cell as another program would."""
        self.tables[table].puts.setdefault(key, {}).setdefault(column, {})[time] = value


class _Client:
    """The calls of the interface."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._scans = server.scans
        self._answers: list[Callable[[], Any]] = []

    def _table(self, name: bytes) -> _Table:
        if name not in self._server.tables:
            raise HBaseError(message=b"org.apache.hadoop.hbase.TableNotFoundException: " + name)
        return self._server.tables[name]

    def getColumnDescriptors(self, table: bytes) -> dict[bytes, None]:
        return {family + b":": None for family in self._table(table).families}

    def getTableRegions(self, table: bytes) -> list[Any]:
        self._table(table)
        return [_Result(startKey=b"", endKey=b"", serverName=b"localhost")]

    def createTable(self, table: bytes, families: list[Any]) -> None:
        self._server.tables[table] = _Table([family.name.rstrip(b":") for family in families])

    def scannerOpenWithScan(self, table: bytes, scan: Any, _attributes: Any) -> int:
        self._scans.append(self._rows(self._table(table), scan))
        return len(self._scans) - 1

    def _rows(self, table: _Table, scan: Any) -> Iterator[Any]:
        keys = sorted(table.puts)
        for key in keys[bisect_left(keys, scan.startRow or b"") :]:
            if scan.stopRow and key >= scan.stopRow:
                return
            cells = table.row(key)
            if scan.columns is not None:
                cells = {c: cell for c, cell in cells.items() if c in scan.columns or c.split(b":")[0] in scan.columns}
            if (mark := _MARK.fullmatch(scan.filterString or b"")) is not None:
                found = cells.get(mark[1] + b":" + mark[2])
                if found is None or (mark[3] == b"=" and found.value != mark[4].replace(b"''", b"'")):
                    continue
            elif ranges := _RANGE.findall(scan.filterString or b""):
                if not any(_holds(cells.get(family + b":" + name), *test) for family, name, *test in ranges):
                    continue
            elif scan.filterString:
                cells = dict([*cells.items()][:1])
            if cells:
                yield _Result(row=key, columns=cells)

    def scannerClose(self, _scanner: int) -> None:
        pass

    def _send(self, method: str, **words: Any) -> None:
        if method == "scannerGetList":
            scan, number = self._scans[words["id"]], words["nbRows"]
            self._answers.append(lambda: [*islice(scan, number)])

    def _recv(self, _method: str) -> Any:
        return self._answers.pop(0)()

    def getRows(self, table: bytes, keys: list[bytes], _attributes: Any) -> list[Any]:
        return self.getRowsWithColumns(table, keys, None, {})

    def getRowsWithColumns(self, table: bytes, keys: list[bytes], columns: Any, _attributes: Any) -> list[Any]:
        found = []
        for key in keys:
            cells = self._table(table).row(key)
            if columns is not None:
                cells = {c: cell for c, cell in cells.items() if c in columns or c.partition(b":")[0] in columns}
            if cells:
                found.append(_Result(row=key, columns=cells))
        return found

    def get(self, table: bytes, key: bytes, column: bytes, _attributes: Any) -> list[Any]:
        cell = self._table(table).row(key).get(column)
        return [] if cell is None else [cell]

    def checkAndPut(self, table: bytes, key: bytes, column: bytes, expected: Any, put: Any, _attributes: Any) -> bool:
        with self._server.lock:
            found = self._table(table).row(key).get(column)
            if ((found.value if found else None) or None) != (expected or None):
                return False
            versions = self._table(table).puts.setdefault(key, {}).setdefault(column, {})
            versions[max(versions, default=0) + 1] = put.value
            return True

    def write(self, table: bytes, time: int, rows: Any) -> None:
        self._server.before(table)
        with self._server.lock:
            there = self._table(table)
            for key, columns in rows.items():
                for column, value in columns.items():
                    if value is not None:
                        there.puts.setdefault(key, {}).setdefault(column, {})[time] = value
                    else:
                        gone = there.gone.setdefault(key, {})
                        gone[column] = max(gone.get(column, -1), time)


def _holds(cell: Any, sign: bytes, limit: bytes) -> bool:
    """Return whether HBase keeps a row by a comparison of a cell, which may be missing."""
    limit = limit.replace(b"''", b"'")
    return cell is None or (cell.value <= limit if sign == b"<=" else cell.value >= limit)


class _Link:
    is_new = False

    def __init__(self, server: Server, address: GatewayAddress) -> None:
        self._server, self.address = server, address
        self.client = _Client(server)
        self.socket = _Result(received=0)
        self.transport = _Result(sock=server.ready)

    def send_rows(self, table: bytes, time: int, rows: Any) -> None:
        def written() -> None:
            self.client.write(table, time, rows)

        self.client._answers.append(written)

    def is_table_enabled(self, table: bytes) -> bool:
        self.client._table(table)
        return True

    def disable_table(self, table: bytes) -> None:
        self.client._table(table)

    def delete_table(self, table: bytes) -> None:
        self.client._table(table)
        del self._server.tables[table]


class ThriftGatewayPool:
    """Replaces ``ThriftGatewayPool``; every gateway leads to ``server``."""

    server: Server

    def __init__(self, addresses: tuple[GatewayAddress, ...], settings: HBaseSettings, table: str, where: str) -> None:
        self.addresses, self.settings, self.table, self.where = addresses, settings, table, where

    def new_retry(self) -> HBaseRetryPolicy:
        return HBaseRetryPolicy(self.table, self.where, self.settings.max_wait, lambda: False)

    def borrow(self, _address: GatewayAddress | None = None) -> Any:
        return _Link(self.server, self.addresses[0])

    @contextmanager
    def connection(self, _address: GatewayAddress | None = None) -> Iterator[Any]:
        yield self.borrow()

    @contextmanager
    def return_after(self, _link: Any, keep: bool = False) -> Iterator[None]:
        yield

    def call(self, action: Callable[[Any], Any]) -> Any:
        return action(self.borrow())

    def close(self) -> None:
        pass


def gateways_of(server: Server) -> type[ThriftGatewayPool]:
    """Return a class that can replace the store's gateways."""
    return type("ThriftGatewayPool", (ThriftGatewayPool,), {"server": server})
