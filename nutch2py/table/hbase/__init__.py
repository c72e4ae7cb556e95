"""The HBase store: Nutch 2's own tables through Thrift gateways, cell for cell (``hbase://host:port[,…][/namespace]``).

``store`` is the :class:`nutch2py.table.store.DataStore`; ``gateways`` holds the connections and decides what is tried
again; ``scan`` reads key ranges and goes on after the last row when a scanner is lost; ``batch`` writes as Gora does;
``mapping`` and ``selection`` translate between fields and the columns of a site's table; ``admin`` makes tables.
"""

from nutch2py.table.hbase.admin import create_presplit
from nutch2py.table.hbase.store import HBaseStore

__all__ = ["HBaseStore", "create_presplit"]
