"""HBase store: Nutch 2's tables, cell for cell, through Thrift gateways (``hbase://host:port[,…][/namespace]``).

``hbase_store`` is the :class:`nutch2py.table.data_store.DataStore`, ``hbase_batch`` collects writes as Gora does,
``gora_mapping`` and ``column_selection`` map fields to the columns of a site's table, ``regions`` splits key ranges,
and ``hbase_admin`` creates tables. ``thrift_client`` has the connections, retries, scans and writes.

Exports: ``HBaseStore``.
"""

from nutch2py.table.hbase.hbase_store import HBaseStore

__all__ = ["HBaseStore"]
