"""The recorded crawl, job by job, on a real HBase: repeats the tests of the embedded table."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.records.webpage import DerivedRow, WebPage
from nutch2py.table import open_store
from tests.jobs.test_recording import (
    test_recorded_generate_table_is_reproduced,
    test_recorded_index_documents_are_reproduced,
    test_recorded_inject_table_is_reproduced,
    test_recorded_parse_table_is_reproduced,
    test_recorded_updatedb_table_is_reproduced,
)

__all__ = [
    "test_recorded_generate_table_is_reproduced",
    "test_recorded_index_documents_are_reproduced",
    "test_recorded_inject_table_is_reproduced",
    "test_recorded_parse_table_is_reproduced",
    "test_recorded_updatedb_table_is_reproduced",
]

_number = itertools.count()


@pytest.fixture
def conf(recording: Path, hbase: Any) -> Iterator[Configuration]:
    """The recording's configuration over an empty table of its own."""
    overrides = {"storage.data.store": hbase.address(), "storage.crawl.id": f"recorded{next(_number)}"}
    overrides["encodingdetector.charset.fallback"] = "false"
    overrides["urlfilter.try.escaped"] = overrides["parser.html.outlinks.as.browser"] = "false"
    overrides["urlfilter.validator.underscores"] = "false"
    found = Configuration.load(recording / "conf", overrides)
    yield found
    for record in (WebPage, DerivedRow):
        open_store(found, record).drop()
