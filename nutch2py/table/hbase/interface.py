"""The names of HBase's first Thrift interface, which happybase makes from its ``Hbase.thrift`` when it is imported."""

from __future__ import annotations

import importlib
from typing import Any

import happybase

_made: Any = importlib.import_module("Hbase_thrift")
Connection: Any = happybase.Connection
Hbase: Any = _made.Hbase
HBaseError: Any = _made.IOError
IllegalArgument: Any = _made.IllegalArgument
AlreadyExists: Any = _made.AlreadyExists
ColumnDescriptor: Any = _made.ColumnDescriptor
BatchMutation: Any = _made.BatchMutation
ThriftMutation: Any = _made.Mutation
TScan: Any = _made.TScan
