"""Tables as a whole: to a file, from a file, to another store."""

from __future__ import annotations

from pathlib import Path

from nutch2py.conf import Configuration
from nutch2py.errors import StoreError
from nutch2py.jobs.journal import recover
from nutch2py.table import DataStore, open_store
from nutch2py.table.dump import copy_table, export_table, import_table
from nutch2py.webpage import WebPage


def existing_table(conf: Configuration) -> DataStore[WebPage]:
    """Return the crawl's table, whatever a killed updatedb left finished; raise StoreError when there is none."""
    recover(conf)
    store = open_store(conf, WebPage)
    if not store.exists():
        raise StoreError(f"there is no table {store.name} at {store.location}: inject seeds first, or correct -crawlId")
    return store


def export_to(conf: Configuration, path: Path) -> int:
    """Write every cell of the crawl's table to a file of JSON lines."""
    store = existing_table(conf)
    print(f"exporttable: {export_table(store, path)} rows of {store.name} to {path}")
    return 0


def import_from(conf: Configuration, path: Path) -> int:
    """Read cells from a file of JSON lines into the crawl's table, which is made if need be."""
    store = open_store(conf, WebPage)
    store.create()
    print(f"importtable: {import_table(store, path)} rows from {path} to {store.name}")
    return 0


def copy_to(conf: Configuration, target: str) -> int:
    """Copy every cell of the crawl's table to the table of the same name in another store."""
    source = existing_table(conf)
    store = open_store(conf, WebPage, location=target)
    store.create()
    print(f"copytable: {copy_table(source, store)} rows of {source.name} from {source.location} to {target}")
    return 0
