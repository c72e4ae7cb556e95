"""Checks of services: table, index, and the cluster of the runner."""

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
from nutch2py.mapreduce.runners.hadoop.package_archive import check_package
from nutch2py.mapreduce.runners.hadoop.yarn_applications import find_unfinished_applications
from nutch2py.records.webpage import Host, WebPage
from nutch2py.search.search_backends import open_search_backend, search_backend_name
from nutch2py.table import DataStore, TableQuery, open_store
from nutch2py.table.hbase import HBaseStore

_MIN_JAVA = 8


def check_tables(conf: Configuration) -> Iterator[CheckResult]:
    """Check that the tables can be opened and read."""
    store: DataStore[Any]
    for record in (WebPage, Host):
        store = open_store(conf, record)
        try:
            if not store.exists():
                if record is WebPage:
                    message = f"no table {store.name} at {store.location} yet: inject or crawl creates it"
                    yield warning_result("table", message)
                continue
            next(iter(store.scan(TableQuery(frozenset()))), None)
            rows = store.row_estimate()
            message = f"{store.name} at {store.location}" + (f", about {rows:,} rows" if rows is not None else "")
            if isinstance(store, HBaseStore):
                message += f", {store.region_count():,} regions"
            yield ok_result("table", message)
        finally:
            store.close()


def check_index(conf: Configuration) -> Iterator[CheckResult]:
    """Check that index writers accept documents, and that the search backend responds."""
    writers = IndexWriters(conf)
    if not writers.writer_ids:
        yield warning_result(
            "index", "no index writer is configured: add indexer-embedded or another one to plugin.includes"
        )
        return
    writers.check()
    yield ok_result("index", f"documents go to {', '.join(writers.writer_ids)}")
    try:
        backend = open_search_backend(conf)
        yield ok_result("search", f"{search_backend_name(conf)}, {backend.count():,} documents")
    except IndexingError as error:
        yield warning_result("search", str(error))


def check_runner(conf: Configuration) -> Iterator[CheckResult]:
    """Check that jobs can run on ``mapreduce.runner``."""
    runner = runner_name(conf)
    if runner in ("inline", "local"):
        yield ok_result("runner", f"{runner}: jobs run on this machine")
        return
    yield from _check_java()
    yield ok_result("package", f"matches this client, version {check_package(conf).version}")
    if runner == "hadoop":
        hadoop = HadoopClient.from_conf(conf)
        hadoop.run_fs("-ls", "/", failure_message="cannot list the root of HDFS")
        find_unfinished_applications(hadoop, "nutch2py-doctor")  # contacts YARN
        yield ok_result("runner", f"hadoop: HDFS and YARN respond to {hadoop.hadoop_command}")
    else:
        yield ok_result("runner", runner)


def _check_java() -> Iterator[CheckResult]:
    java = shutil.which("java")
    if java is None:
        yield error_result("Java", f"no java on the PATH: install Java {_MIN_JAVA} or newer")
        return
    process = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)  # noqa: S603 - no shell
    lines = (process.stderr or process.stdout).splitlines()
    yield ok_result("Java", f"{lines[0] if lines else 'unknown version'} ({Path(java).resolve()})")
