"""Tables of a crawl: stores of rows by key, and the queries that jobs run on them.

``open_store(conf, WebPage)`` opens the crawl's table at the location in ``storage.data.store``.

Exports: ``open_store``, ``DataStore``, ``WriteBatch``, ``TableQuery``, ``KeyRange``.
"""

from nutch2py.table.data_store import CellTimes, DataStore, RowCells, WriteBatch
from nutch2py.table.store_factory import open_store, table_name
from nutch2py.table.table_query import KeyRange, MarkCondition, TableQuery, host_range, prefix_range

__all__ = [
    "CellTimes",
    "DataStore",
    "KeyRange",
    "MarkCondition",
    "RowCells",
    "TableQuery",
    "WriteBatch",
    "host_range",
    "open_store",
    "prefix_range",
    "table_name",
]
