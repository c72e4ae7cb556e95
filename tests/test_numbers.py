"""Numbers that a user gives: 0 and negative ones mean what Nutch means, or are rejected; docs/numbers.md lists all."""

from __future__ import annotations

import argparse
import inspect
import re
import typing
from collections.abc import Callable
from dataclasses import astuple
from pathlib import Path
from typing import Any

import pytest
from msgspec import UnsetType

from nutch2py import Crawl
from nutch2py.cli import all_command_parsers, main
from nutch2py.commands.command import NumberArgument
from nutch2py.conf.configuration import Configuration
from nutch2py.conf.property_ranges import HOST_SETTING_RANGES, PROPERTY_RANGES
from nutch2py.crawl_reader import CrawlReader
from nutch2py.errors import ConfigurationError, UsageError
from nutch2py.jobs.fetch.fetch_job import HostSettingsReader
from nutch2py.jobs.hostdb.hostdb_jobs import hostinject
from nutch2py.jobs.inject.inject_job import inject
from nutch2py.jobs.inject.seeds import Seed, parse_seed_line
from nutch2py.records.cells import encode_text
from nutch2py.records.webpage import Host
from nutch2py.rest.job_control import job_requests
from nutch2py.schedule.default_fetch_schedule import DefaultFetchSchedule
from nutch2py.support.invariants import not_none
from nutch2py.table import open_store
from tests.conftest import ROOT
from tests.jobs.rows import pages, put
from tests.test_property_ranges import PACKAGE


def words(text: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(text.split())


PAGE = (ROOT / "docs" / "numbers.md").read_text(encoding="utf-8")
ROWS = dict(re.findall(r"^\| `([^`]+)` \| (.*) \|$", PAGE, re.MULTILINE))

OPTIONS = {  # command and option: whether 0 is accepted; a negative number is by -adddays alone
    "crawl -depth": True, "crawl -pages": True, "crawl -time": True,  # 0 of the latter is rejected when they run
    "crawlcomplete -topN": False, "createtable -splits": False, "dedup -threshold": True, "domainstats -topN": False,
    "evaluate -n": False, "export -chunk-tokens": True, "fetch -numTasks": True, "fetch -threads": True,
    "generate -adddays": True,
    "generate -topN": True, "init -delay": True, "jobs -topN": False, "nodedumper -topn": False,
    "nutchserver -port": True, "pagerank -iterations": True, "protocolstats -topN": False, "readdb -most": False,
    "readdb -retry": True, "readdb -sample": True, "readlinkdb -topN": False, "search -rows": True,
    "search -start": True, "searchlog -days": False, "searchlog -top": False, "serve -port": True, "token -rate": True,
}  # fmt: skip
"""Every option that takes a number. A new one needs an entry, and "0: …" in its help if it accepts 0."""
TEXT_OPTIONS = words("""
    -D --conf -r --log-file --log-format -crawlId -agent -url -email -store -solr -batchId -warc -stay -data -index
    -seeds -sample -keys -group -compareOrder -judgements -qrels -run -tag -docno -unjudged -filterName -normalizer
    -scope -host -log -stop -forceAs -id -dump -topN -format -by -regex -status -output -o -source -role
    -fields -where -changed-since
""")
"""Options that take text, or several words (readdb -topN)."""
POSITIONALS = words("""
    agents batch class_name cluster file folder host_dir id key name path place queries query robots_file seeds shell
    solr_url sources target unused url url_dir url_file urls words
""")


def options() -> list[tuple[str, argparse.Action]]:
    """Return command and option, and the action, of every option that takes a value."""
    return [
        (f"{command} {action.option_strings[0] if action.option_strings else action.dest}", action)
        for command, parser in all_command_parsers().items()
        for action in parser.actions()
        if action.nargs != 0
    ]


def test_every_numeric_option_is_in_table() -> None:
    numbers = {name for name, action in options() if isinstance(action.type, NumberArgument)}
    assert numbers == OPTIONS.keys()
    text = {name.split()[1] for name, action in options() if not isinstance(action.type, NumberArgument)}
    assert text <= TEXT_OPTIONS | POSITIONALS
    assert [name for name, action in options() if action.type in (int, float)] == []


@pytest.mark.parametrize("name", sorted(OPTIONS))
def test_option_accepts_zero_and_negative_numbers_as_documented(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    action = dict(options())[name]
    assert isinstance(action.type, NumberArgument)
    assert action.type.allowed.contains(0) == OPTIONS[name]
    assert action.type.allowed.contains(-1) == (name == "generate -adddays")
    assert name in ROWS
    assert not OPTIONS[name] or re.search(r"(^|[;)] )0: ", action.help or ""), action.help
    monkeypatch.chdir(tmp_path)
    command, option = name.split()
    arguments = {"crawl": ["http://a.test/"], "createtable": [], "crawlcomplete": ["host"], "domainstats": ["host"],
             "evaluate": ["q", "-qrels", "q"], "fetch": ["b"], "init": ["made"], "nodedumper": ["-inlinks"],
             "readdb": ["-dump", "d"] if option in ("-retry", "-sample") else ["-stats", "-by", "host"],
             "search": ["x"], "token": ["t", "-D", f"rest.tokens.file={tmp_path / 'tokens'}"]}  # fmt: skip
    for number in ["-5", *([] if OPTIONS[name] else ["0"])]:
        if name != "generate -adddays":
            more = [f"{option}={number}", "-D", "storage.data.store=embedded:t"]
            code = main([command, *arguments.get(command, []), *more])
            assert code in (2, 3, 255)
            assert number in capsys.readouterr().err
    assert not (tmp_path / "t").exists()


PLAIN_ZERO = words("""
    crawl.gen.delay crawl.reindex.share db.fetch.retry.max db.fetch.schedule.adaptive.dec_rate
    db.fetch.schedule.adaptive.inc_rate db.fetch.schedule.adaptive.sync_delta_rate db.score.injected
    db.score.link.external db.score.link.internal db.signature.text_profile.quant_rate
    deduplication.simhash.threshold elastic.bulk.close.timeout elastic.exponential.backoff.millis
    elastic.exponential.backoff.retries fetcher.bandwidth.target fetcher.exceptions.per.queue.clear.after
    fetcher.exceptions.per.queue.delay fetcher.follow.outlinks.depth fetcher.follow.outlinks.num.links
    fetcher.hold.seconds fetcher.max.retry.after fetcher.max.trouble.per.queue fetcher.min.crawl.delay
    fetcher.tail.seconds
    fetcher.redirect.dedupcache.seconds fetcher.redirect.dedupcache.size fetcher.server.delay
    fetcher.server.min.delay fetcher.threads.slow.after fetcher.threads.start.delay
    fetcher.throughput.threshold.check.after fetcher.throughput.threshold.pages generate.min.interval
    generate.min.score hbase.thrift.gateway.rest hbase.thrift.idle hostdb.purge.failed.hosts.threshold
    hostdb.recheck.interval http.max.delays http.robots.503.defer.visits.delay http.robots.redirect.max
    http.robots.rules.max http.robots.sitemaps.max http.url.limit index.lock.timeout index.search.freshness.share
    index.weight.power indexer.score.power libselenium.page.load.delay link.analyze.damping.factor
    link.analyze.initial.score link.analyze.normalize.score link.score.updater.clear.score pagerank.base
    pagerank.external.weight pagerank.initial pagerank.navigation.share parser.domain.seconds
    parser.unpack.max.depth parser.unpack.max.documents plugin.failures.share rest.jobs.keep search.log.keep.entries
    fetcher.local.failure.interval fetcher.local.failure.share indexer.delete.max.count indexer.delete.max.share
    serve.store.wait.seconds sitemap.redir.max storage.import.bad.share urlfilter.fast.url.max.length
    urlfilter.fast.url.path.max.length
    urlfilter.fast.url.query.max.length
""")
"""Properties of which 0 is a number like any other: no wait, no retry, nothing kept, no weight."""
PLAIN_NEGATIVE = words("""
    db.score.injected db.score.link.external db.score.link.internal generate.min.score index.weight.power
    indexer.score.power link.analyze.initial.score link.analyze.normalize.score link.score.updater.clear.score
    pagerank.initial partition.url.seed
""")


def test_every_property_says_what_zero_and_negative_numbers_mean() -> None:
    """In its description, or by an entry above; a new property needs one of the two."""
    assert ROWS.keys() >= PROPERTY_RANGES.keys()
    cells = {name: ROWS[name].split(" | ") for name in PROPERTY_RANGES}
    plain_zero = {name for name, (_, zero, _) in cells.items() if zero == "that number"}
    plain_negative = {name for name, (_, _, negative) in cells.items() if negative == "that number"}
    assert plain_zero - PLAIN_ZERO == set()
    assert plain_negative - PLAIN_NEGATIVE == set()
    for name, (_, zero, negative) in cells.items():
        assert (zero == "rejected") == (not PROPERTY_RANGES[name].contains(0)), name
        assert (negative == "rejected") == (PROPERTY_RANGES[name].low >= 0), name


def rest_numbers() -> list[tuple[str, Any]]:
    """Return name and metadata of every numeric field of the job requests."""
    found = []
    for _, kind in inspect.getmembers(job_requests, inspect.isclass):
        if not issubclass(kind, job_requests.JobRequest):
            continue
        for field, annotation in typing.get_type_hints(kind, include_extras=True).items():
            for each in typing.get_args(annotation) if UnsetType in typing.get_args(annotation) else (annotation,):
                name = re.sub("_(.)", lambda match: match[1].upper(), field)
                found += [(name, each)] if {each, *typing.get_args(each)[:1]} & {int, float} else []
    return found


REST_NUMBERS = {"addDays": -36_500, "depth": 0, "iterations": 0, "limit": 1, "minutes": 1, "numTasks": 0, "pages": 1,
                "threads": 0, "threshold": 0, "topN": 0}  # fmt: skip
"""The least number of each numeric field of the job requests."""


def test_every_number_of_rest_requests_is_in_table() -> None:
    assert {name: typing.get_args(annotation)[1].ge for name, annotation in rest_numbers()} == REST_NUMBERS


@pytest.mark.parametrize(("request_", "args"), [
    (job_requests.GenerateRequest(top_n=0), ["generate", "-topN", "0"]),
    (job_requests.GenerateRequest(), ["generate"]),
    (job_requests.FetchRequest(batch_id="b", threads=0, num_tasks=0), ["fetch", "b"]),
])  # fmt: skip
def test_rest_zero_means_what_option_means(request_: job_requests.JobRequest, args: list[str]) -> None:
    assert request_.command_args() == args


API_NUMBERS: dict[tuple[str, str], Callable[[Crawl, Any], object]] = {
    ("generate", "top_n"): lambda crawl, number: crawl.generate(top_n=number),
    ("generate", "add_days"): lambda crawl, number: crawl.generate(add_days=number),
    ("fetch", "threads"): lambda crawl, number: crawl.fetch("b", threads=number),
    ("fetch", "num_tasks"): lambda crawl, number: crawl.fetch("b", num_tasks=number),
    ("fetch", "max_local_failure_share"): lambda crawl, number: crawl.fetch("b", max_local_failure_share=number),
    ("pagerank", "iterations"): lambda crawl, number: crawl.pagerank(iterations=number),
    ("dedup", "threshold"): lambda crawl, number: crawl.dedup(threshold=number),
    ("export_pages", "chunk_tokens"): lambda crawl, number: crawl.export_pages("x", "markdown", chunk_tokens=number),
}


def test_every_number_of_crawl_api_is_in_table() -> None:
    found = {
        (name, parameter.name)
        for name, method in inspect.getmembers(Crawl, inspect.isfunction)
        if not name.startswith("_") and name not in vars(CrawlReader)
        for parameter in inspect.signature(method).parameters.values()
        if re.match(r"(int|float)\b", str(parameter.annotation))
    }
    assert found == API_NUMBERS.keys()


@pytest.mark.parametrize(("method", "name"), API_NUMBERS)
@pytest.mark.parametrize("number", [-40_000, float("nan"), True, "5"])
def test_api_rejects_number_out_of_range(conf: Configuration, method: str, name: str, number: object) -> None:
    if (name, number) in (("iterations", True), ("threshold", True), ("iterations", "5"), ("threshold", "5")):
        pytest.skip("becomes the text of a property")
    with pytest.raises((UsageError, ConfigurationError), match=f"{name}|simhash.threshold"):
        API_NUMBERS[method, name](Crawl(conf), number)


def test_no_property_is_read_as_number_outside_the_getters() -> None:
    """int() and float() of a property would accept what the ranges reject."""
    wrong = []
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        wrong += [
            f"{path.name}: {each}" for each in re.findall(r"\b(?:int|float)\(conf\.get(?:_trimmed)?\([^)]*\)", text)
        ]
    assert wrong == []


# seeds, hosts and rows


SEED_NUMBERS = [
    ("nutch.score=-1", Seed("http://a.example/"), ""),
    ("nutch.score=-1.0", Seed("http://a.example/"), ""),
    ("nutch.score=0", Seed("http://a.example/", score=0.0), ""),
    ("nutch.score=-0.0", Seed("http://a.example/", score=-0.0), ""),
    ("nutch.score=-3", Seed("http://a.example/"), "nutch.score is '-3', which is not a number of 0 or more"),
    ("nutch.score=-0.5", Seed("http://a.example/"), "nutch.score is '-0.5'"),
    (
        "nutch.fetchInterval=0",
        Seed("http://a.example/"),
        "nutch.fetchInterval is '0', which is not a whole number of seconds",
    ),
    ("nutch.fetchInterval=-100", Seed("http://a.example/"), "nutch.fetchInterval is '-100'"),
    ("nutch.fetchInterval=-1", Seed("http://a.example/"), "nutch.fetchInterval is '-1'"),
    ("nutch.fetchInterval=1", Seed("http://a.example/", interval=1), ""),
    ("nutch.fetchInterval.fixed=0", Seed("http://a.example/"), "nutch.fetchInterval.fixed is '0'"),
    ("nutch.fetchInterval.fixed=-5", Seed("http://a.example/"), "nutch.fetchInterval.fixed is '-5'"),
    ("nutch.fetchInterval.fixed=1", Seed("http://a.example/", interval=1, fixed=True), ""),
]


@pytest.mark.parametrize(("field", "seed", "problem"), SEED_NUMBERS)
def test_seed_number_is_used_or_reported(
    conf: Configuration, tmp_path: Path, capsys: pytest.CaptureFixture[str], field: str, seed: Seed, problem: str
) -> None:
    line = f"http://a.example/\t{field}"
    assert parse_seed_line(line) == [seed]
    (tmp_path / "seeds").write_text(line)
    inject(conf, str(tmp_path / "seeds"))
    output = capsys.readouterr()
    assert (problem in output.out + output.err) if problem else ("line 1" not in output.out + output.err)
    (page,) = pages(conf).values()
    assert page.fetch_interval == (2_592_000 if seed.interval is None else seed.interval)
    assert page.score == (1.0 if seed.score is None else seed.score)
    assert set(ROWS) >= {field.partition("=")[0]} or field.partition("=")[0] in PAGE


@pytest.mark.parametrize("interval", [0, -1, -100])
def test_row_with_invalid_interval_gets_default(conf: Configuration, interval: int) -> None:
    """Nutch stores what a seed says; such a page would be due in every round."""
    put(conf, {"http://a.example/": {}})
    (page,) = pages(conf).values()
    page.fetch_interval = interval
    DefaultFetchSchedule(conf).set_next_fetch("http://a.example/", page, 1_000_000, 0, 0)
    assert (page.fetch_interval, page.fetch_time) == (2_592_000, 1_000_000 + 2_592_000_000)


@pytest.mark.parametrize("name", HOST_SETTING_RANGES)
def test_host_setting_is_used_or_reported(
    conf: Configuration, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    least = int(HOST_SETTING_RANGES[name].low)
    file = tmp_path / "hosts"
    file.write_text(f"bad.test\t{name}={least - 1}\nworse.test\t{name}=x\ngood.test\t{name}={least}\n")
    result = hostinject(conf, str(file))
    assert result.count("hostinject", "settings_rejected") == 2
    assert f"{name} is '{least - 1}'" in "".join(capsys.readouterr())
    store = open_store(conf, Host)
    record = Host({}, frozenset())
    record.metadata[name] = encode_text(str(least - 1))  # by another program
    with store.batch() as batch:
        batch.put("test.other", record)
    read = HostSettingsReader(conf)
    assert least in astuple(not_none(read("good.test"), "host"))
    assert astuple(not_none(read("other.test"), "host")) == (None, None, None)
    assert read("bad.test") is None
