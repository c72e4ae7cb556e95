"""The Python interface: a crawl by :class:`nutch2py.Crawl`, what it returns, says and raises."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import nutch2py
from nutch2py import ALL, REINDEX, Configuration, Crawl, CrawlStatus, Host, Mark, Progress, WebPage
from nutch2py.errors import (
    ConfigurationError,
    IndexingError,
    InputError,
    NutchError,
    StoreError,
    UnknownBatchError,
    UsageError,
)
from nutch2py.records.record import FieldNotReadError
from nutch2py.url.keys import reverse_url
from tests.jobs.crawl import properties, seeds, site

RUNNERS = ("inline", "local")
UNKNOWN_MODE = "partition.url.mode is bogus, which is not byHost, byDomain or byIP: using byHost"


@pytest.fixture(scope="module")
def site_url() -> Iterator[str]:
    with site() as url:
        yield url


@pytest.mark.parametrize("runner", RUNNERS)
def test_crawl_api_runs_every_job(
    tmp_path: Path, site_url: str, runner: str, capfd: pytest.CaptureFixture[str]
) -> None:
    lines: list[str] = []
    warnings: list[str] = []
    progress: list[Progress] = []
    settings = {**properties(runner), "partition.url.mode": "bogus"}
    with Crawl(
        f"embedded:{tmp_path / 'crawldata'}",
        settings,
        on_line=lines.append,
        on_warning=warnings.append,
        on_progress=progress.append,
    ) as crawl:
        assert crawl.inject(seeds(site_url)).group("injector") == {
            "urls_injected": 20,
            "urls_new": 20,
            "urls_filtered": 0,
        }
        batch = crawl.generate(top_n=20, batch_id="b-1")
        assert (batch.batch_id, batch.urls) == ("b-1", 20) == tuple(batch)
        fetched = crawl.fetch(batch.batch_id)
        assert [fetched.count("FetcherStatus", name) for name in ("SUCCESS", "MOVED", "GONE", "EXCEPTION", "no")] == [
            *(16, 2, 1, 1, 0)
        ]
        assert crawl.parse(batch.batch_id).group("ParserStatus") == {"success": 16, "notfetched": 4}
        updated = crawl.updatedb(batch.batch_id)
        assert [updated.count("updatedb", name) for name in ("pages", "links", "rows_new")] == [20, 40, 18]
        assert crawl.index(batch.batch_id).group("IndexerStatus") == {"added": 16}
        ranked = crawl.pagerank(model="classic", iterations=3)
        assert (ranked.method, ranked.links, ranked.iterations) == ("memory", 40, 3)
        assert ranked.pages == ranked.written == 37
        assert crawl.dedup(group="host", order=["score", "fetchTime", "urlLength"]).group("DeduplicationJob") == {}
        assert crawl.clean().group("CleaningJob") == {"redirected": 2, "gone": 1}
        assert crawl.updatehostdb(links=True).count("updatehostdb", "hosts") == 1
        assert crawl.generate(batch_id="b-2").urls == 18
        assert crawl.stats().total == 38
        assert crawl.search("text").total == 16
    assert capfd.readouterr() == ("", "")
    assert "InjectorJob: total number of urls injected after normalization and filtering: 20" in lines
    assert any("0 errors" in line or "fetching" in line for line in lines)  # of a task
    assert set(warnings) == {UNKNOWN_MODE}
    last = {each.title: each for each in progress}
    assert last["InjectorJob"].rows == 20
    assert (last["FetcherJob b-1"].rows, last["FetcherJob b-1"].expected) == (40, 40)  # read, and fetched
    assert {"GeneratorJob b-1", "ParserJob b-1", "IndexingJob b-1", "HostDbUpdateJob"} <= last.keys()


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory, site_url: str) -> Path:
    """Give the folder of a crawl of one round, with a second batch generated and not fetched."""
    folder = tmp_path_factory.mktemp("crawled") / "crawldata"
    with Crawl(f"embedded:{folder}", properties()) as crawl:
        crawl.inject(seeds(site_url))
        batch = crawl.generate().batch_id
        for job in (crawl.fetch, crawl.parse, crawl.updatedb, crawl.index):
            job(batch)
        crawl.updatehostdb()
        crawl.generate(batch_id="second")
    return folder


@pytest.fixture
def crawl(crawled: Path) -> Iterator[Crawl]:
    with Crawl(f"embedded:{crawled}", properties()) as opened:
        yield opened


def test_pages_are_ordered_by_key(crawl: Crawl, site_url: str) -> None:
    urls = [url for url, _ in crawl.pages(fields={WebPage.status})]
    assert len(urls) == 38
    assert urls == sorted(urls, key=reverse_url)
    assert set(seeds(site_url)) < set(urls)


def test_pages_filters_by_range_and_host(crawl: Crawl, site_url: str) -> None:
    start, stop = reverse_url(f"{site_url}/3"), reverse_url(f"{site_url}/33")
    found = [url.rpartition("/")[2] for url, _ in crawl.pages(start=start, stop=stop)]
    assert found[:2] == ["3", "30"]
    assert "33" not in found
    assert len(list(crawl.pages(host="127.0.0.1"))) == 38
    assert list(crawl.pages(host="127.0.0.10")) == list(crawl.pages(host="0.0.1")) == []
    with pytest.raises(ValueError, match="give either host, or start and stop"):
        crawl.pages(host="127.0.0.1", start=start)


def test_pages_filters_by_mark(crawl: Crawl) -> None:
    marked = list(crawl.pages(mark=Mark.GENERATE, fields={WebPage.markers}))
    assert len(marked) == 18
    assert {page.markers[Mark.GENERATE] for _, page in marked} == {"second"}
    assert [url for url, _ in marked] == [url for url, _ in crawl.pages(mark=Mark.GENERATE, batch_id="second")]
    assert list(crawl.pages(mark=Mark.GENERATE, batch_id="first")) == []
    with pytest.raises(ValueError, match="give mark, too"):
        crawl.pages(batch_id="second")
    with pytest.raises(ValueError, match="mark is 'x': give one of"):
        crawl.pages(mark="x")  # type: ignore[arg-type]


def test_unread_field_raises_field_not_read_error(crawl: Crawl, site_url: str) -> None:
    _, page = next(crawl.pages(fields=[WebPage.status]))
    assert page.status == CrawlStatus.FETCHED
    for row in (page, crawl.page(f"{site_url}/0", fields=[WebPage.status])):
        assert row is not None
        with pytest.raises(FieldNotReadError, match="title"):
            _ = row.title
    whole = crawl.page(f"{site_url}/0")
    assert whole is not None
    assert whole.title == "Page 0"
    _, host = next(crawl.hosts(fields=[Host.metadata]))
    with pytest.raises(FieldNotReadError, match="inlinks"):
        dict(host.inlinks)


def test_get_returns_one_page_and_one_host(crawl: Crawl, site_url: str) -> None:
    assert crawl.page(f"{site_url}/none") is None
    with pytest.raises(InputError, match="no-url is not a URL"):
        crawl.page("no-url")
    host = crawl.host("127.0.0.1")
    assert host is not None
    assert host.metadata["p"] == b"38"
    assert crawl.host("example.org") is None
    assert [name for name, _ in crawl.hosts()] == ["127.0.0.1"]
    assert list(crawl.hosts(start="127.0.0.2")) == list(crawl.hosts(stop="0")) == []


def test_stats_batches_and_search_return_results(crawl: Crawl, site_url: str) -> None:
    stats = crawl.stats(by_host=True)
    assert stats.status[CrawlStatus.FETCHED] == stats.hosts[CrawlStatus.FETCHED, "127.0.0.1"] == 16
    assert stats.parse == {"success/ok": 16}
    assert [(each.batch_id, each.state, each.count) for each in crawl.batches()] == [("second", "generated", 18)]
    found = crawl.search("text", start=3, rows=2)
    assert (found.query, found.total, found.start, len(found.hits)) == ("text", 16, 3, 2)
    assert all(hit.url.startswith(site_url) and hit.fields["content"] for hit in found.hits)
    assert crawl.search("nowhere").hits == []


def test_search_sees_documents_indexed_later(tmp_path: Path, site_url: str) -> None:
    with Crawl(f"embedded:{tmp_path}", properties()) as crawl:
        for number, total in ((0, 1), (6, 2)):
            crawl.inject([f"{site_url}/{number}"])
            batch = crawl.generate(top_n=1, batch_id=f"b-{number}").batch_id
            for job in (crawl.fetch, crawl.parse, crawl.updatedb, crawl.index):
                job(batch)
            assert crawl.search("text").total == total
            crawl.conf.set("generate.min.score", 0.9)  # of links the second round shall take none


def test_tables_are_exported_imported_and_copied(crawl: Crawl, tmp_path: Path) -> None:
    said: list[str] = []
    assert crawl.export(tmp_path / "rows.jsonl.gz") == 38
    with Crawl(f"embedded:{tmp_path / 'other'}", properties(), crawl_id="c", on_line=said.append) as other:
        assert other.import_(tmp_path / "rows.jsonl.gz") == 38
        assert other.copy_to(f"embedded:{tmp_path / 'third'}") == 38
        assert [url for url, _ in other.pages()] == [url for url, _ in crawl.pages()]
        assert repr(other) == f"Crawl('embedded:{tmp_path / 'other'}', crawl_id='c')"
    assert [line.partition(" of ")[0] for line in said][1] == "copytable: 38 rows"
    assert (tmp_path / "third" / "c_webpage").is_dir()


def test_hosts_are_injected(tmp_path: Path) -> None:
    with Crawl(f"embedded:{tmp_path}", properties()) as crawl:
        assert crawl.hostinject(["www.example.org\tq_mt=3"]).group("hostinject") == {"hosts_injected": 1}
        assert [(name, host.metadata["q_mt"]) for name, host in crawl.hosts()] == [("www.example.org", b"3")]


READING: dict[str, Callable[[Crawl], Any]] = {
    "generate": lambda crawl: crawl.generate(),
    "fetch": lambda crawl: crawl.fetch(ALL),
    "parse": lambda crawl: crawl.parse(ALL),
    "updatedb": lambda crawl: crawl.updatedb(ALL),
    "index": lambda crawl: crawl.index(REINDEX),
    "pagerank": lambda crawl: crawl.pagerank(),
    "dedup": lambda crawl: crawl.dedup(near=True),
    "clean": lambda crawl: crawl.clean(),
    "updatehostdb": lambda crawl: crawl.updatehostdb(),
    "export": lambda crawl: crawl.export("rows.jsonl"),
    "export_pages": lambda crawl: crawl.export_pages("pages"),
    "to_arrow": lambda crawl: crawl.to_arrow(),
    "links": lambda crawl: crawl.links(),
    "check": lambda crawl: crawl.check(),
    "due_index": lambda crawl: crawl.due_index(),
    "copy_to": lambda crawl: crawl.copy_to("embedded:copy"),
    "pages": lambda crawl: crawl.pages(),
    "page": lambda crawl: crawl.page("http://example.org/"),
    "hosts": lambda crawl: crawl.hosts(),
    "host": lambda crawl: crawl.host("example.org"),
    "stats": lambda crawl: crawl.stats(),
    "batches": lambda crawl: crawl.batches(),
    "jobs": lambda crawl: crawl.jobs(),
    "job": lambda crawl: crawl.job("none"),
    "table_stats": lambda crawl: crawl.table_stats(),
    "overview": lambda crawl: crawl.overview(),
}
MAKING = {"inject", "freegen", "import_", "import_pages", "hostinject"}
ELSEWHERE = {"search", "solrdedup", "close", "for_console", "for_server"}
"""Search of the index, or None."""


def public(described: type) -> set[str]:
    return {name for name in dir(described) if not name.startswith("_") and callable(getattr(described, name))}


def test_every_method_is_tested_on_missing_crawl() -> None:
    assert READING.keys() | MAKING | ELSEWHERE == public(Crawl)


@pytest.mark.parametrize("method", READING)
def test_missing_crawl_is_rejected_and_not_created(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with Crawl("embedded:crawldata", properties()) as crawl, pytest.raises(StoreError, match="there is no table"):
        READING[method](crawl)
    assert list(tmp_path.iterdir()) == []


def test_api_errors_describe_the_problem(crawl: Crawl, tmp_path: Path) -> None:
    for job in (crawl.fetch, crawl.parse, crawl.updatedb, crawl.index):
        with pytest.raises(UnknownBatchError, match="there is no batch none"):
            job("none")
        with pytest.raises(UsageError, match="no batch given"):
            job("")
    with pytest.raises(InputError):
        crawl.inject(tmp_path / "none")
    with pytest.raises(ConfigurationError, match=r"pagerank\.iterations"):
        crawl.pagerank(iterations="many")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match=r"deduplication\.group\.mode"):
        crawl.dedup(group="town")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="is not a known store"):
        next(Crawl("tables").pages())
    with pytest.raises(IndexingError, match="no index found"):
        Crawl(f"embedded:{tmp_path}").search("text")
    with pytest.raises(ConfigurationError, match=r"http\.agent\.name"):
        Crawl(crawl.conf, {"http.agent.name": ""}).fetch("second")
    assert all(issubclass(kind, NutchError) for kind in (StoreError, InputError, UnknownBatchError))


def test_task_error_is_raised_unchanged(tmp_path: Path) -> None:
    with Crawl(f"embedded:{tmp_path}", {**properties(), "fetcher.queue.mode": "byMood"}) as crawl:
        crawl.inject(["http://127.0.0.1:9/"])
        batch = crawl.generate().batch_id
        crawl.conf.set("mapreduce.runner", "local")
        with pytest.raises(ConfigurationError, match="byMood"):
            crawl.fetch(batch)


@pytest.mark.parametrize("runner", ["inline", "local"])
def test_jobs_run_without_standard_streams(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runner: str) -> None:
    """As a service has none, or a program with windows."""
    for name in ("stdin", "stdout", "stderr"):
        monkeypatch.setattr(sys, name, None)
    with Crawl(f"embedded:{tmp_path}/crawldata", properties() | {"mapreduce.runner": runner}) as crawl:
        assert crawl.inject(["http://www.example.org/"]).count("injector", "urls_new") == 1
        assert crawl.stats().total == 1


def test_dedup_order_accepts_comma_separated_text(crawl: Crawl) -> None:
    crawl.dedup(order="score,fetchTime,urlLength")
    with pytest.raises(ConfigurationError, match="'score': it must contain"):
        crawl.dedup(order="score")


def test_crawl_copies_its_configuration(tmp_path: Path) -> None:
    conf = Configuration.load(overrides={"storage.data.store": f"embedded:{tmp_path}"})
    crawl = Crawl(conf, {"fetcher.parse": True, "fetcher.server.delay": 0.5}, crawl_id="c")
    given = [crawl.conf.get(name) for name in ("storage.crawl.id", "fetcher.parse", "fetcher.server.delay")]
    assert given == ["c", "true", "0.5"]
    assert conf.get_trimmed("storage.crawl.id") == ""


PRINTERS = {
    "cli.py",
    "commands/checker_commands.py",
    "commands/index_commands.py",
    "commands/setup_commands.py",
    "commands/server_commands.py",
    "commands/report_command.py",
    "commands/crawl_command.py",
    "jobs/tools/page_checkers.py",
    "jobs/tools/cluster_package.py",
    "mapreduce/task_progress.py",
    "support/reporting.py",
    "search/evaluation/evaluator.py",
    "server/http_server.py",
}
"""Modules that print: commands, what only commands call, and what asks first whether somebody takes it."""


def test_only_listed_modules_print() -> None:
    package = Path(nutch2py.__file__).parent
    printing = set()
    for path in package.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("print", "warnings.warn", "sys.stderr.write"):
                printing.add(path.relative_to(package).as_posix())
    assert printing == PRINTERS


def test_every_public_name_is_importable() -> None:
    assert set(nutch2py.__all__) <= set(dir(nutch2py))
    assert all(getattr(nutch2py, name) is not None for name in nutch2py.__all__)
    with pytest.raises(AttributeError, match="no attribute 'none'"):
        _ = nutch2py.none
