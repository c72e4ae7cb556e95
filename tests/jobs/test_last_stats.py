"""readdb -stats -last: the last statistics are printed with their time and the jobs since then."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import pytest

from nutch2py.cli import main
from nutch2py.conf.configuration import Configuration
from nutch2py.crawl import Crawl
from nutch2py.joblog.job_entry import JobEntry, JobState, StoredJobEntry
from nutch2py.joblog.job_log_store import KEY_PREFIX, encode_entry, entry_key
from nutch2py.joblog.stored_overview import load_table_stats, store_table_stats
from nutch2py.jobs.locking import lock_scopes
from nutch2py.jobs.locking.lock_scopes import STATS_CHANGING_JOBS, LockScope
from nutch2py.jobs.readdb.last_stats import get_last_stats
from nutch2py.jobs.stats.stats_collector import StatsCollector
from nutch2py.records.webpage import DerivedRow, WebPage
from nutch2py.support.clock import now_ms
from nutch2py.table import DataStore, open_store, prefix_range
from tests.conftest import MAP_SIZE
from tests.jobs import recorded


@pytest.fixture
def crawl(conf: Configuration, recording: Path) -> Configuration:
    """A recorded table without stored statistics, as in HBase."""
    recorded.load(conf, recording / "dumps" / "round2-updatedb.jsonl.gz")
    open_store(conf, DerivedRow).create()
    without_figures(conf)
    return conf


def without_figures(conf: Configuration) -> None:
    open_store(conf, WebPage).due_index().drop()


def run(conf: Configuration, *words: str) -> int:
    settings = {"storage.data.store": conf.get("storage.data.store"), "storage.embedded.map.size": MAP_SIZE}
    return main([*words, *(part for name, value in settings.items() for part in ("-D", f"{name}={value}"))])


def put_entry(conf: Configuration, entry: JobEntry) -> None:
    with open_store(conf, DerivedRow).batch() as batch:
        batch.put(entry_key(entry.id), encode_entry(StoredJobEntry(entry=entry, token="gone", machine="elsewhere")))


def entry(job: str, start: int, ended: int | None, state: JobState = JobState.FINISHED) -> JobEntry:
    number = f"{start:013d}-{abs(hash(job)) % 0xFFFFFF:06x}"
    return JobEntry(number, job, "", "", state, start, ended, ended or start, "elsewhere", 1, "nobody")


def test_missing_count_is_reported(crawl: Configuration, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(crawl, "readdb", "-stats", "-last") == 4
    assert "run readdb -stats without -last" in capsys.readouterr().err


def test_last_stats_print_counted_lines(crawl: Configuration, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(crawl, "readdb", "-stats") == 0
    counted = capsys.readouterr().out.splitlines()
    assert run(crawl, "readdb", "-stats", "-last") == 0
    last = capsys.readouterr().out.splitlines()
    at = counted.index("statistics: every row was read")
    assert last[at].startswith("statistics: counted 2")
    assert last[at].endswith("; jobs since then: none that changes them")
    assert last[:at] + last[at + 1 :] == counted[:at] + counted[at + 1 :]


def test_later_job_is_named_and_not_counted(
    crawl: Configuration, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(crawl, "readdb", "-stats") == 0
    seeds = tmp_path / "seeds.txt"
    seeds.write_text("http://new.test/\n")
    assert run(crawl, "inject", str(seeds)) == 0
    capsys.readouterr()
    for form in ("-json", "-csv"):
        assert run(crawl, "readdb", "-stats", "-last", form) == 0
        out = capsys.readouterr().out
        if form == "-json":
            report = json.loads(out)
            assert (report["rows"], report["since"], report["kept"]) == (461, {"inject": 1}, False)
        else:
            assert ["since", "inject", "1"] in [*csv.reader(io.StringIO(out))]
    assert run(crawl, "readdb", "-stats") == 0
    assert "TOTAL urls:\t462\n" in capsys.readouterr().out
    assert get_last_stats(crawl, open_store(crawl, WebPage)).jobs_since == {}


def test_job_running_during_count_is_named(crawl: Configuration) -> None:
    store, log = open_store(crawl, WebPage), open_store(crawl, DerivedRow)
    assert run(crawl, "readdb", "-stats") == 0
    table_stats = load_table_stats(log)
    assert table_stats is not None
    at, hour = table_stats.counted_at, 3_600_000
    put_entry(crawl, entry("inject", at - 3 * hour, at - hour))  # it had ended
    put_entry(crawl, entry("generate", at + 1, at + 2))  # changes nothing that is counted
    put_entry(crawl, entry("updatedb", at - hour, at + 5))
    put_entry(crawl, replace(entry("fetch", at - 2 * hour, None, JobState.RUNNING), last_seen=at - hour))
    put_entry(crawl, replace(entry("parse", at - 2 * hour, None, JobState.RUNNING), last_seen=at - 10))
    since = get_last_stats(crawl, store).jobs_since
    assert since == {"parse (killed)": 1, "updatedb": 1}


def test_truncated_job_log_is_reported(
    crawl: Configuration, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With few, no or unreadable entries the output must not claim that no job ran."""
    store, log = open_store(crawl, WebPage), open_store(crawl, DerivedRow)
    seeds = tmp_path / "seeds.txt"
    seeds.write_text("http://new.test/\n")
    assert run(crawl, "readdb", "-stats") == 0
    assert run(crawl, "inject", str(seeds)) == 0
    assert run(crawl, "generate", "-D", "joblog.keep=1") == 0  # which no statistics include
    stats = get_last_stats(crawl, store)
    assert stats.jobs_since is None
    assert stats.describe_source(now_ms()).endswith("; jobs since then are unknown (joblog.keep)")
    capsys.readouterr()
    assert run(crawl, "readdb", "-stats", "-last", "-json") == 0
    assert json.loads(capsys.readouterr().out)["since"] is None
    assert run(crawl, "readdb", "-stats", "-last", "-csv") == 0
    assert "since" not in capsys.readouterr().out
    assert run(crawl, "readdb", "-stats", "-D", "joblog.keep=0") == 0
    assert get_last_stats(crawl, store).jobs_since is None
    assert run(crawl, "readdb", "-stats") == 0
    assert get_last_stats(crawl, store).jobs_since == {}
    (counting,) = (key for key in log.keys(prefix_range(KEY_PREFIX)) if entry_named("readdb", log, key))
    with log.batch() as batch:
        row = DerivedRow()
        row.data = b"damaged"
        batch.put(counting, row)
    assert get_last_stats(crawl, store).jobs_since is None


def entry_named(job: str, log: DataStore[DerivedRow], key: str) -> bool:
    row = log.get(key, {DerivedRow.data})
    return row is not None and json.loads(row.data or b"{}")["entry"]["job"] == job


def test_clock_set_back_hides_no_job(crawl: Configuration, tmp_path: Path) -> None:
    store, log = open_store(crawl, WebPage), open_store(crawl, DerivedRow)
    assert run(crawl, "readdb", "-stats") == 0
    table_stats = load_table_stats(log)
    assert table_stats is not None
    hour = 3_600_000
    later = entry("inject", table_stats.counted_at + 1, None)  # the log's own numbers continue
    put_entry(
        crawl, replace(later, start_time=table_stats.counted_at - hour, finish_time=table_stats.counted_at - hour + 5)
    )
    put_entry(crawl, entry("updatedb", table_stats.counted_at - hour, table_stats.counted_at - hour + 5))  # before
    assert get_last_stats(crawl, store).jobs_since == {"inject": 1}


def test_count_killed_while_storing_is_found_in_log(crawl: Configuration, monkeypatch: pytest.MonkeyPatch) -> None:
    store, log = open_store(crawl, WebPage), open_store(crawl, DerivedRow)
    assert run(crawl, "readdb", "-stats", "-D", "joblog.keep=0") == 0
    table_stats = load_table_stats(log)
    assert table_stats is not None
    put_entry(
        crawl,
        replace(entry("readdb", table_stats.counted_at - 5, None, JobState.RUNNING), last_seen=table_stats.counted_at),
    )
    put_entry(crawl, entry("inject", table_stats.counted_at + 5, table_stats.counted_at + 6))
    assert get_last_stats(crawl, store).jobs_since == {"inject": 1}


def test_killed_count_keeps_previous_one(crawl: Configuration, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(crawl, "readdb", "-stats") == 0
    before = load_table_stats(open_store(crawl, DerivedRow))

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("nutch2py.jobs.readdb.readdb_commands.run_job", killed)
    with pytest.raises(KeyboardInterrupt), Crawl(crawl) as jobs:
        jobs.stats(exact=True)
    assert load_table_stats(open_store(crawl, DerivedRow)) == before


def test_stored_figures_are_latest(conf: Configuration, recording: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recorded.load(conf, recording / "dumps" / "round2-updatedb.jsonl.gz")
    outs = []
    for words in ([], ["-last"]):
        assert run(conf, "readdb", "-stats", *words) == 0
        outs.append(capsys.readouterr().out)
    assert outs[0] == outs[1]
    assert "statistics: kept by the jobs" in outs[0]


@pytest.mark.parametrize("words", [["-exact"], ["-sort"], ["-by", "host"], ["-quantiles"]])
def test_options_reading_rows_are_rejected(
    conf: Configuration, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(conf, "readdb", "-stats", "-last", *words) == 255
    assert "-last reads no row" in capsys.readouterr().err


@pytest.mark.parametrize("dump", ["round1-inject", "round2-updatedb", "round4-updatedb"])
def test_stored_figures_print_same_lines(conf: Configuration, recording: Path, dump: str) -> None:
    recorded.load(conf, recording / "dumps" / f"{dump}.jsonl.gz")
    with Crawl(conf) as jobs:
        counted = jobs.stats(exact=True)
    store_table_stats(open_store(conf, DerivedRow), counted.to_table_stats(5))
    found = load_table_stats(open_store(conf, DerivedRow))
    assert found is not None
    assert StatsCollector.from_table_stats(found).format_lines() == counted.format_lines()


def test_stats_by_host_need_one_pass(crawl: Configuration, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(crawl, "readdb", "-stats", "-sort", "-by", "host", "-quantiles", "-json") == 0
    report = json.loads(capsys.readouterr().out)
    assert sum(sum(by.values()) for by in report["hosts"].values()) == 461
    assert sum(each["rows"] for each in report["by"]["host"]["greatest"]) == 461
    with Crawl(crawl) as jobs:
        assert [each.job for each in jobs.jobs()] == ["readdb"]
        assert jobs.jobs()[0].rows == 461


def test_every_job_kind_is_classified_by_effect_on_figures() -> None:
    every = {each.name for each in vars(lock_scopes).values() if isinstance(each, LockScope)}
    assert every - STATS_CHANGING_JOBS == {
        "generate",
        "index",
        "clean",
        "dedup",
        "updatehostdb",
        "dueindex",
        "a reader",
    }
