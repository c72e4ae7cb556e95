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
from nutch2py.conf import Configuration
from nutch2py.joblog.entry import JobEntry
from nutch2py.jobs.last_stats import last_stats
from nutch2py.jobs.readdb import collect_stats, count_by
from nutch2py.jobs.stats_by import BY, Breakdown, ByParameters
from nutch2py.server.serve import Server
from nutch2py.table import open_store
from nutch2py.table.dump import copy_table
from nutch2py.webpage import WebPage
from tests.jobs import crawl
from tests.server.answering import answering

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


def told(found: Breakdown) -> dict[str, Any]:
    sketches = {name: (sketch.count, sorted(sketch.counts.items())) for name, sketch in found.sketches.items()}
    return {"lines": found.stats.lines(), "by": found.by, "sketches": sketches}


def counters_of(entry: JobEntry) -> dict[str, dict[str, int]]:
    """Return what a job counted; not how long answers took, nor how many rows a store had generate look at."""
    found = {group: dict(names) for group, names in entry.counters.items() if group != "fetch_time_ms"}
    if "generator" in found:
        found["generator"] = {"generated": found["generator"]["generated"]}
    return found


def test_rows_are_counted_as_in_the_embedded_store(both: dict[str, Configuration], tmp_path: Path) -> None:
    """Of the same cells; in tasks of either store, and on several runners."""
    source = both["hbase"]
    copy = source.copy()
    copy.set("storage.data.store", f"embedded:{tmp_path / 'copy'}")
    copy_table(open_store(source, WebPage), open_store(copy, WebPage))
    asked = ByParameters(by=[*BY], quantiles=True, now=1_790_000_000_000)
    here, there = (told(count_by(conf, asked)) for conf in (copy, source))
    assert here == there
    assert here["by"]["depth"].rows > 20
    assert {"score", "fetch interval", "fetch time", "response time", "depth"} <= here["sketches"].keys()
    assert collect_stats(source, sort=True).lines() == collect_stats(copy, sort=True).lines()


def test_the_job_log_has_what_each_job_did(both: dict[str, Configuration]) -> None:
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
    assert all(each.cpu_ms > 0 and each.peak_bytes > 0 and each.ended for each in logs["hbase"])
    assert all(each.done for each in logs["hbase"])


def test_the_room_and_the_report_tell_of_it(both: dict[str, Configuration], capsys: pytest.CaptureFixture[str]) -> None:
    """The figures that HBase does not keep are there once ``readdb -stats`` has counted them."""
    conf = both["hbase"]
    counted = collect_stats(conf, sort=False, exact=True)
    with Crawl(conf) as jobs:
        figures, entries, overview = jobs.figures(), jobs.jobs(), jobs.overview()
    assert figures is not None
    assert overview is not None
    assert (figures.rows, sum(figures.status.values())) == (counted.total, counted.total)
    last = last_stats(conf, open_store(conf, WebPage))
    assert (last.stats.lines(), last.made, last.since) == (counted.lines(), figures.made, {})
    with Crawl(both["embedded"]) as jobs:
        kept, seen = jobs.figures(), jobs.overview()
    assert kept is not None
    assert seen is not None
    assert replace(figures, made=0, due=None) == replace(kept, made=0, due=None)
    assert overview.hosts == seen.hosts
    fetch = next(each for each in entries if each.job == "fetch")
    with answering(Server(conf, ("127.0.0.1", 0))) as server:
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
    assert report["figures"]["rows"] == counted.total
