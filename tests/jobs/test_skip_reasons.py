"""Skip reasons: every counter of a job has a message, or is known to skip nothing."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from nutch2py import Crawl
from nutch2py.conf.configuration import Configuration
from nutch2py.fetcher.protocols.fetch_response import FailureKind
from nutch2py.fetcher.stats.host_failures import HostFailures
from nutch2py.jobs.monitoring import skip_reasons as table
from nutch2py.jobs.monitoring.counter_totals import CounterTotals
from nutch2py.jobs.monitoring.skip_reasons import iter_skipped_urls, sum_recent_counters
from nutch2py.mapreduce.driver import JobResult
from nutch2py.records.webpage import ProtocolStatusCode
from tests.conftest import ROOT
from tests.control_room.simulated_job_log import entries
from tests.crawl_loop.test_crawl_command import SETTINGS, page
from tests.site.server import Reply, ScriptedSite

HARMLESS = {
    "FetcherStatus": {"already_fetched", "bytes_downloaded", "robots_defer_visits"},
    "generator": {
        "rows", "already_generated", "not_due", "not_among_best", "own_marks", "reclaimed", "generated",
    },
    "injector": {
        "urls_injected", "urls_overwritten", "urls_merged", "urls_new",
    },
    "ParserStatus": {"sitemap_urls", "redirect", "skipped", "notfetched", "success", "notparsed"},
    "IndexerStatus": {"added", "deleted"},
    "updatedb": {"pages_not_fetched", "links", "pages", "rows_linked", "rows_new", "rows_written", "sitemaps_found"},
    "table": set(),
}  # fmt: skip
"""Counters without skipped URLs: work done, and work for the next run of the command."""
_GROUPS_OF_COUNTS = {"generate_job.py": "generator", "url_lists.py": "import"}
"""Groups of the counts that are not those of the fetcher, by module; import prints its own."""
_OF_FETCH = ("_deny", "_count_skipped", "_drop_waiting")


def counted() -> Iterator[tuple[str, str]]:
    """Yield (group, name) of every counter that the code of jobs and fetcher names."""
    for folder in ("jobs", "fetcher"):
        for path in sorted((ROOT / "nutch2py" / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                yield from _of_node(node, path)


def _of_node(node: ast.AST, path: Path) -> Iterator[tuple[str, str]]:
    match node:
        case ast.Call(
            func=ast.Attribute(attr="count"), args=[ast.Constant(value=str(group)), ast.Constant(value=str(name)), *_]
        ):
            yield group, name
        case ast.Call(func=ast.Attribute(attr=called), args=arguments) if called in _OF_FETCH:
            for argument in arguments:
                if isinstance(argument, ast.Constant):
                    yield "FetcherStatus", str(argument.value)
        case ast.Subscript(
            value=ast.Attribute(attr="counters") | ast.Name(id="counts"), slice=ast.Constant(value=str(name))
        ):
            yield _GROUPS_OF_COUNTS.get(path.name, "FetcherStatus"), name


def test_every_counter_is_a_skip_reason_or_harmless() -> None:
    found = [each for each in counted() if each[0] in HARMLESS]
    assert len(found) > 40
    known = {group: set(reasons) for group, reasons in table.JOB_REASONS.items()}
    known["FetcherStatus"] = {*table.FETCH_REASONS}
    assert [(group, name) for group, name in found if name not in known[group] | HARMLESS[group]] == []


def test_every_fetch_result_is_a_skip_reason() -> None:
    assert table.FAILURE_REASONS.keys() == set(FailureKind)
    fine = {"SUCCESS", "NOTMODIFIED", "MOVED", "TEMP_MOVED"}
    never = {"RETRY", "REDIR_EXCEEDED", "NOTFETCHING", "WOULDBLOCK", "BLOCKED"}  # rows of Nutch may have them
    by_kind = {"EXCEPTION", "PROTO_NOT_FOUND"}
    assert {code.name for code in ProtocolStatusCode} - fine - never - by_kind == {
        name for name in table.FETCH_REASONS if name in ProtocolStatusCode.__members__
    }


def test_named_properties_exist() -> None:
    conf = Configuration.load()
    reasons = [*table.FETCH_REASONS.values(), *table.FAILURE_REASONS.values(), *table.LINK_REASONS.values()]
    reasons += [reason for group in table.JOB_REASONS.values() for reason in group.values()]
    texts = [reason.remedy for reason in reasons] + [*table.HTTP_REMEDIES.values()]
    words = {word.strip(",;:()").partition("=")[0] for text in texts for word in text.split()}
    named = {word for word in words if word.count(".") > 1 or word.startswith(("db.", "http.", "plugin."))}
    assert len(named) > 25
    assert [word for word in sorted(named) if conf.get(word) is None] == []


def test_skipped_hosts_are_sorted_and_limited() -> None:
    one, both = HostFailures(), HostFailures()
    for number in range(2000):
        one.add("timeout", f"http://h{number}.test/")
    one.add("timeout", "http://much.test/", 50)
    one.add("http_403", "http://h1.test/")
    one.add("timeout", "http:///")
    for reason, record in [*one.to_records(), *one.to_records()]:
        both.merge_record(reason, record)
    found = both.to_counters()
    assert found["fetch_http_errors"] == {"403": 2}
    assert found["fetch_hosts"]["timeout much.test"] == 100
    assert len(found["fetch_hosts"]) == 6
    assert both.counts["timeout"] == 2 * 2051


def test_plugin_and_older_log_are_reported() -> None:
    tally = CounterTotals()
    tally.add(JobResult({"PluginFailures": {"index-mine": 3}, "FetcherStatus": {"EXCEPTION": 4}}))
    lines = [str(each) for each in iter_skipped_urls(tally, Configuration.load())]
    assert any("failed in the plug-in index-mine" in line for line in lines)
    assert any(line.startswith("URLs failed, HTTP error, retried later (readdb") for line in lines)


def test_last_generate_counts_only() -> None:
    log = entries()
    last = next(entry for entry in log if entry.job == "generate")
    assert sum_recent_counters(log).generate_counters == last.counters.get("generator", {})


_UNFOLLOWED = "<a rel='x NoFollow' href=/elsewhere>x</a>"


@pytest.mark.parametrize(("parsing", "runner"), [(False, "local"), (True, "inline")])
def test_skipped_urls_of_site_name_host_and_file(
    tmp_path: Path, site: ScriptedSite, parsing: bool, runner: str
) -> None:
    site.on(
        "/", page("/a.gif", "/b.gif", "/gone", "/no", "/away", "http://other.invalid/", "http://[x/", text=_UNFOLLOWED)
    )
    site.on("/gone", Reply(404))
    site.on("/no", Reply(403))
    site.on("/away", Reply(301, headers=[("Location", "http://other.invalid/")]))
    conf = Configuration.load()
    with Crawl(
        f"embedded:{tmp_path / 'crawldata'}",
        {
            **SETTINGS,
            "http.agent.name": "x",
            "fetcher.parse": parsing,
            "db.ignore.external.links": True,
            "mapreduce.runner": runner,
        },
    ) as crawl:
        crawl.inject([site.url("/")])
        for _ in range(2):
            batch = crawl.generate().batch_id
            crawl.fetch(batch)
            if not parsing:
                crawl.parse(batch)
            crawl.updatedb(batch)
        lines = [f"{each.number} {each}" for each in iter_skipped_urls(sum_recent_counters(crawl.jobs()), conf)]
    output = "\n".join(lines)
    assert "1 URLs not found (404): 127.0.0.1 (1)" in output
    assert "1 URLs failed, HTTP error 403, retried later: 127.0.0.1 (1) (the server denies access" in output
    assert f"2 links rejected by the URL filter urlfilter-regex ({conf.resource('regex-urlfilter.txt')};" in output
    assert "1 redirects skipped, to themselves or to filtered URLs" in output
    assert "links skipped, to other sites (db.ignore.external.links" in output
    assert "1 links skipped, nofollow on the link or page" in output
