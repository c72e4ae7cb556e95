"""The HBase store: Nutch 2's own tables through Thrift gateways, cell for cell (``hbase://host:port[,…][/namespace]``).

``store`` is the :class:`nutch2py.table.data_store.DataStore`; ``gateways`` keeps the connections (``link``) and decides what
is tried again; ``scan`` reads key ranges and goes on after the last row when a scanner is lost; ``batch`` collects
writes as Gora does and ``sending`` sends them; ``mapping`` and ``selection`` translate between fields and the columns
of a site's table; ``regions`` splits key ranges; ``admin`` makes tables.
"""

from nutch2py.table.hbase.hbase_store import HBaseStore

__all__ = ["HBaseStore"]
