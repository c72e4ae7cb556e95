"""export: files for other programs hold what the table holds, and say what they skipped."""

from __future__ import annotations

import csv
import json
import math
from base64 import b64decode
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from nutch2py.commands import command_parser
from nutch2py.conf.configuration import Configuration
from nutch2py.crawl import Crawl
from nutch2py.errors import InputError, NutchError, StoreError, UsageError
from nutch2py.jobs.batches.batch_lists import BatchListStore, BatchState
from nutch2py.jobs.export import arrow_tables
from nutch2py.jobs.export.export_columns import DEFAULT_COLUMNS, EXPORT_COLUMNS
from nutch2py.jobs.export.export_formats import EXPORT_FORMATS
from nutch2py.jobs.export.markdown_chunks import split_markdown
from nutch2py.records.cells import ProtocolStatus
from nutch2py.records.webpage import CrawlStatus, Mark, MetadataKey, ProtocolStatusCode, WebPage
from nutch2py.support.clock import now_ms
from nutch2py.table import open_store
from tests.import_graph import ROOT
from tests.jobs import recorded, rows

NOON = 1_795_694_400_000
"""2026-11-26 12:00 UTC."""
FETCHED = (CrawlStatus.FETCHED, CrawlStatus.NOTMODIFIED)


@pytest.fixture
def crawl(conf: Configuration, recording: Path) -> Configuration:
    """A table of the recorded crawl after its second round."""
    recorded.load(conf, recording / "dumps" / "round2-updatedb.jsonl.gz")
    return conf


@pytest.fixture
def small(conf: Configuration) -> Configuration:
    """A table of four pages, one of which was not fetched."""
    fetched = {"status": CrawlStatus.FETCHED, "fetch_time": NOON, "marks": {Mark.FETCH: "1"}}
    rows.put(
        conf,
        {
            "http://a.test/x?y=1": fetched | {"title": 'Ä, "quoted"\nline', "text": "one", "score": 2.5},
            "https://b.test:8443/": fetched | {
                "fetch_time": NOON + 3_600_000, "outlinks": {"http://a.test/x?y=1": "to a"},
                "metadata": {MetadataKey.CHARSET: b"big5"}, "headers": {"content-type": "Text/HTML; charset=big5"},
                "content": bytes(range(256)), "content_type": "text/html",
            },
            "http://a.test/gone": {
                "status": CrawlStatus.GONE, "protocol_status": ProtocolStatus(ProtocolStatusCode.NOTFOUND, ("x",)),
            },
            "http://a.test/moved": {
                "status": CrawlStatus.REDIR_PERM,
                "protocol_status": ProtocolStatus(ProtocolStatusCode.MOVED, ("http://a.test/x?y=1",)),
            },
        },
    )  # fmt: skip
    return conf


def export(conf: Configuration, folder: Path, export_format: str = "jsonl", **options: Any) -> list[dict[str, Any]]:
    """Export pages and return the rows of the files."""
    with Crawl(conf) as crawl:
        result = crawl.export_pages(folder, export_format, **options)
    found = read(folder, export_format)
    assert (result.pages, result.files) == (len(found), len([*folder.glob("part-*")]))
    return found


def read(folder: Path, export_format: str) -> list[dict[str, Any]]:
    """Return the rows of an export's files, without missing values."""
    found: list[dict[str, Any]] = []
    for path in sorted(folder.glob("part-*")):
        if export_format == "parquet":
            found += parquet.read_table(path).to_pylist()
        elif export_format == "csv":
            with path.open(encoding="utf-8", newline="") as file:
                found += csv.DictReader(file)
        else:
            found += map(json.loads, path.read_bytes().splitlines())
    return [{name: value for name, value in row.items() if value not in (None, "")} for row in found]


def test_every_fetched_page_of_recorded_crawl_is_exported(crawl: Configuration, tmp_path: Path) -> None:
    found = export(crawl, tmp_path / "out", fields=("default", "content", "inlinks"))
    pages = {url: page for url, page in rows.pages(crawl).items() if page.status in FETCHED}
    assert [row["url"] for row in found] == list(pages)
    for row in found:
        page = pages[row["url"]]
        assert (row.get("title"), row.get("text")) == (page.title or None, page.text or None)
        assert row.get("signature", "") == (page.signature or b"").hex()
        assert {link["url"]: link["anchor"] for link in row["outlinks"]} == dict(page.outlinks.decoded_items())
        assert {link["url"]: link["anchor"] for link in row["inlinks"]} == dict(page.inlinks.decoded_items())
        assert b64decode(row.get("content", "")) == (page.content or b"")
        assert row["score"] == page.score
    skipped = json.loads((tmp_path / "out" / "export.json").read_bytes())["skipped"]
    assert skipped == {"not_fetched": len(rows.pages(crawl)) - len(pages)}


def test_formats_hold_the_same_values(small: Configuration, tmp_path: Path) -> None:
    fields = [name for name in EXPORT_COLUMNS if name != "markdown"]
    lines = export(small, tmp_path / "jsonl", fields=fields)
    assert len(lines) == 2
    columns = export(small, tmp_path / "parquet", "parquet", fields=fields)
    texts = export(small, tmp_path / "csv", "csv", fields=fields)
    for line, column, text in zip(lines, columns, texts, strict=True):
        assert line.keys() == column.keys() == text.keys()
        for name, value in line.items():
            match EXPORT_COLUMNS[name].type:
                case "timestamp":
                    assert column[name] == datetime.fromisoformat(value)
                case "binary":
                    assert column[name] == b64decode(value)
                case _:
                    assert column[name] == value
            assert text[name] == (value if isinstance(value, str) else json.dumps(value, separators=(",", ":")))
    assert lines[1]["content_mime_type"] == "text/html"
    assert (lines[1]["content_charset"], lines[1]["url_port"], lines[1]["url_surtkey"]) == (
        "big5",
        8443,
        "test,b:8443)/",
    )
    assert lines[0]["fetch_time"] == "2026-11-26T12:00:00.000Z"


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        (["title~quoted"], {"x?y=1"}),
        (["title!~quoted"], {""}),
        (["url_query=y=1"], {"x?y=1"}),
        (["url_query="], {""}),
        (["url_query!="], {"x?y=1"}),
        (["score>2", "url_host_name=a.test"], {"x?y=1"}),
        (["score<=2"], {""}),
        (["fetch_time>=2026-11-26T12:30"], {""}),
        (["fetch_time < 2026-11-26T13:00:00+00:00"], {"x?y=1"}),
        (["url_port=8443"], {""}),
        (["status=gone"], {"gone"}),
        (["fetch_redirect~a.test"], set()),
        (["status~redir", "fetch_redirect~a.test"], {"moved"}),
    ],
)
def test_conditions_select_rows(small: Configuration, tmp_path: Path, where: list[str], expected: set[str]) -> None:
    found = export(small, tmp_path / "out", where=where, fields=["url"])
    assert {row["url"].split("/", 3)[3] for row in found} == expected


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"where": ["lang"]}, "is not a condition"),
        ({"where": ["wrong=1"]}, "'wrong' is not a field to compare"),
        ({"where": ["outlinks=1"]}, "is not a field to compare"),
        ({"where": ["score>much"]}, "'much' is not a number"),
        ({"where": ["depth=1.5"]}, "'1.5' is not a whole number"),
        ({"where": ["depth~1"]}, "is not a regular expression"),
        ({"where": ["status=2"]}, "'2' is not a status: give one of unfetched, fetched, gone"),
        ({"where": ["status!=status_fetched"]}, "'status_fetched' is not a status"),
        ({"where": ["url~("]}, "is not a regular expression"),
        ({"where": ["fetch_time>yesterday"]}, "is not a date or time"),
        ({"fields": ["url", "wrong"]}, "'wrong' is not a field of an export"),
        ({"changed_since": "yesterday"}, "is neither a time"),
        ({"chunk_tokens": 100}, "add -format markdown"),
        ({"export_format": "xml"}, "-format xml is not one of jsonl, csv, parquet, markdown"),
        ({"export_format": "markdown", "fields": ["url"]}, "leave out -fields"),
    ],
)
def test_wrong_words_are_usage_errors_and_write_nothing(
    small: Configuration, tmp_path: Path, options: dict[str, Any], words: str
) -> None:
    with pytest.raises(UsageError, match=words), Crawl(small) as crawl:
        crawl.export_pages(tmp_path / "out", options.pop("export_format", "jsonl"), **options)
    assert not (tmp_path / "out").exists()


def test_all_rows_have_rows_that_were_never_fetched(small: Configuration, tmp_path: Path) -> None:
    rows.put(small, {"http://c.test/": {"fetch_time": NOON}})
    found = export(small, tmp_path / "out", all_rows=True, fields=["url", "status", "fetch_time"])
    assert {row["url"]: row.get("status") for row in found} == {
        "http://a.test/gone": "gone",
        "http://a.test/moved": "redir_perm",
        "http://a.test/x?y=1": "fetched",
        "https://b.test:8443/": "fetched",
        "http://c.test/": None,
    }
    assert "fetch_time" not in found[-1]
    one = export(small, tmp_path / "host", host="A.test", all_rows=True, fields=["url"])
    assert len(one) == 3


def test_next_export_begins_where_the_last_ended(small: Configuration, tmp_path: Path) -> None:
    before = now_ms()
    assert len(export(small, tmp_path / "1", changed_since="2026-11-26T12:30")) == 1
    since = json.loads((tmp_path / "1" / "export.json").read_bytes())["next_since"]
    assert before <= datetime.fromisoformat(since).timestamp() * 1000 <= now_ms()
    assert export(small, tmp_path / "2", changed_since=tmp_path / "1") == []
    fetched = {"status": CrawlStatus.FETCHED, "fetch_time": now_ms(), "marks": {Mark.FETCH: "2"}}
    rows.put(small, {"http://new.test/": fetched})
    (row,) = export(small, tmp_path / "3", changed_since=tmp_path / "2")
    assert row["url"] == "http://new.test/"


def test_pages_of_open_batch_are_not_lost_to_next_export(small: Configuration, tmp_path: Path) -> None:
    """They may have been fetched before this export, and be parsed after it."""
    BatchListStore(small).set_state("open", BatchState.GENERATED, 1)
    generated = now_ms()
    fetched = {"status": CrawlStatus.FETCHED, "fetch_time": generated + 1, "marks": {Mark.FETCH: "open"}}
    rows.put(small, {"http://new.test/": fetched})
    export(small, tmp_path / "1", changed_since="2026-11-27")
    rows.put(small, {"http://new.test/": {**fetched, "text": "parsed"}})
    (row,) = export(small, tmp_path / "2", changed_since=tmp_path / "1", fields=["url", "text"])
    assert row == {"url": "http://new.test/", "text": "parsed"}


def test_since_wants_a_complete_export(small: Configuration, tmp_path: Path) -> None:
    (tmp_path / "broken").mkdir()
    with pytest.raises(InputError, match=r"has no export\.json, so its export did not end"):
        export(small, tmp_path / "out", changed_since=tmp_path / "broken")
    for text in ("{}", "[]", "x", '{"next_since": 3}'):
        (tmp_path / "broken" / "export.json").write_text(text)
        with pytest.raises(InputError, match="was not written by an export"):
            export(small, tmp_path / "out", changed_since=tmp_path / "broken")


def test_folder_in_use_is_left_alone(small: Configuration, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    for path, words in (
        (tmp_path, "is in use"),
        (tmp_path / "mine", "is not a folder"),
        (tmp_path / "mine" / "x", "is not a folder"),
    ):
        with pytest.raises(InputError, match=words):
            export(small, path)
    assert [path.name for path in tmp_path.iterdir() if path.name == "mine"] == ["mine"]
    (tmp_path / "empty").mkdir()
    assert len(export(small, tmp_path / "empty")) == 2


@pytest.mark.parametrize("export_format", ["jsonl", "csv", "parquet"])
def test_full_disk_leaves_no_partial_export(
    small: Configuration, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, export_format: str
) -> None:
    (tmp_path / "empty").mkdir()

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device", str(tmp_path / "empty" / "part"))

    monkeypatch.setattr("nutch2py.jobs.export.export_job.write_part", fail)
    for folder in ("new", "empty"):
        with pytest.raises(StoreError, match=r"no space is left .* free some space"):
            export(small, tmp_path / folder, export_format)
    assert not (tmp_path / "new").exists()
    assert [*(tmp_path / "empty").iterdir()] == []


def test_tasks_write_a_part_each(crawl: Configuration, tmp_path: Path) -> None:
    one = export(crawl, tmp_path / "one", fields=["url", "text"])
    crawl.set("mapreduce.job.maps", 3)
    three = export(crawl, tmp_path / "three", fields=["url", "text"])
    assert one == three
    crawl.set("mapreduce.runner", "local")
    assert export(crawl, tmp_path / "local", "parquet", fields=["url", "text"]) == one


def test_hostile_rows_are_exported_as_valid_utf8_and_json(small: Configuration, tmp_path: Path) -> None:
    store = open_store(small, WebPage)
    mutable = {
        b"f": {b"st": (b"\x00\x00\x00\x02", 1), b"ts": (b"\xff" * 8, 1), b"prot": (b"\x02\x00\x00", 1)},
        b"p": {b"t": (b"\xff\xfe\x00", 1), b"c": (b"\xed\xa0\x80 x\r\n\x00", 1)},
        b"s": {b"s": (b"\x7f\x80\x00\x00", 1), b"pr": (b"\x7f\xc0\x00\x00", 1)},
        b"ol": {b"\xff\n": (b"\xff", 1)},
    }
    with store.batch() as batch:
        batch.put_cells("no url at all", mutable)
        batch.put_cells("test.bad\udcff:http/\udcff?\n", mutable)
    fields = [name for name in EXPORT_COLUMNS if name != "markdown"]
    lines = export(small, tmp_path / "jsonl", fields=fields)
    assert len(export(small, tmp_path / "parquet", "parquet", fields=fields)) == len(lines)
    assert len(export(small, tmp_path / "csv", "csv", fields=fields)) == len(lines)
    assert "no url at all" in {row["url"] for row in lines}
    assert len(lines) == 4


def test_unreadable_rows_are_skipped_and_counted(small: Configuration, tmp_path: Path) -> None:
    with open_store(small, WebPage).batch() as batch:
        batch.put_cells("test.bad:http/", {b"f": {b"st": (b"\0", 1)}})
    assert len(export(small, tmp_path / "out")) == 2
    assert json.loads((tmp_path / "out" / "export.json").read_bytes())["skipped"]["unreadable"] == 1
    with Crawl(small) as crawl:
        assert crawl.to_arrow().num_rows == 2


def test_long_rows_fit_into_row_groups(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(arrow_tables, "BLOCK_BYTES", 1000)
    lines = [json.dumps({"url": f"http://h.test/{number}", "text": "x" * number * 300}) for number in range(20)]
    (tmp_path / "lines").write_text("\n".join(lines) + "\n")
    with (tmp_path / "lines").open("rb") as file:
        arrow_tables.write_parquet(file, tmp_path / "out.parquet", ("url", "text"))
    found = parquet.ParquetFile(tmp_path / "out.parquet")
    assert found.metadata.num_row_groups > 5
    assert [len(row["text"]) for row in found.read().to_pylist()] == [number * 300 for number in range(20)]


def test_command_offers_every_format() -> None:
    (action,) = (each for each in command_parser("export").actions() if each.dest == "format")
    assert action.choices == EXPORT_FORMATS


def test_schema_has_no_column_without_type() -> None:
    schema = arrow_tables.make_schema(tuple(EXPORT_COLUMNS))
    assert schema.names == list(EXPORT_COLUMNS)
    assert schema.field("fetch_time").type == pa.timestamp("ms", "UTC")


def test_pages_become_arrow_table(small: Configuration) -> None:
    with Crawl(small) as crawl:
        table = crawl.to_arrow(fields=["url", "score", "outlinks"])
        assert table.to_pydict() == {
            "url": ["http://a.test/x?y=1", "https://b.test:8443/"],
            "score": [2.5, 1.0],
            "outlinks": [[], [{"url": "http://a.test/x?y=1", "anchor": "to a"}]],
        }
        empty = crawl.to_arrow(where=["url=none"])
    assert (empty.num_rows, tuple(empty.schema.names)) == (0, DEFAULT_COLUMNS)


def test_links_are_those_of_the_table(crawl: Configuration) -> None:
    with Crawl(crawl) as reader:
        found = {*reader.links()}
        some = {*reader.links("A.interop.test")}
    expected = {
        (source, url, anchor)
        for url, page in rows.pages(crawl).items()
        for source, anchor in page.inlinks.decoded_items()
    }
    assert found == expected
    assert some == {link for link in expected if link[1].startswith("http://a.interop.test/")} != set()


def test_markdown_is_a_file_per_page_with_front_matter(crawl: Configuration, tmp_path: Path) -> None:
    with Crawl(crawl) as reader:
        result = reader.export_pages(tmp_path / "out", "markdown", where=["url~/p0[12]"], host="a.interop.test")
    first, second = sorted((tmp_path / "out" / "a.interop.test").iterdir())
    assert result.files == 2
    assert first.name.startswith("p01.html-")
    assert first.suffix == second.suffix == ".md"
    front, text = first.read_text().removeprefix("---\n").split("---\n", 1)
    values = {name: json.loads(value) for name, value in (line.split(": ", 1) for line in front.splitlines())}
    assert values["url"] == "http://a.interop.test/p01.html"
    assert values.keys() >= {"url", "title", "fetch_time", "signature"}
    assert text.strip()


def chunks(markdown: str, max_tokens: int) -> Sequence[tuple[list[str], str]]:
    return [(chunk.headings, chunk.text) for chunk in split_markdown(markdown, max_tokens)]


def test_markdown_is_divided_by_headings_and_never_inside_blocks() -> None:
    text = "intro\n\n# A\n\none\ntwo\n\n```py\n# no heading\n\nx\n```\n\n## B ##\n- 1\n- 2\n# C\n\n"
    text += "| a | b |\n|---|---|\n| 1 | 2 |\n"
    assert chunks(text, 1000) == [
        ([], "intro"),
        (["A"], "one\ntwo\n\n```py\n# no heading\n\nx\n```"),
        (["A", "B"], "- 1\n- 2"),
        (["C"], "| a | b |\n|---|---|\n| 1 | 2 |"),
    ]
    assert [part for _, part in chunks(text, 1)] == [
        "intro", "one\ntwo", "```py\n# no heading\n\nx\n```", "- 1\n- 2", "| a | b |\n|---|---|\n| 1 | 2 |",
    ]  # fmt: skip
    assert chunks("```\nnever closed\n\n# x", 5) == [([], "```\nnever closed\n\n# x")]
    assert chunks("", 5) == []


def test_numbers_without_json_form_are_missing(small: Configuration, tmp_path: Path) -> None:
    rows.put(small, {"http://a.test/x?y=1": {"score": math.nan, "page_rank": math.inf}})
    (row,) = export(small, tmp_path / "out", where=["url_path=/x"], fields=["score", "page_rank"])
    assert row == {}


def test_missing_table_is_rejected(conf: Configuration, tmp_path: Path) -> None:
    with pytest.raises(NutchError, match="crawl or inject first"):
        export(conf, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_docs_list_every_field() -> None:
    text = (ROOT / "docs" / "jobs" / "export.md").read_text(encoding="utf-8")
    table = "".join(f"| `{each.name}` | {each.type} | {each.description} |\n" for each in EXPORT_COLUMNS.values())
    assert table in text
