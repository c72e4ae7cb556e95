"""The four recorded fetches of Nutch 2.4, page by page and cell by cell."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.fetcher.fetch_options import FetchOptions
from nutch2py.fetcher.fetcher import Fetcher, FetchItem
from nutch2py.records.cells import decode_protocol_status
from nutch2py.records.record import Cells
from nutch2py.records.webpage import WebPage
from nutch2py.table.table_query import columns_of
from nutch2py.url.keys import unreverse_url
from tests.site.recorded import recorded_site as serve

MASKED = {"f:ts", "f:pts", "mtdt:_rs_"}
BATCHES = {1: "1600000001-1001", 2: "1600000002-1002", 3: "1600000003-1003", 4: "1600000004-1004"}
EXCEPTION_CODES = {2, 16}

# row and column of every cell in which the rows differ on purpose
EXPECTED_DIFFERENCES = {
    # Nutch 2.4 forgets to count the bytes of chunks, so http.content.limit has no effect on a chunked body; Nutch 1
    # cuts it, and so do we
    ("test.interop.c:http/bigchunk.html", "f:cnt"),
}

Table = dict[str, dict[str, bytes]]


def load(path: Path) -> Table:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        rows = (json.loads(line) for line in lines)
        return {row["row"]: {c: base64.b64decode(v[0]) for c, v in row["cells"].items()} for row in rows}


def cells_of(row: dict[str, bytes], wanted: dict[bytes, frozenset[bytes] | None]) -> Cells:
    cells: Cells = {}
    for column, value in row.items():
        family, _, qualifier = column.encode().partition(b":")
        if family in wanted and (wanted[family] is None or qualifier in (wanted[family] or ())):
            cells.setdefault(family, {})[qualifier] = value
    return cells


def write(row: dict[str, bytes], page: WebPage) -> None:
    """Apply a page's mutation to a row as a store does."""
    mutation = page.mutation()
    if mutation is None:
        return
    for family in mutation.cleared_families:
        for column in [c for c in row if c.startswith(family.decode() + ":")]:
            del row[column]
    for family, qualifiers in mutation.deletes.items():
        for qualifier in qualifiers:
            row.pop(f"{family.decode()}:{qualifier.decode()}", None)
    for family, columns in mutation.puts.items():
        for qualifier, value in columns.items():
            row[f"{family.decode()}:{qualifier.decode()}"] = value


@pytest.fixture
def recorded_site(recording: Path, tmp_path: Path) -> Iterator[Path]:
    with serve(recording, tmp_path) as folder:  # from its first round on for each test: its pages change with time
        yield folder


def differences(ours: Table, theirs: Table) -> Iterator[tuple[str, str, bytes | None, bytes | None]]:
    for key in sorted(ours.keys() | theirs.keys()):
        mine, recorded = ours.get(key, {}), theirs.get(key, {})
        for column in sorted(mine.keys() | recorded.keys()):
            a, b = mine.get(column), recorded.get(column)
            if a == b or (column in MASKED and a is not None and b is not None and len(a) == len(b)):
                continue
            if column == "f:prot" and a is not None and b is not None:
                codes = {decode_protocol_status(a).code, decode_protocol_status(b).code}
                if len(codes) == 1 and codes <= EXCEPTION_CODES and b"Http code" not in b:
                    continue  # the texts of exceptions are those of the runtime
            yield key, column, a, b


def fetch(conf: Configuration, table: Table, batch: str) -> list[str]:
    fields = Fetcher.get_required_fields(conf, FetchOptions.from_conf(conf))
    wanted = columns_of(fields)
    pages = [
        FetchItem(key, unreverse_url(key), WebPage(cells_of(row, wanted), fields))
        for key, row in sorted(table.items())
        if row.get("mk:_gnmrk_") == batch.encode()
    ]
    log: list[str] = []
    Fetcher(conf, 8, log=log.append).run(iter(pages), lambda item: write(table[item.key], item.page))
    return log


def test_recorded_fetches_give_recorded_rows(recorded_site: Path, recording: Path, way: str) -> None:
    hosts = recorded_site / "hosts.txt"
    defaults_of_2_4 = {
        "http.content.limit": "65536",
        "http.filter.ipaddress.exclude": "",
        "http.robots.503.defer.visits": "false",
    }
    conf = Configuration.load(
        recording / "conf", {"http.hosts.file": str(hosts), "fetcher.scrapy.whole": way, **defaults_of_2_4}
    )
    found, cells = [], 0
    for number, batch in BATCHES.items():  # one server for all: the n-th GET gets the n-th answer
        table = load(recording / "dumps" / f"round{number}-generate.jsonl.gz")
        before = {key: row.get("f:ts") for key, row in table.items()}
        log = fetch(conf, table, batch)
        recorded = load(recording / "dumps" / f"round{number}-fetch.jsonl.gz")
        cells += sum(map(len, recorded.values()))
        found += [(number, *difference) for difference in differences(table, recorded)]
        for key, row in table.items():
            if row.get("mk:_gnmrk_") == batch.encode():
                assert row["f:pts"] == before[key], key
        output = (recording / "dumps" / f"r{number}-fetch.out").read_text(encoding="utf-8").splitlines()
        for start in ("fetching ", "QueueFeeder finished"):
            mine = sorted(line for line in log if line.startswith(start))
            assert mine == sorted(line for line in output if line.startswith(start))
    unexpected = [difference for difference in found if difference[1:3] not in EXPECTED_DIFFERENCES]
    for difference in unexpected:
        print(difference)
    print(f"{cells - len(found)}/{cells} recorded cells, {len(found) - len(unexpected)} others differ on purpose")
    assert not unexpected
    assert {difference[1:3] for difference in found} == EXPECTED_DIFFERENCES
    assert cells == 37114
