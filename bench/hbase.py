"""hbase: the HBase store compared with raw happybase for the same work, on a temporary HBase (scripts/services).

Each line is a separate process, and its CPU time includes the start of Python. The target of the store is 1.3 times
the time of raw happybase. CPU time of HBase and the gateway is listed separately: it does not depend on the client.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.measuring import Measurement, run
from bench.services import service

ROWS = (50_000, 500_000)
_MARKED = 10
"""One row in this many has the mark of the filtered scan."""
_GETS = 20_000
_CONDITION = b"SingleColumnValueFilter('mk','_gnmrk_',=,'binary:1-1',true,true)"
_COLUMNS = [b"f:st", b"f:ts", b"f:fi", b"s:s", b"mk"]


def measure(rows: int, folder: Path, runner: str) -> list[Measurement]:
    """Measure put, projected scan, filtered scan and batch get of ``rows`` rows; ``runner`` is ignored."""
    found: list[Measurement] = []
    with service("hbase", data=folder / "hbase") as hbase:
        for work in ("put", "scan", "filter", "get"):
            records = {"put": rows, "scan": rows, "filter": rows // _MARKED, "get": min(rows, _GETS)}[work]
            costs = {}
            for side in ("raw", "ours"):
                before = hbase.seconds()
                command = [sys.executable, "-m", "bench.hbase", side, work, hbase.address, str(rows)]
                costs[side] = run(command, folder=folder)
                servers = ", ".join(f"{part} {after - before[part]:.1f} s" for part, after in hbase.seconds().items())
                aim = 1.3 * costs["raw"].cpu if side == "ours" else None
                name = f"{work} {'happybase' if side == 'raw' else 'nutch2py'} ({servers})"
                found.append(Measurement(name, records, costs[side], "rows", aim))
    return found


def _key(number: int) -> str:
    return f"com.example.host{number % 1000:04d}:http/page/{number:07d}.html"


def _keys_to_get(rows: int) -> list[list[str]]:
    """Return random keys in groups of 1,000, the same for both sides."""
    numbers = random.Random(1).choices(range(rows), k=min(rows, _GETS))
    keys = [_key(number) for number in numbers]
    return [keys[at : at + 1000] for at in range(0, len(keys), 1000)]


def _ours(work: str, location: str, rows: int) -> int:
    from nutch2py.conf.configuration import Configuration
    from nutch2py.records.record import Field
    from nutch2py.records.webpage import WebPage
    from nutch2py.table import MarkCondition, TableQuery, open_store

    store = open_store(Configuration(), WebPage, location, "ours")
    fields: list[Field[Any]] = [
        WebPage.status,
        WebPage.fetch_time,
        WebPage.fetch_interval,
        WebPage.score,
        WebPage.markers,
    ]
    if work == "put":
        store.create()
        with store.batch() as batch:
            for number in range(rows):
                page = WebPage()
                page.status, page.fetch_time, page.fetch_interval, page.score = 1, 1_700_000_000_000, 2_592_000, 1.0
                page.text = "x" * 500
                page.markers["dist"] = "0"
                if number % _MARKED == 0:
                    page.markers["_gnmrk_"] = "1-1"
                batch.put(_key(number), page)
        return rows
    if work == "get":
        return sum(1 for keys in _keys_to_get(rows) for page in store.get_many(keys, fields) if page is not None)
    condition = MarkCondition("_gnmrk_", "1-1") if work == "filter" else None
    return sum(1 for _ in store.scan(TableQuery.for_fields(fields, condition)))


def _raw(work: str, location: str, rows: int) -> int:
    import happybase

    from nutch2py.records.cells import encode_float, encode_int, encode_long

    host, _, port = location.removeprefix("hbase://").partition(":")
    connection = happybase.Connection(host, int(port), timeout=300_000)
    table = connection.table("raw")
    if work == "put":
        families = ("f", "h", "il", "mk", "mtdt", "ol", "p", "s", "stm")
        connection.create_table("raw", {name: {"max_versions": 1, "bloom_filter_type": "ROW"} for name in families})
        batch = table.batch(timestamp=int(time.time() * 1000))
        for number in range(rows):
            cells = {
                b"f:st": encode_int(1), b"f:ts": encode_long(1_700_000_000_000), b"f:fi": encode_int(2_592_000),
                b"s:s": encode_float(1.0), b"p:c": b"x" * 500, b"mk:dist": b"0",
            }  # fmt: skip
            if number % _MARKED == 0:
                cells[b"mk:_gnmrk_"] = b"1-1"
            batch.put(_key(number).encode(), cells)
            if number % 1000 == 999:
                batch.send()
        batch.send()
        return rows
    if work == "get":
        return sum(
            len(table.rows([key.encode() for key in dict.fromkeys(keys)], _COLUMNS)) for keys in _keys_to_get(rows)
        )
    condition = _CONDITION if work == "filter" else None
    return sum(1 for _ in table.scan(columns=_COLUMNS, batch_size=1000, filter=condition))


if __name__ == "__main__":
    sides: dict[str, Callable[[str, str, int], int]] = {"ours": _ours, "raw": _raw}
    print(sides[sys.argv[1]](sys.argv[2], sys.argv[3], int(sys.argv[4])))
