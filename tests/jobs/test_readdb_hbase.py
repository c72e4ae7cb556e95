"""What is read of a crawl in a real HBase, its job log too, against the same crawl in the embedded store."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from nutch2py import Crawl
from nutch2py.cli import main
from nutch2py.conf.configuration import Configuration
from nutch2py.joblog.job_entry import JobEntry
from nutch2py.jobs.readdb.last_stats import get_last_stats
from nutch2py.jobs.readdb.readdb_commands import collect_stats, count_breakdown
from nutch2py.jobs.readdb.stats_breakdown import BREAKDOWN_FIELDS, BreakdownParameters, StatsBreakdown
from nutch2py.records.webpage import WebPage
from nutch2py.server.http_server import HttpServer
from nutch2py.table import open_store
from nutch2py.table.table_copy import copy_table
from tests.jobs import crawl
from tests.server.running_server import serving

_number = itertools.count()


@pytest.fixture(scope="module")
def both(hbase_server: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Configuration]]:
    """Run the jobs of two rounds over each store, of one site."""
    hbase_server.start()
    folder = tmp_path_factory.mktemp("reading")
    stores = {"embedded": f"embedded:{folder / 'crawldata'}", "hbase": hbase_server.address()}
    found = {}
    with crawl.site() as site:
        seeds = folder / "seeds"
        seeds.write_text("".join(f"{url}\n" for url in crawl.seeds(site)))
        for name, store in stores.items():
            conf = Configuration.load(overrides={**crawl.SETTINGS, "storage.data.store": store})
            conf.set("storage.crawl.id", f"reading{next(_number)}")
            conf.set("index.embedded.path", str(folder / f"index-{name}"))
            conf.set("rest.folder", str(folder / f"rest-{name}"))
            crawl.rounds(conf, str(seeds), 2)
            with Crawl(conf) as jobs:
                jobs.updatehostdb(links=True)
            found[name] = conf
        yield found


def breakdown_values(found: StatsBreakdown) -> dict[str, Any]:
    sketches = {name: (sketch.count, sorted(sketch.counts.items())) for name, sketch in found.sketches.items()}
    return {"lines": found.stats.format_lines(), "by": found.names_by_kind, "sketches": sketches}


def counters_of(entry: JobEntry) -> dict[str, dict[str, int]]:
    """Return what a job counted; not how long answers took, nor how many rows a store had generate look at."""
    found = {
        group: dict(names)
        for group, names in entry.counters.items()
        if group not in ("fetch_time_ms", "fetch_host_times")
    }
    if "generator" in found:
        found["generator"] = {"generated": found["generator"]["generated"]}
    return found


def test_hbase_row_counts_equal_embedded(both: dict[str, Configuration], tmp_path: Path) -> None:
    """Of the same cells; in tasks of either store, and on several runners."""
    source = both["hbase"]
    copy = source.copy()
    copy.set("storage.data.store", f"embedded:{tmp_path / 'copy'}")
    copy_table(open_store(source, WebPage), open_store(copy, WebPage))
    asked = BreakdownParameters(by=[*BREAKDOWN_FIELDS], quantiles=True, now=1_790_000_000_000)
    here, there = (breakdown_values(count_breakdown(conf, asked)) for conf in (copy, source))
    assert here == there
    assert here["by"]["depth"].row_count > 20
    assert {"score", "fetch interval", "fetch time", "response time", "depth"} <= here["sketches"].keys()
    assert collect_stats(source, by_host=True).format_lines() == collect_stats(copy, by_host=True).format_lines()


def test_hbase_job_log_contains_every_job(both: dict[str, Configuration]) -> None:
    logs = {}
    for name, conf in both.items():
        with Crawl(conf) as jobs:
            logs[name] = sorted(jobs.jobs(), key=lambda each: each.id)
    shown = {
        name: [
            (each.job, each.batch_id, each.state, counters_of(each))
            for each in log
            if each.job != "readdb"  # of the other tests
        ]
        for name, log in logs.items()
    }
    assert [row[0] for row in shown["hbase"]] == [row[0] for row in shown["embedded"]]
    for here, there in zip(shown["embedded"], shown["hbase"], strict=True):
        assert here == there
    assert len(shown["hbase"]) == 10
    assert all(each.cpu_ms > 0 and each.peak_bytes > 0 and each.finish_time for each in logs["hbase"])
    assert all(each.rows for each in logs["hbase"])


def test_hbase_control_room_and_report_show_crawl(
    both: dict[str, Configuration], capsys: pytest.CaptureFixture[str]
) -> None:
    """The figures that HBase does not keep are there once ``readdb -stats`` has counted them."""
    conf = both["hbase"]
    counted = collect_stats(conf, by_host=False, exact=True)
    with Crawl(conf) as jobs:
        figures, entries, overview = jobs.table_stats(), jobs.jobs(), jobs.overview()
    assert figures is not None
    assert overview is not None
    assert (figures.rows, sum(figures.status.values())) == (counted.total, counted.total)
    last = get_last_stats(conf, open_store(conf, WebPage))
    assert (last.stats.format_lines(), last.counted_at, last.jobs_since) == (
        counted.format_lines(),
        figures.counted_at,
        {},
    )
    with Crawl(both["embedded"]) as jobs:
        kept, seen = jobs.table_stats(), jobs.overview()
    assert kept is not None
    assert seen is not None
    assert replace(figures, counted_at=0, due=None) == replace(kept, counted_at=0, due=None)
    assert overview.hosts == seen.hosts
    fetch = next(each for each in entries if each.job == "fetch")
    with serving(HttpServer(conf, ("127.0.0.1", 0))) as server:
        pages = {}
        for path in ("crawl", "crawl/jobs", "crawl/rounds", "crawl/hosts", f"crawl/job?id={fetch.id}"):
            with urlopen(server.url + path, timeout=60) as answer:
                pages[path] = answer.read().decode()
    assert f"{counted.total} pages of" in pages["crawl"]
    assert all(each.id in pages["crawl/jobs"] for each in entries if each.job != "readdb")
    assert fetch.batch_id in pages["crawl/rounds"]
    assert pages[f"crawl/job?id={fetch.id}"].count("FetcherStatus") >= 1
    options = [word for name in conf if conf.origin(name) == "-D" for word in ("-D", f"{name}={conf.get(name)}")]
    assert main(["report", "-json", *options]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["table_stats"]["rows"] == counted.total
