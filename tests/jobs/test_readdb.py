"""readdb and the commands over whole tables, through the command line."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from nutch2py.cli import main
from nutch2py.conf.configuration import Configuration
from nutch2py.jobs.batches.batch_lists import BatchListStore, BatchState
from nutch2py.records.webpage import WebPage
from nutch2py.table import TableQuery, open_store
from nutch2py.url.keys import reverse_url
from tests.conftest import MAP_SIZE
from tests.jobs import recorded


@pytest.fixture
def crawl(conf: Configuration, recording: Path) -> Configuration:
    """A table of the recorded crawl after its second round."""
    recorded.load(conf, recording / "dumps" / "round2-updatedb.jsonl.gz")
    return conf


def run(conf: Configuration, *words: str) -> int:
    """Run a command over the table."""
    return main(
        [
            *words,
            "-D",
            f"storage.data.store={conf.get('storage.data.store')}",
            "-D",
            f"storage.embedded.map.size={MAP_SIZE}",
        ]
    )


def test_stats_are_printed(crawl: Configuration, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(crawl, "readdb", "-stats") == 0
    out = capsys.readouterr().out
    assert "TOTAL urls:\t461\n" in out
    assert run(crawl, "readdb", "-stats", "-D", "mapreduce.job.maps=5") == 0
    assert capsys.readouterr().out == out


def test_url_option_prints_row(crawl: Configuration, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(crawl, "readdb", "-url", "http://a.interop.test/p01.html", "-links") == 0
    out = capsys.readouterr().out
    assert out.startswith("key:\thttp://a.interop.test/p01.html\n")
    assert "status:\t2 (status_fetched)\n" in out
    assert "outlink:\t" in out
    assert run(crawl, "readdb", "-url", "http://a.interop.test/none.html") == 1
    capsys.readouterr()
    assert run(crawl, "readdb", "-url", "test.interop.a:http/p01.html", "-links") == 0
    assert capsys.readouterr().out == out
    assert run(crawl, "readdb", "-url", "test.interop.a:http/none.html") == 1
    assert run(crawl, "readdb", "-url", "no such thing") == 255
    assert "neither a URL nor a row key" in capsys.readouterr().err


def test_stats_as_json_are_printed(crawl: Configuration, capsys: pytest.CaptureFixture[str]) -> None:
    reports = []
    for words in (["-sort"], ["-exact"], []):
        assert run(crawl, "readdb", "-stats", "-json", *words) == 0
        reports.append(json.loads(capsys.readouterr().out))
    hosts = reports[0].pop("hosts")
    for each in reports:
        assert each.pop("counted_at") > 0
        each.pop("kept")
    assert reports[0] == reports[1] == reports[2]
    assert (reports[0]["rows"], sum(reports[0]["status"].values())) == (461, 461)
    assert sum(sum(by.values()) for by in hosts.values()) == 461
    assert hosts["a.interop.test"]["status_fetched"] > 0


def test_dump_filters_rows_by_regex(crawl: Configuration, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "dump"
    assert run(crawl, "readdb", "-dump", str(folder), "-regex", r"http://a\.interop\.test/p0.*", "-text") == 0
    text = "".join(path.read_text() for path in sorted(folder.glob("part-*")))
    rows = [line for line in text.splitlines() if "\tkey:\t" in line]
    assert len(rows) == 10
    assert all(row.startswith("http://a.interop.test/p0") for row in rows)
    assert "text:start:" in text
    capsys.readouterr()
    assert run(crawl, "readdb", "-dump", str(folder)) == 3
    assert "exists already" in capsys.readouterr().err


def test_batches_are_listed(crawl: Configuration, capsys: pytest.CaptureFixture[str]) -> None:
    BatchListStore(crawl).set_state("one two/3", BatchState.GENERATED, 7)
    assert run(crawl, "readdb", "-batches") == 0
    name, state, _, count, *_ = capsys.readouterr().out.rstrip("\n").split("\t")
    assert (name, state, count) == ("one two/3", "generated", "7")


def test_missing_table_is_rejected(conf: Configuration, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(conf, "readdb", "-stats") == 4
    assert "crawl or inject first" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["out.jsonl", "out.jsonl.gz"])
def test_export_import_copy_keep_cells_and_timestamps(
    crawl: Configuration, recording: Path, tmp_path: Path, name: str
) -> None:
    """Cells and timestamps come back from a file, and from a copy in another store, as they were."""
    source = open_store(crawl, WebPage)
    assert run(crawl, "exporttable", str(tmp_path / name)) == 0
    assert (tmp_path / name).read_bytes()[:2] == (b"\x1f\x8b" if name.endswith(".gz") else b'{"')
    other = crawl.copy()
    other.set("storage.data.store", f"embedded:{tmp_path / 'other'}")
    assert run(other, "importtable", str(tmp_path / name)) == 0
    assert list(open_store(other, WebPage).scan_cells()) == list(source.scan_cells())
    assert run(crawl, "copytable", f"embedded:{tmp_path / 'third'}") == 0
    other.set("storage.data.store", f"embedded:{tmp_path / 'third'}")
    assert list(open_store(other, WebPage).scan_cells()) == list(source.scan_cells())
    with gzip.open(recording / "dumps" / "round2-updatedb.jsonl.gz") as lines:
        assert sum(1 for _ in lines) == sum(1 for _ in source.scan_cells())


def test_dump_without_regex_has_every_row(crawl: Configuration, tmp_path: Path) -> None:
    assert run(crawl, "readdb", "-dump", str(tmp_path / "all")) == 0
    text = "".join(path.read_text(encoding="utf-8") for path in sorted((tmp_path / "all").glob("part-*")))
    rows = [key for key, _ in open_store(crawl, WebPage).scan(TableQuery())]
    assert len(rows) > 100
    assert text.count("\tkey:\t") == len(rows)


def test_unicode_option_shows_hosts_to_people(conf: Configuration, capsys: pytest.CaptureFixture[str]) -> None:
    seeds = ("http://xn--mnchen-3ya.de/a", "http://xn--pple-43d.com/", "http://a.test/")
    store = open_store(conf, WebPage)
    store.create()
    with store.batch() as batch:
        for url in seeds:
            page = WebPage()
            page.base_url, page.score = url, 1.0
            batch.put(reverse_url(url), page)
    assert run(conf, "readdb", "-url", "http://münchen.de/a") == 0
    assert "key:\thttp://xn--mnchen-3ya.de/a\nbaseUrl:\thttp://xn--mnchen-3ya.de/a\n" in capsys.readouterr().out
    assert run(conf, "readdb", "-url", "http://münchen.de/a", "-unicode") == 0
    assert "key:\thttp://münchen.de/a\nbaseUrl:\thttp://münchen.de/a\n" in capsys.readouterr().out
    for words in (("-topN", "3"), ("-stats", "-sort"), ("-stats", "-by", "host", "domain")):
        assert run(conf, "readdb", *words) == 0
        assert "xn--mnchen-3ya.de" in capsys.readouterr().out
        assert run(conf, "readdb", *words, "-unicode") == 0
        out = capsys.readouterr().out
        assert "münchen.de" in out
        assert "xn--mnchen-3ya.de" not in out
        assert "xn--pple-43d.com" in out
    for words in (("-topN", "3", "-json"), ("-batches",), ("-dump", "x")):
        assert run(conf, "readdb", *words, "-unicode") != 0
        assert "-unicode goes with" in capsys.readouterr().err
