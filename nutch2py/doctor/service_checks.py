"""What jobs work with: the table and its gateways, the index, the installation of Hadoop."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nutch2py.conf.configuration import Configuration
from nutch2py.doctor.check_result import CheckResult, error_result, ok_result, warning_result
from nutch2py.errors import IndexingError
from nutch2py.indexer.index_writers import IndexWriters
from nutch2py.mapreduce.driver import runner_name
from nutch2py.mapreduce.runners.hadoop.hadoop_client import HadoopClient
from nutch2py.mapreduce.runners.hadoop.package_archive import check_package as check_package
from nutch2py.records.webpage import Host, WebPage
from nutch2py.search.search_backends import open_search_backend
from nutch2py.search.search_service import search_backend_name
from nutch2py.table import DataStore, TableQuery, open_store
from nutch2py.table.hbase import HBaseStore

_MIN_JAVA = 8


def check_tables(conf: Configuration) -> Iterator[CheckResult]:
    """Whether the tables can be opened and read."""
    store: DataStore[Any]
    for record in (WebPage, Host):
        store = open_store(conf, record)
        try:
            if not store.exists():
                if record is WebPage:
                    told = f"there is no table {store.name} at {store.location} yet: inject or crawl makes it"
                    yield warning_result("table", told)
                continue
            next(iter(store.scan(TableQuery(frozenset()))), None)
            rows = store.row_estimate()
            told = f"{store.name} at {store.location}" + (f", about {rows:,} rows" if rows is not None else "")
            if isinstance(store, HBaseStore):
                told += f", {store.region_count():,} regions"
            yield ok_result("table", told)
        finally:
            store.close()


def check_index(conf: Configuration) -> Iterator[CheckResult]:
    """Whether the index that is written to takes documents, and the one that is asked answers."""
    writers = IndexWriters(conf)
    if not writers.writer_ids:
        yield warning_result("index", "no index writer is chosen: plugin.includes names indexer-embedded or another")
        return
    writers.check()
    yield ok_result("index", f"documents go to {', '.join(writers.writer_ids)}")
    try:
        asked = open_search_backend(conf)
        yield ok_result("search", f"{search_backend_name(conf)}, {asked.count():,} documents")
    except IndexingError as error:
        yield warning_result("search", str(error))


def check_runner(conf: Configuration) -> Iterator[CheckResult]:
    """Whether jobs can run where ``mapreduce.runner`` says."""
    chosen = runner_name(conf)
    if chosen in ("inline", "local"):
        yield ok_result("runner", f"{chosen}: jobs run on this machine")
        return
    yield from _check_java()
    yield ok_result("package", f"fits this client, version {check_package(conf).version}")
    if chosen == "hadoop":
        found = HadoopClient.from_conf(conf)
        found.run_fs("-ls", "/", failure_message="cannot list the root of HDFS")
        found.find_unfinished("nutch2py-doctor")  # asks YARN
        yield ok_result("runner", f"hadoop: HDFS and YARN answer {found.hadoop_command}")
    else:
        yield ok_result("runner", chosen)


def _check_java() -> Iterator[CheckResult]:
    java = shutil.which("java")
    if java is None:
        yield error_result("Java", f"there is no java on the PATH: install one, {_MIN_JAVA} or newer")
        return
    done = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    said = (done.stderr or done.stdout).splitlines()
    yield ok_result("Java", f"{said[0] if said else 'says nothing'} ({Path(java).resolve()})")
