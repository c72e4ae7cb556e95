"""The embedded store: a table in a folder of this machine, on LMDB, for several processes at once.

``FOLDER/<table>/meta`` holds a named database a family (one key a row, the row's cells of that family packed in the
value) and ``FOLDER/<table>/content`` the page contents, compressed. See :mod:`nutch2py.table.embedded.storage.packing` for the
bytes and :mod:`nutch2py.table.embedded.storage.table_files` for what keeps the two consistent.
"""

from nutch2py.table.embedded.embedded_store import EmbeddedStore

__all__ = ["EmbeddedStore"]
