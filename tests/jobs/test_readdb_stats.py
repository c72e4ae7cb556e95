from __future__ import annotations

import gzip
import json
from base64 import b64decode
from collections import Counter
from pathlib import Path

import pytest

from nutch2py.cli import main
from nutch2py.jobs.readdb.stats_breakdown import BreakdownParameters, merge_breakdown
from nutch2py.jobs.stats.stats_collector import StatsCollector
from nutch2py.records.cells import ParseStatus, ProtocolStatus
from nutch2py.records.record import Cells
from nutch2py.records.webpage import WebPage


def page(status: int, score: float, retries: int = 0, protocol: int | None = None, parse: int | None = None) -> WebPage:
    row = WebPage()
    row.status, row.score, row.retries_since_fetch = status, score, retries
    if protocol is not None:
        row.protocol_status = ProtocolStatus(protocol)
    if parse is not None:
        row.parse_status = ParseStatus(1, parse)
    return row


ROWS = [
    ("com.a:http/", page(2, 1.0, protocol=1, parse=0)),
    ("com.a:http/b", page(2, 0.25, protocol=1, parse=0)),
    ("com.b.www:http:8983/", page(2, 2.5, retries=10, protocol=1, parse=100)),
    ("com.a:http/c", page(0, 0.0, retries=2)),
]


def collected(rows: list[tuple[str, WebPage]], sort: bool = False) -> StatsCollector:
    stats = StatsCollector(sort)
    for key, row in rows:
        stats.add(key, row)
    return stats


def test_stats_lines_match_nutch() -> None:
    assert collected(ROWS).format_text() == (
        "Statistics for WebTable: \n"
        "TOTAL urls:\t4\n"
        "retry 0:\t2\n"
        "retry 10:\t1\n"
        "retry 2:\t1\n"
        "min score:\t0.0\n"
        "avg score:\t0.9375\n"
        "max score:\t2.5\n"
        "status 0 (null):\t1\n"
        "status 2 (status_fetched):\t3\n"
        "protocol SUCCESS:\t3\n"
        "parse success/ok:\t2\n"
        "parse success/redirect:\t1\n"
        "WebTable statistics: done\n"
    )


def test_sort_option_lists_hosts_by_status() -> None:
    lines = collected(ROWS, sort=True).format_lines()
    start = lines.index("status 0 (null):\t1")
    assert lines[start : start + 5] == [
        "status 0 (null):\t1",
        "a.com:\t1",
        "status 2 (status_fetched):\t3",
        "a.com:\t2",
        "www.b.com:\t1",
    ]


def test_empty_table_stats_are_printed() -> None:
    assert collected([]).format_lines() == ["TOTAL urls:\t0"]


def test_merged_parts_equal_whole() -> None:
    whole, merged = collected(ROWS, sort=True), StatsCollector(sort=True)
    for part in (ROWS[:1], [], ROWS[1:]):
        merged.merge(StatsCollector.from_json(json.loads(json.dumps(collected(part, sort=True).to_json()))))
    assert merged.format_text() == whole.format_text()


def test_out_of_range_scores_are_counted() -> None:
    rows = [("com.a:http/1", page(1, float("inf"))), ("com.a:http/2", page(1, float("nan")))]
    assert "max score:\t9.223372E15" in collected(rows).format_lines()


def test_only_declared_fields_are_read() -> None:
    StatsCollector(sort=True).add("com.a:http/", WebPage({}, StatsCollector.FIELDS))


def test_recorded_table_counts_match(recording: Path) -> None:
    stats, status, total = StatsCollector(), Counter[int](), 0
    with gzip.open(recording / "dumps" / "round4-updatedb.jsonl.gz", "rt", encoding="utf-8") as dump:
        for line in dump:
            row = json.loads(line)
            cells: Cells = {}
            for column, (value, _) in row["cells"].items():
                family, _, qualifier = column.partition(":")
                cells.setdefault(family.encode(), {})[qualifier.encode()] = b64decode(value)
            stats.add(row["row"], WebPage(cells, StatsCollector.FIELDS))
            total += 1
            status[int.from_bytes(cells[b"f"].get(b"st", b""), "big")] += 1
    lines = stats.format_lines()
    assert lines[0] == f"TOTAL urls:\t{total}"
    for code, count in status.items():
        assert any(line.startswith(f"status {code} (") and line.endswith(f"\t{count}") for line in lines)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-url", "http://a.test/", "-last"], "-last requires -stats"),
        (["-topN", "2", "-by", "host"], "-by requires -stats"),
        (["-locks", "-quantiles"], "-quantiles requires -stats"),
        (["-batches", "-sort"], "-sort requires -stats"),
        (["-dump", "out", "-exact"], "-exact requires -stats"),
        (["-stats", "-regex", ".*a.*"], "-regex requires -dump"),
        (["-topN", "2", "-status", "fetched"], "-status requires -dump"),
        (["-stats", "-retry", "1"], "-retry requires -dump"),
        (["-stats", "-sample", "0.5"], "-sample requires -dump"),
    ],
)
def test_useless_options_are_rejected(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["readdb", *words]) == 255
    assert f"{message}: remove it" in capsys.readouterr().err


@pytest.mark.parametrize("order", [["host", "depth"], ["depth", "host"]])
def test_breakdowns_keep_requested_order(order: list[str]) -> None:
    output = [("depth\t", [1, 2, [["0", [[1, 2]]]]]), ("host\t", [1, 2, [["a.test", [[1, 2]]]]])]
    for breakdowns in (output, output[::-1]):
        assert [*merge_breakdown(breakdowns, BreakdownParameters(by=order)).names_by_kind] == order
