"""What jobs work with: the table and its gateways, the index, the installation of Hadoop."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nutch2py.conf import Configuration
from nutch2py.doctor.finding import Finding, bad, doubtful, good
from nutch2py.errors import IndexingError
from nutch2py.indexer.index_writers import IndexWriters
from nutch2py.mapreduce.driver import runner_name
from nutch2py.mapreduce.hadoop import Hadoop
from nutch2py.mapreduce.package_archive import check as check_package
from nutch2py.search.search import search_backend
from nutch2py.search.search_backends import backend
from nutch2py.table import DataStore, Query, open_store
from nutch2py.table.hbase import HBaseStore
from nutch2py.webpage import Host, WebPage

_LEAST_JAVA = 8


def tables(conf: Configuration) -> Iterator[Finding]:
    """Whether the tables can be opened and read."""
    store: DataStore[Any]
    for record in (WebPage, Host):
        store = open_store(conf, record)
        try:
            if not store.exists():
                if record is WebPage:
                    told = f"there is no table {store.name} at {store.location} yet: inject or crawl makes it"
                    yield doubtful("table", told)
                continue
            next(iter(store.scan(Query(frozenset()))), None)
            rows = store.row_estimate()
            told = f"{store.name} at {store.location}" + (f", about {rows:,} rows" if rows is not None else "")
            if isinstance(store, HBaseStore):
                told += f", {store.region_count():,} regions"
            yield good("table", told)
        finally:
            store.close()


def index(conf: Configuration) -> Iterator[Finding]:
    """Whether the index that is written to takes documents, and the one that is asked answers."""
    writers = IndexWriters(conf)
    if not writers.names:
        yield doubtful("index", "no index writer is chosen: plugin.includes names indexer-embedded or another")
        return
    writers.check()
    yield good("index", f"documents go to {', '.join(writers.names)}")
    try:
        asked = backend(conf)
        yield good("search", f"{search_backend(conf)}, {asked.count():,} documents")
    except IndexingError as error:
        yield doubtful("search", str(error))


def runner(conf: Configuration) -> Iterator[Finding]:
    """Whether jobs can run where ``mapreduce.runner`` says."""
    chosen = runner_name(conf)
    if chosen in ("inline", "local"):
        yield good("runner", f"{chosen}: jobs run on this machine")
        return
    yield from _java()
    yield good("package", f"fits this client, version {check_package(conf).version}")
    if chosen == "hadoop":
        found = Hadoop.find(conf)
        found.fs("-ls", "/", expect="cannot list the root of HDFS")
        found.left_running("nutch2py-doctor")  # asks YARN
        yield good("runner", f"hadoop: HDFS and YARN answer {found.hadoop}")
    else:
        yield good("runner", chosen)


def _java() -> Iterator[Finding]:
    java = shutil.which("java")
    if java is None:
        yield bad("Java", f"there is no java on the PATH: install one, {_LEAST_JAVA} or newer")
        return
    done = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    said = (done.stderr or done.stdout).splitlines()
    yield good("Java", f"{said[0] if said else 'says nothing'} ({Path(java).resolve()})")
