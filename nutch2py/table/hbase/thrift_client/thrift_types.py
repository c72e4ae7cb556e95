"""Types of HBase's first Thrift interface, which happybase generates from its ``Hbase.thrift`` on import."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any, Protocol

import happybase

_thrift_module: Any = importlib.import_module("Hbase_thrift")
HappyBaseConnection: Any = happybase.Connection
Hbase: Any = _thrift_module.Hbase
HBaseError: type[Exception] = _thrift_module.IOError
IllegalArgument: type[Exception] = _thrift_module.IllegalArgument
AlreadyExists: type[Exception] = _thrift_module.AlreadyExists


class ThriftCell(Protocol):
    """A TCell: the newest value of a column."""

    value: bytes
    timestamp: int


class ThriftRow(Protocol):
    """A TRowResult."""

    row: bytes
    columns: dict[bytes, ThriftCell]


class ThriftRegion(Protocol):
    """A TRegionInfo; ``serverName`` is missing while no server has the region."""

    startKey: bytes  # noqa: N815 - the name in Hbase.thrift
    endKey: bytes  # noqa: N815
    serverName: bytes | None  # noqa: N815


class _ColumnDescriptorType(Protocol):
    def __call__(self, **attributes: object) -> object: ...


class _MutationType(Protocol):
    def __call__(
        self,
        isDelete: bool = ...,  # noqa: N803 - the names in Hbase.thrift
        column: bytes = ...,
        value: bytes | None = ...,
        writeToWAL: bool = ...,  # noqa: N803
    ) -> object: ...


class _BatchMutationType(Protocol):
    def __call__(self, row: bytes, mutations: Sequence[object], /) -> object: ...


class _ScanType(Protocol):
    def __call__(self, **options: object) -> object: ...


ColumnDescriptor: _ColumnDescriptorType = _thrift_module.ColumnDescriptor
BatchMutation: _BatchMutationType = _thrift_module.BatchMutation
ThriftMutation: _MutationType = _thrift_module.Mutation
TScan: _ScanType = _thrift_module.TScan
