"""The table: stores of rows by key, and the queries that jobs ask of them.

``open_store(conf, WebPage)`` gives the crawl's table wherever ``storage.data.store`` says it is.
"""

from nutch2py.table.opening import open_store, table_name
from nutch2py.table.query import KeyRange, MarkCondition, Query, prefix_range
from nutch2py.table.store import CellTimes, DataStore, RowCells, WriteBatch

__all__ = [
    "CellTimes",
    "DataStore",
    "KeyRange",
    "MarkCondition",
    "Query",
    "RowCells",
    "WriteBatch",
    "open_store",
    "prefix_range",
    "table_name",
]
