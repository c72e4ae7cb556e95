"""Types of HBase's first Thrift interface, which happybase generates from its ``Hbase.thrift`` on import."""

from __future__ import annotations

import importlib
from typing import Any

import happybase

_thrift_module: Any = importlib.import_module("Hbase_thrift")
HappyBaseConnection: Any = happybase.Connection
Hbase: Any = _thrift_module.Hbase
HBaseError: Any = _thrift_module.IOError
IllegalArgument: Any = _thrift_module.IllegalArgument
AlreadyExists: Any = _thrift_module.AlreadyExists
ColumnDescriptor: Any = _thrift_module.ColumnDescriptor
BatchMutation: Any = _thrift_module.BatchMutation
ThriftMutation: Any = _thrift_module.Mutation
TScan: Any = _thrift_module.TScan
