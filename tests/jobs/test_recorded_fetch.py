"""The four recorded fetches as jobs: the recorded table before, the FetcherJob, the recorded table after."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.jobs.fetch.fetch_job import fetch
from nutch2py.records.cells import ProtocolStatus, decode_protocol_status, encode_protocol_status
from tests.conftest import MAP_SIZE
from tests.jobs import recorded
from tests.site.recorded import recorded_site

ROUNDS = (1, 2, 3, 4)
BIG_CHUNKS = "test.interop.c:http/bigchunk.html"
"""Nutch 2.4 does not count the bytes of chunks, so http.content.limit does not cut this page; here it does."""
EXCEPTION_CODES = {2, 16}


def value(cells: recorded.Row, column: str) -> bytes | None:
    """Return the value of a cell, None when it does not exist."""
    return base64.b64decode(str(cells[column][0])) if column in cells else None


def texts_of_exceptions(dump: recorded.Dump) -> None:
    """Remove the texts of failures, which come from the runtime; an HTTP status in one is compared."""
    for cells in dump.values():
        status = value(cells, "f:prot")
        if status is None or b"Http code" in status:
            continue
        decoded = decode_protocol_status(status)
        if decoded.code in EXCEPTION_CODES:
            bare = encode_protocol_status(ProtocolStatus(decoded.code))
            cells["f:prot"] = [base64.b64encode(bare).decode(), 0]


def cut_chunks(dump: recorded.Dump) -> None:
    """Compare the first 64 KiB of a page in chunks."""
    content = value(dump.get(BIG_CHUNKS, {}), "f:cnt")
    if content is not None:
        dump[BIG_CHUNKS]["f:cnt"] = [base64.b64encode(content[:65536]).decode(), 0]


def comparable(dump: recorded.Dump) -> None:
    """Take out of a dump what differs on purpose."""
    texts_of_exceptions(dump)
    cut_chunks(dump)


@pytest.fixture
def site(recording: Path, tmp_path: Path) -> Iterator[Path]:
    with recorded_site(recording, tmp_path) as folder:
        yield folder


@pytest.mark.parametrize("listed", [False, True], ids=["by scan", "by list"])
def test_recorded_fetch_rounds_are_reproduced(recording: Path, site: Path, tmp_path: Path, listed: bool) -> None:
    """One server for the four rounds, as in the recording: the n-th request for a path gets the n-th answer."""
    for number in ROUNDS:
        folder = tmp_path / f"round{number}"
        folder.mkdir()
        overrides = {
            "storage.data.store": f"embedded:{folder / 'crawldata'}",
            "storage.embedded.map.size": MAP_SIZE,
            "http.hosts.file": str(site / "hosts.txt"),
            # as in Nutch 2.4
            "http.content.limit": "65536",
            "http.filter.ipaddress.exclude": "",
            "http.robots.503.defer.visits": "false",
        }
        conf = Configuration.load(recording / "conf", overrides)
        recorded.load(conf, recorded.dump_before(recording, number, "fetch"))
        if listed:
            recorded.make_list(conf, recorded.batch_id(number))
        result = fetch(conf, recorded.batch_id(number), threads=8)
        assert result.count("FetcherStatus", "SUCCESS") > 0
        after = recording / "dumps" / f"round{number}-fetch.jsonl.gz"
        expected = recorded.adjusted(after, folder, comparable)
        assert recorded.differences(recording, expected, conf, folder, comparable) == "", number
