"""A plug-in that fails on a page is named with the URL, the page is counted, and the job continues consistently."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from nutch2py.cli import main
from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError, IndexingError, PluginFailuresError
from nutch2py.interfaces import EXTENSION_POINTS
from nutch2py.jobs.fetch.fetch_job import fetch
from nutch2py.jobs.generate.generate_job import generate
from nutch2py.jobs.index.index_job import index
from nutch2py.jobs.inject.inject_job import inject
from nutch2py.jobs.parse_job import parse
from nutch2py.jobs.updatedb.updatedb_job import updatedb
from nutch2py.mapreduce.driver import JobResult
from nutch2py.plugins import loading
from nutch2py.plugins.plugin_failures import PLUGIN_FAILURES_GROUP
from nutch2py.records.cells import decode_float
from nutch2py.records.webpage import CrawlStatus, Mark, MetadataKey, WebPage
from nutch2py.search.search_backends import search
from nutch2py.support.reporting import Reporter, use_reporter
from nutch2py.table import TableQuery, open_store
from nutch2py.url.keys import reverse_url, unreverse_url
from tests.jobs.crawl import SETTINGS
from tests.jobs.crawl import table as all_cells
from tests.small_http import Answering

BATCH = "test-1"
MODULE = '''
from hashlib import md5

from nutch2py import interfaces
from nutch2py.schedule.default_fetch_schedule import DefaultFetchSchedule
from nutch2py.records.webpage import WebPage


class Fails:
    """Fails in the member that the property names, on URLs with "bad" in them."""

    fields = frozenset()

    def __init__(self, conf):
        self.where = conf.get("test.fails", "")
        if self.where == f"{type(self).__name__}.__init__":
            raise KeyError("not made")

    def meet(self, member, url):
        if self.where == f"{type(self).__name__}.{member}" and "bad" in url:
            raise RuntimeError("no\\ngood")


class Filter(Fails, interfaces.URLFilter):
    def filter(self, url):
        self.meet("filter", url)
        return url


class Normalizer(Fails, interfaces.URLNormalizer):
    def normalize(self, url, scope):
        self.meet(f"normalize {scope}", url)
        return url


class PlainParser(Fails, interfaces.Parser):
    content_types = "application/x-plain"
    fields = frozenset({WebPage.content, WebPage.metadata})

    def parse(self, url, page):
        page.metadata["half"] = b"done"
        self.meet("parse", url)
        return interfaces.Parse("plankton text", "title", ())


class Look(Fails, interfaces.ParseFilter):
    fields = frozenset({WebPage.metadata})

    def filter(self, url, page, parse, document):
        page.metadata["half"] = b"done"
        self.meet("filter", url)
        return parse


class Digest(Fails, interfaces.Signature):
    fields = frozenset({WebPage.text})

    def calculate(self, url, page):
        self.meet("calculate", url)
        return md5((page.text or "").encode()).digest()


class Scoring(Fails, interfaces.ScoringFilter):
    fields = frozenset({WebPage.score})
    minded = set()

    def injected_score(self, url, page):
        self.meet("injected_score", url)

    def initial_score(self, url, page):
        self.meet("initial_score", url)

    def generator_sort_value(self, url, page, init):
        self.meet("generator_sort_value", url)
        return init

    def distribute(self, url, page, links, total):
        nothing = not links and not total
        self.meet("distribute nothing" if nothing else "distribute", url)
        if nothing or url in self.minded:  # on the reduce side, and where there are no links
            self.minded.add(url)
            self.meet("distribute again", url)
        return links

    def update_score(self, url, page, inlinks):
        page.score += 1000 if self.where.endswith("update_score") and "bad" in url else 0
        self.meet("update_score", url)

    def indexer_score(self, url, page, init):
        self.meet("indexer_score", url)
        return init


class Schedule(Fails, DefaultFetchSchedule):
    fields = DefaultFetchSchedule.fields

    def __init__(self, conf):
        Fails.__init__(self, conf)
        DefaultFetchSchedule.__init__(self, conf)

    def initialize(self, url, page, now):
        self.meet("initialize", url)
        return super().initialize(url, page, now)

    def should_fetch(self, url, page, now):
        self.meet("should_fetch", url)
        return super().should_fetch(url, page, now)

    def set_fetch_schedule(self, url, page, *args):
        page.fetch_interval = 1
        self.meet("set_fetch_schedule", url)
        return super().set_fetch_schedule(url, page, *args)


class Documents(Fails, interfaces.IndexingFilter):
    def filter(self, document, url, page):
        self.meet("filter", url)
        return document


class Writer(Fails, interfaces.IndexWriter):
    def open(self, conf, parameters):
        pass

    def write(self, document):
        self.meet("write", document.get("url"))

    def update(self, document):
        pass

    def delete(self, document_id):
        pass

    def commit(self):
        self.meet("commit", "bad")

    def close(self):
        pass

    def describe(self):
        return "Writer"
'''
POINTS = {
    "urlfilter": "Filter",
    "urlnormalizer": "Normalizer",
    "parser": "PlainParser",
    "parsefilter": "Look",
    "signature": "Digest",
    "scoringfilter": "Scoring",
    "fetchschedule": "Schedule",
    "indexingfilter": "Documents",
    "indexwriter": "Writer",
}
INCLUDES = (
    "urlfilter-regex|urlnormalizer-basic|parse-html|scoring-opic|index-basic|indexer-embedded"
    "|test-(urlfilter|urlnormalizer|parser|parsefilter|scoringfilter|indexingfilter)"
)
WORDS = "plankton and other words of the sea, which nobody minds"


class _Site(Answering):
    def serve(self) -> None:
        links = "".join(f'<a href="/{name}">{name}</a>' for name in ("bad", "badnew", "other"))
        body, status, location = f"<title>t</title><p>{WORDS} of {self.path}</p>{links}", 200, ""
        if self.path.endswith("plain"):
            body = f"{WORDS} of {self.path}"
        elif self.path == "/robots.txt":
            status, body = 404, ""
        elif self.path == "/moved":
            status, location, body = 301, "/badtarget", ""
        kind = "application/x-plain" if self.path.endswith("plain") else "text/html"
        self.answer(status, body.encode(), kind, location)


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Site)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


@pytest.fixture(autouse=True)
def _installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Install the plug-ins next to the built-in ones, for the processes of the parser, too."""
    folder = tmp_path / "site"
    info = folder / "failing_plugins-1.dist-info"
    info.mkdir(parents=True)
    (folder / "failing_plugins.py").write_text(MODULE, encoding="utf-8")
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: failing-plugins\nVersion: 1\n", encoding="utf-8")
    text = "".join(f"[nutch2py.{point}]\ntest-{point} = failing_plugins:{cls}\n" for point, cls in POINTS.items())
    (info / "entry_points.txt").write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setenv("PYTHONPATH", str(folder))
    loading.installed_plugins.cache_clear()
    yield
    loading.installed_plugins.cache_clear()


@pytest.fixture
def conf(conf: Configuration) -> Configuration:
    for name, value in SETTINGS.items():
        conf.set(name, value)
    conf.set("plugin.includes", INCLUDES)
    conf.set("mime.type.magic", False)
    conf.set("db.signature.class", "test-signature")
    conf.set("db.fetch.schedule.class", "test-fetchschedule")
    return conf


class Crawl:
    """The jobs of a crawl of the site, one by one; ``lines``: what they said."""

    def __init__(self, conf: Configuration, site: str, seeds: Path, names: tuple[str, ...]) -> None:
        self.conf, self.lines = conf, list[str]()
        seeds.write_text("".join(f"{site}/{name}\n" for name in names), encoding="utf-8")
        self.jobs: dict[str, Callable[[], Any]] = {
            "inject": lambda: inject(conf, str(seeds)),
            "generate": lambda: generate(conf, batch_id=BATCH),
            "fetch": lambda: fetch(conf, BATCH),
            "parse": lambda: parse(conf, BATCH),
            "updatedb": lambda: updatedb(conf, BATCH),
            "index": lambda: index(conf, "-all"),
        }

    def run(self, *names: str) -> JobResult:
        """Run jobs; return the result of the last."""
        found: Any = None
        with use_reporter(Reporter(on_line=self.lines.append, on_warning=self.lines.append)):
            for name in names:
                found = self.jobs[name]()
        assert found is None or isinstance(found, JobResult)
        return found or JobResult()

    def until(self, last: str) -> JobResult:
        """Run all jobs to the one named."""
        names = [*self.jobs]
        return self.run(*names[: names.index(last) + 1])

    def fails(self, where: str = "") -> None:
        """Let a member fail from now on."""
        self.conf.set("test.fails", where)


@pytest.fixture
def crawl(conf: Configuration, site: str, tmp_path: Path) -> Crawl:
    return Crawl(conf, site, tmp_path / "seeds.txt", ("good", "bad", "moved", "badplain", "goodplain"))


def row(conf: Configuration, site: str, name: str) -> WebPage | None:
    return open_store(conf, WebPage).get(reverse_url(f"{site}/{name}"))


CASES = [
    # member, job, plug-in, page on which it fails (the one of the message)
    ("Filter.filter", "inject", "bad"),
    ("Normalizer.normalize inject", "inject", "bad"),
    ("Scoring.injected_score", "inject", "bad"),
    ("Filter.filter", "generate", "bad"),
    ("Normalizer.normalize generate_host_count", "generate", "bad"),
    ("Normalizer.normalize partition", "generate", "bad"),
    ("Scoring.generator_sort_value", "generate", "bad"),
    ("Schedule.should_fetch", "generate", "bad"),
    ("Filter.filter", "fetch", "moved"),
    ("Normalizer.normalize fetcher", "fetch", "moved"),
    ("PlainParser.parse", "parse", "badplain"),
    ("Look.filter", "parse", "bad"),
    ("Digest.calculate", "parse", "bad"),
    ("Filter.filter", "parse", "bad"),
    ("Normalizer.normalize outlink", "parse", "bad"),
    ("Scoring.distribute", "updatedb", "bad"),
    ("Scoring.distribute again", "updatedb", "bad"),
    ("Scoring.update_score", "updatedb", "bad"),
    ("Scoring.initial_score", "updatedb", "badnew"),
    ("Schedule.set_fetch_schedule", "updatedb", "bad"),
    ("Schedule.initialize", "updatedb", "badnew"),
    ("Documents.filter", "index", "bad"),
    ("Scoring.indexer_score", "index", "bad"),
]
NOT_REPEATED = {"generate", "fetch"}
"""Jobs that do nothing more to a batch that is done: what failed there comes with a later batch."""
UNDISTURBED: dict[str, dict[str, dict[str, bytes]]] = {}


def undisturbed(crawl: Crawl, conf: Configuration, job: str) -> dict[str, dict[str, bytes]]:
    """Return the table of the same crawl in which nothing failed, after ``job``; made once."""
    if not UNDISTURBED:
        where = conf.get("storage.data.store", "")
        conf.set("storage.data.store", f"{where}-undisturbed")
        for name in crawl.jobs:
            crawl.run(name)
            UNDISTURBED[name] = all_cells(conf)
        conf.set("storage.data.store", where)
    return UNDISTURBED[job]


def without_scores(cells: dict[str, dict[str, bytes]]) -> dict[str, dict[str, bytes]]:
    return {key: {n: v for n, v in row.items() if n not in ("s:s", "mtdt:_csh_")} for key, row in cells.items()}


@pytest.mark.parametrize(("member", "job", "page"), CASES)
def test_failing_page_is_named_retried_and_others_unaffected(
    conf: Configuration, site: str, crawl: Crawl, member: str, job: str, page: str
) -> None:
    expected = undisturbed(crawl, conf, job)
    jobs = [*crawl.jobs]
    crawl.run(*jobs[: jobs.index(job)])
    crawl.lines.clear()
    crawl.fails(member)
    result = crawl.run(job)
    cls = member.partition(".")[0]
    plugin = next(f"test-{point}" for point, name in POINTS.items() if name == cls)
    assert set(result.group(PLUGIN_FAILURES_GROUP)) == {plugin}
    messages = [
        line for line in crawl.lines if line.startswith(f"plug-in {plugin} failed on {site}/{page}: RuntimeError: ")
    ]
    assert len(messages) == 1
    assert messages[0].partition("RuntimeError: ")[2] in (
        "no good",
        f"no good, at {site}/bad",
        f"no good, at {site}/badtarget",
    )
    assert "table" not in result.counters  # the counters for the limit are internal
    found = all_cells(conf)
    untouched = [key for key in expected if not unreverse_url(key).rpartition("/")[2].startswith("bad")]
    if job not in ("parse", "fetch", "updatedb"):  # there a good page may have the link that failed, or come by it
        assert [found[key] for key in untouched] == [expected[key] for key in untouched]
    crawl.fails()
    if job not in NOT_REPEATED and member != "Schedule.initialize":
        crawl.run(job)
        assert without_scores(all_cells(conf)) == without_scores(expected)
        if job != "updatedb":  # cash received while a page waited stays with it
            assert all_cells(conf) == expected


def test_page_failing_in_generate_is_chosen_next_time(conf: Configuration, site: str, crawl: Crawl) -> None:
    crawl.run("inject")
    crawl.fails("Scoring.generator_sort_value")
    crawl.run("generate")
    assert Mark.GENERATE not in (row(conf, site, "bad") or WebPage()).markers
    crawl.fails()
    assert generate(conf, batch_id="test-2").urls == 2


def test_redirect_with_failing_target_is_refetched(conf: Configuration, site: str, crawl: Crawl) -> None:
    conf.set("http.redirect.max", 2)
    crawl.run("inject", "generate")
    crawl.fails("Normalizer.normalize fetcher")
    result = crawl.run("fetch")
    moved = row(conf, site, "moved")
    assert moved is not None
    assert (moved.status, moved.retries_since_fetch) == (CrawlStatus.UNFETCHED, 0)
    assert moved.protocol_status is not None
    reason = f"test-urlnormalizer: RuntimeError: no good, at {site}/badtarget"
    assert moved.protocol_status.args == (reason, "local")
    assert result.group(PLUGIN_FAILURES_GROUP) == {"test-urlnormalizer": 1}


@pytest.mark.parametrize("with_fetch", [True, False])
@pytest.mark.parametrize(("member", "page"), [("Look.filter", "bad"), ("PlainParser.parse", "badplain")])
def test_page_with_failed_parse_has_reason_only(
    conf: Configuration, site: str, crawl: Crawl, member: str, page: str, with_fetch: bool
) -> None:
    conf.set("fetcher.parse", with_fetch)
    crawl.fails(member)
    result = crawl.until("fetch" if with_fetch else "parse")
    found = row(conf, site, page)
    assert found is not None
    assert found.parse_status is not None
    plugin = "test-parsefilter" if member == "Look.filter" else "test-parser"
    assert found.parse_status.args == (f"{plugin}: RuntimeError: no good",)
    assert (found.title, found.text, found.signature) == (None, None, None)
    assert "half" not in found.metadata
    assert Mark.PARSE not in found.markers
    assert result.group(PLUGIN_FAILURES_GROUP) == {plugin: 1}


@pytest.mark.parametrize("member", ["Scoring.update_score", "Schedule.set_fetch_schedule", "Scoring.distribute again"])
def test_updatedb_with_failing_plugin_keeps_cash(conf: Configuration, site: str, crawl: Crawl, member: str) -> None:
    def cash() -> float:
        rows = open_store(conf, WebPage).scan(TableQuery.for_fields({WebPage.metadata}))
        return sum(decode_float(page.metadata.get(MetadataKey.CASH) or bytes(4)) for _, page in rows)

    crawl.until("parse")
    before = cash()
    crawl.fails(member)
    crawl.run("updatedb")
    page = row(conf, site, "bad")
    assert page is not None
    assert {Mark.GENERATE, Mark.FETCH, Mark.PARSE} <= set(page.markers)
    assert Mark.UPDATEDB not in page.markers
    assert page.score < 1000  # what was half done is not written
    # the two plain pages have no links, so their cash goes to no page; one with a failed map keeps its own
    lost = 1.0 if member == "Scoring.distribute again" else 2.0
    assert cash() == pytest.approx(before - lost)


def test_scoring_filter_rejecting_empty_links_is_not_called(conf: Configuration, site: str, crawl: Crawl) -> None:
    """Such as one that divides by the number of links: the map side asks it for pages that have some."""
    expected = undisturbed(crawl, conf, "updatedb")
    crawl.until("parse")
    crawl.fails("Scoring.distribute nothing")
    result = crawl.run("updatedb")
    assert result.group(PLUGIN_FAILURES_GROUP) == {"test-scoringfilter": 1}  # the plain page, which has none
    found = all_cells(conf)
    of_bad = [key for key in expected if unreverse_url(key).endswith("/bad")]
    assert len(of_bad) == 1
    assert [found[key] for key in of_bad] == [expected[key] for key in of_bad]


def test_index_with_failing_plugin_leaves_page_for_next_run(conf: Configuration, site: str, crawl: Crawl) -> None:
    crawl.fails("Documents.filter")
    result = crawl.until("index")
    assert result.group("IndexerStatus")["failed"] == 2
    assert any("2 failed in a plug-in" in line for line in crawl.lines)
    assert {hit.url for hit in search(conf, "plankton", rows=10).hits} == {f"{site}/good", f"{site}/goodplain"}


def many(conf: Configuration, tmp_path: Path, bad: int, good: int) -> Callable[[], JobResult]:
    """Return an inject of so many seeds on which the scoring filter fails, and so many others."""
    seeds = tmp_path / "many.txt"
    names = [f"http://h{n}.example/{'bad' if n < bad else 'good'}" for n in range(bad + good)]
    seeds.write_text("\n".join(names), encoding="utf-8")
    conf.set("test.fails", "Scoring.injected_score")
    return lambda: inject(conf, str(seeds))


def test_failures_over_share_end_job(conf: Configuration, tmp_path: Path) -> None:
    conf.set("plugin.failures.minimum", "20")
    job = many(conf, tmp_path, 30, 20)
    with pytest.raises(PluginFailuresError, match=r"plug-in test-scoringfilter failed on .* of \d+ pages") as caught:
        job()
    assert "first: plug-in test-scoringfilter failed on http://h" in str(caught.value)
    assert caught.value.exit_code == 7


def test_failures_up_to_share_do_not_end_job(conf: Configuration, tmp_path: Path) -> None:
    conf.set("plugin.failures.minimum", "20")
    assert many(conf, tmp_path, 25, 26)().group(PLUGIN_FAILURES_GROUP) == {"test-scoringfilter": 25}
    conf.set("plugin.failures.share", "0.4")
    with pytest.raises(PluginFailuresError):
        many(conf, tmp_path, 25, 26)()


def test_failures_below_minimum_do_not_end_job(conf: Configuration, tmp_path: Path) -> None:
    assert many(conf, tmp_path, 30, 0)().group(PLUGIN_FAILURES_GROUP) == {"test-scoringfilter": 30}


def test_first_ten_failures_are_named(conf: Configuration, tmp_path: Path) -> None:
    lines: list[str] = []
    with use_reporter(Reporter(on_line=lines.append)):
        many(conf, tmp_path, 30, 0)()
    named = [line for line in lines if line.startswith("plug-in test-scoringfilter failed on")]
    assert len(named) == 10
    assert named[-1].endswith("(no further ones are named)")


def test_failure_limit_is_checked_during_task_after_first_host(conf: Configuration, tmp_path: Path) -> None:
    conf.set("plugin.failures.minimum", "3")
    assert many(conf, tmp_path, 10, 15)().group(PLUGIN_FAILURES_GROUP) == {"test-scoringfilter": 10}
    with pytest.raises(PluginFailuresError, match=r"of (3\d|4\d) pages"):
        many(conf, tmp_path, 900, 0)()


@pytest.mark.parametrize("minimum", ["18", "1"])  # over in the sum of two tasks alone, and in one of them
def test_exit_code_is_7_with_process_tasks(
    conf: Configuration, tmp_path: Path, capsys: pytest.CaptureFixture[str], minimum: str
) -> None:
    many(conf, tmp_path, 20, 4)
    words = ["inject", str(tmp_path / "many.txt"), "-r", "local", "-D", "mapreduce.job.maps=2"]
    for name in ("storage.data.store", "storage.embedded.map.size", "plugin.includes", "test.fails"):
        words += ["-D", f"{name}={conf.get(name)}"]
    words += ["-D", "mapreduce.job.reduces=2", "-D", f"plugin.failures.minimum={minimum}"]
    assert main(words) == 7
    line = capsys.readouterr().err.splitlines()[-1]
    assert line.startswith("nutch2py: plug-in test-scoringfilter failed on ")
    assert "first: plug-in test-scoringfilter failed on http://h" in line


def test_plugin_failing_in_constructor_is_named(conf: Configuration, crawl: Crawl) -> None:
    crawl.fails("Scoring.__init__")
    with pytest.raises(ConfigurationError, match=r"plug-in test-scoringfilter .* cannot be created: KeyError"):
        crawl.run("inject")


@pytest.mark.parametrize("member", ["write", "commit"])
def test_failing_index_writer_ends_job_by_name(conf: Configuration, crawl: Crawl, member: str) -> None:
    crawl.until("updatedb")
    conf.set("plugin.includes", f"{INCLUDES}|test-indexwriter".replace("|indexer-embedded", ""))
    crawl.fails(f"Writer.{member}")
    with pytest.raises(IndexingError, match=r"plug-in test-indexwriter failed (on http://.*/bad|when it commits)"):
        crawl.run("index")


def test_cases_cover_every_member_called_by_jobs() -> None:
    """Every member of a contract that takes a page or a URL fails in a case above, but those that do not decide."""
    named = {member.partition(" ")[0] for member, _, _ in CASES}
    called = {
        f"{POINTS[point]}.{member}"
        for point, contract in EXTENSION_POINTS.items()
        if point not in ("indexwriter", "encoder")  # a failure of theirs ends the job
        for member in contract.__abstractmethods__  # type: ignore[attr-defined]
    }
    schedule = {f"Schedule.{name}" for name in ("force_refetch", "set_page_gone_schedule", "set_page_retry_schedule")}
    assert called - schedule <= named
