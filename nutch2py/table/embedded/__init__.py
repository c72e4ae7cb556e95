"""Embedded store: a table in a local folder, on LMDB, shared by several processes.

``FOLDER/<table>/meta`` has one named database per family (the key is a row, the value its packed cells of that family),
``FOLDER/<table>/content`` has the compressed page contents. See :mod:`nutch2py.table.embedded.storage.packing` for the
byte format and :mod:`nutch2py.table.embedded.storage.table_files` for the consistency of the two environments.

Exports: ``EmbeddedStore``.
"""

from nutch2py.table.embedded.embedded_store import EmbeddedStore

__all__ = ["EmbeddedStore"]
