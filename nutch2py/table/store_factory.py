"""Opens the store of ``storage.data.store``, and names the crawl's tables."""

from __future__ import annotations

import importlib
import os
from typing import TypeVar

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError
from nutch2py.records.record import Record
from nutch2py.table.crawl_clock import crawl_clock
from nutch2py.table.data_store import DataStore

R = TypeVar("R", bound=Record)


def table_name(conf: Configuration, record: type[Record]) -> str:
    """Return ``<crawlId>_<schema>``, or the schema's name alone if no crawl id is set."""
    schema = conf.get_trimmed(f"storage.schema.{record.SCHEMA}", record.SCHEMA)
    crawl_id = conf.get_trimmed("storage.crawl.id")
    return f"{crawl_id}_{schema}" if crawl_id else schema


_DEFAULT_LOCATION = "embedded:crawldata"
_STORE_MODULES = {"embedded": "nutch2py.table.embedded", "hbase": "nutch2py.table.hbase"}
_JAVA_STORE_LOCATIONS = {
    "org.apache.gora.hbase.store.HBaseStore": "hbase://127.0.0.1:9090",
    "org.apache.gora.memory.store.MemStore": _DEFAULT_LOCATION,
}


def store_location(conf: Configuration) -> str:
    """Return ``storage.data.store``, or the equivalent of the Nutch property ``storage.data.store.class``.

    The folder of an embedded table is returned as an absolute path.
    """
    location = conf.get_trimmed("storage.data.store")
    java_class = conf.get_trimmed("storage.data.store.class")
    if not location and java_class:
        location = _JAVA_STORE_LOCATIONS.get(java_class, "")
        if not location:
            raise ConfigurationError(
                f"storage.data.store.class is {java_class}, which has no equivalent store: "
                "set storage.data.store to embedded:FOLDER or hbase://HOST:PORT"
            )
    scheme, _, folder = (location or _DEFAULT_LOCATION).partition(":")
    return f"{scheme}:{conf.absolute(os.path.expandvars(folder))}" if scheme == "embedded" and folder else location


def import_store_module(conf: Configuration) -> None:
    """Import the modules that :func:`open_store` needs for the crawl's store, without opening it."""
    scheme = store_location(conf).partition(":")[0]
    if scheme in _STORE_MODULES:
        importlib.import_module(_STORE_MODULES[scheme])


_NO_WAIT_PROPERTIES = {
    "service.wait.seconds": 0,
    "hbase.thrift.timeout": 8000,
    "hbase.thrift.connect.timeout": 3000,
}


def open_store_without_wait(conf: Configuration, record: type[R]) -> DataStore[R]:
    """Open the table of ``record`` for logs: requests fail at once, rather than wait for an unavailable server."""
    own = conf.copy()
    for name, value in _NO_WAIT_PROPERTIES.items():
        own.set(name, value)
    return open_store(own, record)


def open_store(
    conf: Configuration, record: type[R], location: str | None = None, name: str | None = None
) -> DataStore[R]:
    """Open the table of ``record`` given by ``conf`` (or ``location`` and ``name``); it need not exist yet."""
    where = location or store_location(conf)
    table = name or table_name(conf, record)
    scheme, _, rest = where.partition(":")
    store: DataStore[R]
    if scheme == "embedded":
        from nutch2py.table.embedded import EmbeddedStore

        store = EmbeddedStore.open(conf, record, table, rest)
    elif scheme == "hbase":
        from nutch2py.table.hbase import HBaseStore

        store = HBaseStore.open(conf, record, table, where)
    else:
        raise ConfigurationError(
            f"storage.data.store is {where!r}, which is not a known store: write embedded:FOLDER or hbase://HOST:PORT"
        )
    store.clock = crawl_clock(where, conf.get_trimmed("storage.crawl.id"))
    return store
