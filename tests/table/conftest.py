"""Fixtures of the stores' tests."""

from tests.table.hbase_server import hbase, hbase_server

__all__ = ["hbase", "hbase_server"]
