"""The plug-ins of docs/plugins, installed as a stranger's would be, in one crawl that uses each of them."""

from __future__ import annotations

import json
import re
import sqlite3
import sys
import tomllib
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.interfaces import EXTENSION_POINTS
from nutch2py.jobs.fetch.fetch_job import fetch
from nutch2py.jobs.generate.generate_job import generate
from nutch2py.jobs.index.index_job import index
from nutch2py.jobs.inject.inject_job import inject
from nutch2py.jobs.parse_job import parse
from nutch2py.jobs.updatedb.updatedb_job import updatedb
from nutch2py.plugins import loading
from nutch2py.records.webpage import CrawlStatus, WebPage
from nutch2py.table import open_store
from nutch2py.url.keys import reverse_url
from tests.jobs.crawl import SETTINGS
from tests.site.server import Reply, ScriptedSite

ROOT = Path(__file__).resolve().parent.parent
INCLUDES = (
    "protocol-http|urlfilter-(regex|validator|pathdepth)|parse-(html|tika|subrip)|index-(basic|anchor|more)"
    "|urlnormalizer-(pass|regex|basic|campaign)|scoring-(opic|preferred)|image-count|image-count-index|indexer-sqlite"
)
PAGES = {
    "/front.html": """<title>Front</title> <img src=a.png> <a href="/news/one.html?utm_source=front">one</a>
        <a href="/other.html">other</a> <a href="/film.srt">film</a> <a href="/1/2/3/4/5/6/7/8/9.html">deep</a>""",
    "/news/one.html": "<title>One</title> <img src=a.png> <img src=b.png>",
    "/other.html": "<p>Other",
}
SUBTITLES = "1\n00:00:01,000 --> 00:00:02,500\nGood evening.\n\n2\n00:00:03,000 --> 00:00:04,000\nGood night.\n"


class Example(NamedTuple):
    """Content of a page: the source of a module, and the project that installs it."""

    source: str
    project: dict[str, Any]

    @property
    def module(self) -> str:
        ((entry,),) = [entries.values() for entries in self.project["entry-points"].values()]
        return str(entry.partition(":")[0])

    def install(self, folder: Path) -> None:
        """Do what pip does: the module and what entry points are read from."""
        (folder / f"{self.module}.py").write_text(self.source, encoding="utf-8")
        name, version = self.project["name"], self.project["version"]
        info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n", encoding="utf-8")
        groups = [
            f"[{group}]\n" + "".join(f"{plugin_id} = {value}\n" for plugin_id, value in entries.items())
            for group, entries in self.project["entry-points"].items()
        ]
        (info / "entry_points.txt").write_text("".join(groups), encoding="utf-8")


def blocks(point: str, kind: str) -> list[str]:
    text = (ROOT / "docs" / "plugins" / f"{point}.md").read_text(encoding="utf-8")
    return re.findall(rf"^```{kind}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def example(point: str) -> Example:
    # the first block of a page are its imports; the second is the plug-in
    _, source = blocks(point, "python")
    (project,) = blocks(point, "toml")
    return Example(source, tomllib.loads(project)["project"])


class Crawl(NamedTuple):
    """Results of a crawl with the plug-ins of the pages."""

    site: ScriptedSite
    conf: Configuration
    documents: dict[str, dict[str, Any]]
    fetched: list[str]

    def page(self, path: str) -> WebPage:
        found = open_store(self.conf, WebPage).get(reverse_url(self.site.url(path)))
        assert found is not None
        return found

    def row_keys(self) -> list[str]:
        return [key for key, _ in open_store(self.conf, WebPage).scan_cells()]


@pytest.fixture(scope="module")
def crawl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawl]:
    folder = tmp_path_factory.mktemp("plugins")
    examples = [example(point) for point in EXTENSION_POINTS]
    for each in examples:
        each.install(folder)
    (element,) = [block for block in blocks("parser", "xml") if block.startswith("<mime-type")]
    own = folder / "conf"
    own.mkdir()
    types = (ROOT / "conf" / "mime-types.xml").read_text(encoding="utf-8")
    (own / "mime-types.xml").write_text(types.replace("</mime-info>", element + "</mime-info>"), encoding="utf-8")
    conf = Configuration.load(
        own,
        {
            **SETTINGS,
            "storage.data.store": f"embedded:{folder / 'crawldata'}",
            "plugin.includes": INCLUDES,
            "db.signature.class": "TitleSignature",
            "db.fetch.schedule.class": "NewsFetchSchedule",
            "index.encoder": "encoder-trigram",
            "indexer-sqlite.path": str(folder / "index.sqlite"),
        },
    )
    with pytest.MonkeyPatch.context() as patch, ScriptedSite() as site:
        patch.syspath_prepend(folder)
        loading.installed_plugins.cache_clear()
        for path, body in PAGES.items():
            site.on(path, Reply(body=body.encode()))
        site.on("/film.srt", Reply(body=SUBTITLES.encode(), content_type="text/plain"))
        (folder / "seeds.txt").write_text(site.url("/front.html\n"), encoding="utf-8")
        inject(conf, str(folder / "seeds.txt"))
        for number, most in enumerate((1, 1, 10)):
            batch, _ = generate(conf, top_n=most, batch_id=f"test-{number}")
            fetch(conf, batch)
            parse(conf, batch)
            updatedb(conf, batch)
        index(conf, "-all")
        with sqlite3.connect(folder / "index.sqlite") as database:
            rows = database.execute("select id, fields from documents").fetchall()
        database.close()
        asked = [request.path for request in site.seen if request.path != "/robots.txt"]
        yield Crawl(site, conf, {key: json.loads(fields) for key, fields in rows}, asked)
    loading.installed_plugins.cache_clear()
    for each in examples:
        sys.modules.pop(each.module, None)


def test_example_url_normalizer_removes_parameters(crawl: Crawl) -> None:
    assert reverse_url(crawl.site.url("/news/one.html")) in crawl.row_keys()
    assert not [key for key in crawl.row_keys() if "utm_" in key]


def test_example_url_filter_rejects_deep_paths(crawl: Crawl) -> None:
    assert "/1/2/3/4/5/6/7/8/9.html" in PAGES["/front.html"]
    assert sorted(crawl.row_keys()) == sorted(
        reverse_url(crawl.site.url(path)) for path in ("/front.html", "/news/one.html", "/other.html", "/film.srt")
    )


def test_example_parser_handles_new_media_type(crawl: Crawl) -> None:
    page = crawl.page("/film.srt")
    assert (page.content_type, page.title) == ("application/x-subrip", "film.srt")
    assert (page.text, page.metadata["lines"]) == ("Good evening.\nGood night.", b"2")


def test_example_parse_filter_counts_images(crawl: Crawl) -> None:
    assert [crawl.page(path).metadata["images"] for path in PAGES] == [b"1", b"2", b"0"]


def test_example_signature_uses_title(crawl: Crawl) -> None:
    for path, signed in {"/news/one.html": "One", "/other.html": crawl.site.url("/other.html")}.items():
        assert crawl.page(path).signature == blake2b(signed.encode(), digest_size=16).digest()


def test_example_scoring_filter_prioritizes_news(crawl: Crawl) -> None:
    assert crawl.fetched[:2] == ["/front.html", "/news/one.html"]
    assert sorted(crawl.fetched[2:]) == ["/film.srt", "/other.html"]


def test_example_schedule_refetches_news_hourly(crawl: Crawl) -> None:
    assert {path: crawl.page(path).fetch_interval for path in PAGES} == {
        "/front.html": 2592000,
        "/news/one.html": 3600,
        "/other.html": 2592000,
    }
    assert crawl.page("/news/one.html").status == CrawlStatus.FETCHED


def test_example_index_writer_receives_example_fields(crawl: Crawl) -> None:
    found = {document["url"]: document.get("images") for document in crawl.documents.values()}
    assert found == {
        crawl.site.url("/front.html"): "1",
        crawl.site.url("/news/one.html"): "2",
        crawl.site.url("/other.html"): "0",
        crawl.site.url("/film.srt"): None,
    }


@pytest.mark.parametrize("point", EXTENSION_POINTS)
def test_imports_at_top_of_each_page_work(point: str) -> None:
    names: dict[str, object] = {}
    exec(blocks(point, "python")[0], names)
    assert names[EXTENSION_POINTS[point].__name__] is EXTENSION_POINTS[point]


@pytest.mark.parametrize("point", EXTENSION_POINTS)
def test_example_entry_point_belongs_to_group_of_page(point: str) -> None:
    assert list(example(point).project["entry-points"]) == [f"nutch2py.{point}"]
