"""readdb -stats -by and -quantiles, and its JSON and CSV, against what the rows themselves say."""

from __future__ import annotations

import csv
import io
import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.jobs.readdb import stats_breakdown
from nutch2py.jobs.readdb.readdb_commands import count_breakdown
from nutch2py.jobs.readdb.stats_breakdown import BREAKDOWN_FIELDS, NEXT_FETCH_LABELS, BreakdownParameters
from nutch2py.jobs.row_output.row_formats import CSV_COLUMNS
from nutch2py.jobs.stats.quantile_sketch import ACCURACY, QuantileSketch, read_quantiles
from nutch2py.records.cells import ParseStatus, ProtocolStatus, encode_int
from nutch2py.records.webpage import CrawlStatus, Mark, MetadataKey, WebPage
from nutch2py.support.clock import now_ms
from nutch2py.table import open_store
from tests.jobs.rows import put
from tests.jobs.test_readdb import crawl, run

__all__ = ["crawl"]
DAY = 86_400_000
NOW = 1_790_000_000_000


@pytest.mark.parametrize("draw", [
    lambda source: source.lognormvariate(0, 4), lambda source: -source.expovariate(1e-6),
    lambda source: source.choice([0.0, 0.0, 1.0]), lambda source: source.uniform(-5, 5),
])  # fmt: skip
def test_quantiles_match_values(draw: Any) -> None:
    source = random.Random(5)
    values = sorted(draw(source) for _ in range(5001))
    whole, part = QuantileSketch(), QuantileSketch()
    for number, value in enumerate(values):
        (whole if number % 2 else part).add(value)
    whole.merge(json.loads(json.dumps(part.to_json())))
    chosen = [0.0, 0.01, 0.25, 0.5, 0.9, 0.99, 1.0]
    for part_of_all, found in whole.get_quantiles(chosen).items():
        assert found == pytest.approx(values[int(part_of_all * 5000)], rel=ACCURACY * 1.01, abs=1e-9)
    assert (whole.minimum, whole.maximum, whole.count) == (values[0], values[-1], 5001)


def test_sketch_size_is_bounded() -> None:
    sketch, source = QuantileSketch(), random.Random(3)
    for _ in range(200_000):
        sketch.add(source.choice((-1, 1)) * 10 ** source.uniform(-300, 300))
    for value in (float("nan"), float("inf"), -float("inf"), 5e-324):
        sketch.add(value)
    assert len(sketch.counts) < 12_600
    assert sketch.get_quantiles([0.5])


@pytest.mark.parametrize("quantiles", ["0.5,2", "half", "nan", "-0.1"])
def test_invalid_quantile_is_rejected(crawl: Configuration, quantiles: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(crawl, "readdb", "-stats", "-quantiles", "-D", f"db.stats.score.quantiles={quantiles}") == 2
    assert "numbers from 0 to 1" in capsys.readouterr().err


@pytest.fixture
def table(conf: Configuration) -> Configuration:
    """300 rows on 30 hosts of 10 domains, of which each thing that is counted is known."""
    rows = {}
    for number in range(300):
        failed = number % 5 == 0
        rows[f"http://www{number % 3}.site{number % 10}.test/{number}"] = {
            "status": CrawlStatus.RETRY if failed else CrawlStatus.FETCHED,
            "score": number / 10, "fetch_interval": 86_400 * (1 + number % 7), "fetch_time": NOW + (number - 100) * DAY,
            "retries_since_fetch": number % 4, "marks": {Mark.DISTANCE: str(number % 6)},
            "metadata": {MetadataKey.RESPONSE_TIME: encode_int(number)},
            "protocol_status": ProtocolStatus(16, (f"Http code={500 + number % 2}, url=http://a/{number}",))
            if failed else ProtocolStatus(1),
            "parse_status": ParseStatus(2, 200, ("no",)) if number % 50 == 1 else ParseStatus(1, 0),
        }  # fmt: skip
    put(conf, rows)
    return conf


@pytest.mark.parametrize("maps", [1, 4])
def test_rows_are_counted_by_every_field(table: Configuration, maps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stats_breakdown, "MAX_BUFFERED_NAMES", 7)  # as with more names than a task holds
    table.set("mapreduce.job.maps", str(maps))
    table.set("mapreduce.job.reduces", "3")
    found = count_breakdown(table, BreakdownParameters(by=[*BREAKDOWN_FIELDS], most=4, quantiles=True, now=NOW))
    by = {what: {name: sum(rows.values()) for name, rows in each.top} for what, each in found.names_by_kind.items()}
    assert found.stats.total == 300
    assert {what: (each.name_count, each.row_count) for what, each in found.names_by_kind.items()} == {
        "host": (30, 300), "domain": (10, 300), "depth": (6, 300), "next": (9, 300), "error": (3, 66),
    }  # fmt: skip
    assert by["host"] == {f"www0.site{number}.test": 10 for number in range(4)}
    assert by["domain"] == {f"site{number}.test": 30 for number in range(4)}
    assert by["depth"] == {str(number): 50 for number in range(4)}
    assert by["error"] == {"EXCEPTION Http code=500": 30, "EXCEPTION Http code=501": 30, "parse failed/exception": 6}
    assert by["next"] == {
        NEXT_FETCH_LABELS[0]: 70,
        NEXT_FETCH_LABELS[-1]: 110,
        NEXT_FETCH_LABELS[-2]: 60,
        NEXT_FETCH_LABELS[1]: 23,
    }
    assert dict(found.names_by_kind["error"].top)["EXCEPTION Http code=500"] == {CrawlStatus.RETRY: 30}
    halves = {name: sketch.get_quantiles([0.5])[0.5] for name, sketch in found.sketches.items()}
    days = {"fetch interval": 4, "fetch time": 49}
    assert halves == {
        name: pytest.approx(value, rel=2 * ACCURACY) for name, value in {
            "score": 14.9, "retries": 1, "depth": 2, "response time": 149,
            **{name: number * 86_400 for name, number in days.items()},
        }.items()
    }  # fmt: skip


def test_breakdown_lines_follow_nutch_lines(table: Configuration, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(table, "readdb", "-stats", "-exact") == 0
    plain = capsys.readouterr().out.splitlines()
    assert run(table, "readdb", "-stats", "-quantiles", "-by", "host", "error", "-most", "2") == 0
    more = capsys.readouterr().out.splitlines()
    assert more[: len(plain) - 1] == plain[:-1]
    assert more[-1] == plain[-1] == "WebTable statistics: done"
    values = dict(line.split("\t", 1) for line in more[len(plain) - 1 : -1])
    assert values["hosts:"] == "30"
    assert values["host www0.site0.test:"] == "10\t34 (status_retry) 10"
    assert values["errors:"] == "3"
    assert values["longest fetch interval:"] == "604800 s"
    assert values["latest fetch time:"].startswith("20")
    assert len([name for name in values if name.startswith("score quantile ")]) == 15
    assert "min score:" not in values
    assert len([name for name in values if name.startswith(("host ", "error "))]) == 4


def test_json_and_csv_contain_same_data(table: Configuration, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["readdb", "-stats", "-sort", "-quantiles", "-by", *BREAKDOWN_FIELDS]
    assert run(table, *words, "-json") == 0
    report = json.loads(capsys.readouterr().out)
    assert run(table, *words, "-csv") == 0
    rows = [*csv.reader(io.StringIO(capsys.readouterr().out))]
    assert rows[0] == ["statistic", "name", "value"]
    values = {(statistic, name): value for statistic, name, value in rows[1:]}
    assert len(values) == len(rows) - 1
    assert values["rows", ""] == "300"
    assert values["score quantile", "0.5"] == str(report["quantiles"]["score"]["quantiles"]["0.5"])
    for what, counted in report["by"].items():
        for each in counted["greatest"]:
            assert values[what, each["name"]] == str(each["rows"]) == str(sum(each["status"].values()))
    assert [each["name"] for each in report["by"]["depth"]["greatest"]] == [*"012345"]
    assert report["quantiles"]["fetchTime"]["minimum"] == NOW - 100 * DAY
    assert report["hosts"]["www0.site0.test"] == {"status_retry": 10}


def test_rows_are_printed_as_json_and_csv(crawl: Configuration, capsys: pytest.CaptureFixture[str]) -> None:
    url = "http://a.interop.test/p01.html"
    assert run(crawl, "readdb", "-url", url, "-json", "-links", "-text") == 0
    record = json.loads(capsys.readouterr().out)
    row = open_store(crawl, WebPage).get("test.interop.a:http/p01.html")
    assert row is not None
    assert row.signature is not None
    assert (record["url"], record["status"], record["outlinks"]) == (url, 2, dict(row.outlinks.items()))
    assert (record["signature"], record["text"]) == (row.signature.hex(), row.text)
    assert "content" not in record
    assert run(crawl, "readdb", "-url", "test.interop.a:http/p01.html", "-csv") == 0
    (line,) = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert tuple(line) == CSV_COLUMNS
    assert (line["url"], line["status"], line["title"]) == (url, "2 (status_fetched)", row.title)
    assert run(crawl, "readdb", "-url", "http://a.interop.test/none", "-json") == 1
    assert capsys.readouterr().out == ""
    assert run(crawl, "readdb", "-url", url, "-csv", "-text") == 255
    assert "use -json" in capsys.readouterr().err


def test_top_n_is_printed_in_every_format(table: Configuration, capsys: pytest.CaptureFixture[str]) -> None:
    best = []
    for form in ("-json", "-csv", "-format"):
        assert run(table, "readdb", "-topN", "3", form, *(["normal"] if form == "-format" else [])) == 0
        best.append(capsys.readouterr().out.splitlines())
    rows = [(each["score"], each["url"]) for each in map(json.loads, best[0])]
    assert [score for score, _ in rows] == pytest.approx([29.9, 29.8, 29.7], rel=1e-6)
    assert [line.split(",")[1] for line in best[1]] == ["url", *(url for _, url in rows)]
    assert [line.split("\t")[1] for line in best[2]] == [url for _, url in rows]


def dumped(folder: Path) -> list[str]:
    return [line for path in sorted(folder.glob("part-*")) for line in path.read_text("utf-8").splitlines()]


def test_dump_is_written_in_every_format(table: Configuration, tmp_path: Path) -> None:
    words = ["readdb", "-dump"]
    assert run(table, *words, str(tmp_path / "json"), "-json", "-status", "retry") == 0
    rows = [json.loads(line) for line in dumped(tmp_path / "json")]
    assert (len(rows), {each["status"] for each in rows}) == (60, {CrawlStatus.RETRY})
    assert run(table, *words, str(tmp_path / "csv"), "-format", "csv", "-retry", "3") == 0
    rows = [line for line in dumped(tmp_path / "csv") if not line.startswith("url,")]
    assert (len(rows), {row.split(",")[5] for row in rows}) == (75, {"3"})
    assert run(table, *words, str(tmp_path / "some"), "-csv", "-sample", "0.5") == 0
    assert run(table, *words, str(tmp_path / "again"), "-csv", "-sample", "0.5") == 0
    assert 100 < len(dumped(tmp_path / "some")) < 200
    assert dumped(tmp_path / "some") == dumped(tmp_path / "again")


@pytest.mark.parametrize(("words", "message"), [
    (["-status", "no"], "-status status_no is not one of null, status_unfetched"), (["-sample", "2"], "from 0 to 1"),
])  # fmt: skip
def test_invalid_dump_option_is_rejected(
    table: Configuration, tmp_path: Path, words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(table, "readdb", "-dump", str(tmp_path / "out"), *words) == 255
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_error_reason_names_no_page(crawl: Configuration) -> None:
    """All rows with an error are counted, and no name holds a URL: or each page would be an error of its own."""
    found = count_breakdown(crawl, BreakdownParameters(by=["error"], now=now_ms()))
    errors = Counter({name: sum(rows.values()) for name, rows in found.names_by_kind["error"].top})
    assert errors.total() == found.names_by_kind["error"].row_count > 0
    assert not [name for name in errors if "://" in name or "interop" in name]


def test_configured_quantiles_are_printed(conf: Configuration) -> None:
    conf.set("db.stats.score.quantiles", ".9, .1,.9")
    assert read_quantiles(conf) == [0.1, 0.9]


def test_dump_contains_main_text_as_markdown(crawl: Configuration, tmp_path: Path) -> None:
    words = ["readdb", "-dump", str(tmp_path / "out"), "-regex", r"http://a\.interop\.test/p01\.html", "-markdown"]
    assert run(crawl, *words, "-json") == 0
    (record,) = map(json.loads, dumped(tmp_path / "out"))
    assert record["markdown"]
    assert "content" not in record
