"""readdb -stats -last: what was counted last is told with its time, and what was at work since."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import pytest

from nutch2py.cli import main
from nutch2py.conf import Configuration
from nutch2py.crawl import Crawl
from nutch2py.joblog.entry import JobEntry, JobState
from nutch2py.joblog.kept import keep_figures, kept_figures
from nutch2py.joblog.stored import PREFIX, Stored, encode, key_of
from nutch2py.jobs import works
from nutch2py.jobs.last_stats import last_stats, stats_of
from nutch2py.jobs.snapshot import figures_of
from nutch2py.jobs.works import FIGURES, Work
from nutch2py.table import DataStore, open_store, prefix_range
from nutch2py.table.clock import now_ms
from nutch2py.webpage import BatchEntry, WebPage
from tests.conftest import MAP_SIZE
from tests.jobs import recorded


@pytest.fixture
def crawl(conf: Configuration, recording: Path) -> Configuration:
    """A recorded table with which no figures are kept, as in HBase."""
    recorded.load(conf, recording / "dumps" / "round2-updatedb.jsonl.gz")
    open_store(conf, BatchEntry).create()
    without_figures(conf)
    return conf


def without_figures(conf: Configuration) -> None:
    open_store(conf, WebPage).due_index().drop()


def run(conf: Configuration, *words: str) -> int:
    settings = {"storage.data.store": conf.get("storage.data.store"), "storage.embedded.map.size": MAP_SIZE}
    return main([*words, *(part for name, value in settings.items() for part in ("-D", f"{name}={value}"))])


def put_entry(conf: Configuration, entry: JobEntry) -> None:
    with open_store(conf, BatchEntry).batch() as batch:
        batch.put(key_of(entry.id), encode(Stored(entry=entry, token="gone", machine="elsewhere")))


def entry(job: str, begun: int, ended: int | None, state: JobState = JobState.FINISHED) -> JobEntry:
    number = f"{begun:013d}-{abs(hash(job)) % 0xFFFFFF:06x}"
    return JobEntry(number, job, "", "", state, begun, ended, ended or begun, "elsewhere", 1, "nobody")


def test_nothing_was_counted_yet(crawl: Configuration, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(crawl, "readdb", "-stats", "-last") == 4
    assert "readdb -stats without -last counts them" in capsys.readouterr().err


def test_the_lines_are_those_that_were_counted(crawl: Configuration, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(crawl, "readdb", "-stats") == 0
    counted = capsys.readouterr().out.splitlines()
    assert run(crawl, "readdb", "-stats", "-last") == 0
    last = capsys.readouterr().out.splitlines()
    at = counted.index("figures: every row was read")
    assert last[at].startswith("figures: counted 2")
    assert last[at].endswith("; at work since then: no job that changes them")
    assert last[:at] + last[at + 1 :] == counted[:at] + counted[at + 1 :]


def test_a_job_that_came_after_is_named_and_its_rows_are_not_counted(
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
            told = json.loads(out)
            assert (told["rows"], told["since"], told["kept"]) == (461, {"inject": 1}, False)
        else:
            assert ["since", "inject", "1"] in [*csv.reader(io.StringIO(out))]
    assert run(crawl, "readdb", "-stats") == 0
    assert "TOTAL urls:\t462\n" in capsys.readouterr().out
    assert last_stats(crawl, open_store(crawl, WebPage)).since == {}


def test_what_was_at_work_while_it_was_counted_is_named(crawl: Configuration) -> None:
    store, log = open_store(crawl, WebPage), open_store(crawl, BatchEntry)
    assert run(crawl, "readdb", "-stats") == 0
    figures = kept_figures(log)
    assert figures is not None
    at, hour = figures.made, 3_600_000
    put_entry(crawl, entry("inject", at - 3 * hour, at - hour))  # it had ended
    put_entry(crawl, entry("generate", at + 1, at + 2))  # changes nothing that is counted
    put_entry(crawl, entry("updatedb", at - hour, at + 5))
    put_entry(crawl, replace(entry("fetch", at - 2 * hour, None, JobState.RUNNING), seen=at - hour))
    put_entry(crawl, replace(entry("parse", at - 2 * hour, None, JobState.RUNNING), seen=at - 10))
    since = last_stats(crawl, store).since
    assert since == {"parse (killed)": 1, "updatedb": 1}


def test_a_log_that_does_not_go_back_so_far_cannot_tell(
    crawl: Configuration, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Few entries are kept, or none, or some have become unreadable: that there was no job is not what it says."""
    store, log = open_store(crawl, WebPage), open_store(crawl, BatchEntry)
    seeds = tmp_path / "seeds.txt"
    seeds.write_text("http://new.test/\n")
    assert run(crawl, "readdb", "-stats") == 0
    assert run(crawl, "inject", str(seeds)) == 0
    assert run(crawl, "generate", "-D", "joblog.keep=1") == 0  # of which no figure tells
    told = last_stats(crawl, store)
    assert told.since is None
    assert told.told(now_ms()).endswith("; what has been at work since is not known (joblog.keep)")
    capsys.readouterr()
    assert run(crawl, "readdb", "-stats", "-last", "-json") == 0
    assert json.loads(capsys.readouterr().out)["since"] is None
    assert run(crawl, "readdb", "-stats", "-last", "-csv") == 0
    assert "since" not in capsys.readouterr().out
    assert run(crawl, "readdb", "-stats", "-D", "joblog.keep=0") == 0
    assert last_stats(crawl, store).since is None
    assert run(crawl, "readdb", "-stats") == 0
    assert last_stats(crawl, store).since == {}
    (counting,) = (key for key in log.keys(prefix_range(PREFIX)) if entry_named("readdb", log, key))
    with log.batch() as batch:
        row = BatchEntry()
        row.data = b"damaged"
        batch.put(counting, row)
    assert last_stats(crawl, store).since is None


def entry_named(job: str, log: DataStore[BatchEntry], key: str) -> bool:
    row = log.get(key, {BatchEntry.data})
    return row is not None and json.loads(row.data or b"{}")["entry"]["job"] == job


def test_a_clock_that_was_set_back_hides_no_job(crawl: Configuration, tmp_path: Path) -> None:
    store, log = open_store(crawl, WebPage), open_store(crawl, BatchEntry)
    assert run(crawl, "readdb", "-stats") == 0
    figures = kept_figures(log)
    assert figures is not None
    hour = 3_600_000
    later = entry("inject", figures.made + 1, None)  # the log's own numbers go on
    put_entry(crawl, replace(later, begun=figures.made - hour, ended=figures.made - hour + 5))
    put_entry(crawl, entry("updatedb", figures.made - hour, figures.made - hour + 5))  # before
    assert last_stats(crawl, store).since == {"inject": 1}


def test_a_count_that_is_killed_when_its_figures_are_kept_is_found_in_the_log(
    crawl: Configuration, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, log = open_store(crawl, WebPage), open_store(crawl, BatchEntry)
    assert run(crawl, "readdb", "-stats", "-D", "joblog.keep=0") == 0
    figures = kept_figures(log)
    assert figures is not None
    put_entry(crawl, replace(entry("readdb", figures.made - 5, None, JobState.RUNNING), seen=figures.made))
    put_entry(crawl, entry("inject", figures.made + 5, figures.made + 6))
    assert last_stats(crawl, store).since == {"inject": 1}


def test_a_count_that_is_killed_leaves_the_last_one(crawl: Configuration, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(crawl, "readdb", "-stats") == 0
    before = kept_figures(open_store(crawl, BatchEntry))

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("nutch2py.jobs.readdb.run_job", killed)
    with pytest.raises(KeyboardInterrupt), Crawl(crawl) as jobs:
        jobs.stats(exact=True)
    assert kept_figures(open_store(crawl, BatchEntry)) == before


def test_kept_figures_are_the_last_ones(
    conf: Configuration, recording: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recorded.load(conf, recording / "dumps" / "round2-updatedb.jsonl.gz")
    outs = []
    for words in ([], ["-last"]):
        assert run(conf, "readdb", "-stats", *words) == 0
        outs.append(capsys.readouterr().out)
    assert outs[0] == outs[1]
    assert "figures: kept by the jobs" in outs[0]


@pytest.mark.parametrize("words", [["-exact"], ["-sort"], ["-by", "host"], ["-quantiles"]])
def test_what_reads_rows_is_refused(conf: Configuration, words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(conf, "readdb", "-stats", "-last", *words) == 255
    assert "-last reads no row" in capsys.readouterr().err


@pytest.mark.parametrize("dump", ["round1-inject", "round2-updatedb", "round4-updatedb"])
def test_figures_that_were_kept_give_the_same_lines(conf: Configuration, recording: Path, dump: str) -> None:
    recorded.load(conf, recording / "dumps" / f"{dump}.jsonl.gz")
    with Crawl(conf) as jobs:
        counted = jobs.stats(exact=True)
    keep_figures(open_store(conf, BatchEntry), figures_of(counted, 5))
    found = kept_figures(open_store(conf, BatchEntry))
    assert found is not None
    assert stats_of(found).lines() == counted.lines()


def test_by_host_in_one_pass_with_all_else(crawl: Configuration, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(crawl, "readdb", "-stats", "-sort", "-by", "host", "-quantiles", "-json") == 0
    told = json.loads(capsys.readouterr().out)
    assert sum(sum(by.values()) for by in told["hosts"].values()) == 461
    assert sum(each["rows"] for each in told["by"]["host"]["greatest"]) == 461
    with Crawl(crawl) as jobs:
        assert [each.job for each in jobs.jobs()] == ["readdb"]
        assert jobs.jobs()[0].done == 461


def test_each_kind_of_work_either_changes_figures_or_does_not() -> None:
    every = {each.name for each in vars(works).values() if isinstance(each, Work)}
    assert every - FIGURES == {"generate", "index", "clean", "dedup", "updatehostdb", "dueindex", "a reader"}
