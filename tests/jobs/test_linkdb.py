"""readlinkdb: inlinks of a page, and the pages that are linked to most."""

from __future__ import annotations

import json

import pytest

from nutch2py.cli import main
from nutch2py.conf.configuration import Configuration
from nutch2py.jobs.tools.link_db_reader import find_most_linked, print_inlinks
from tests.jobs.rows import put

LINKS = {
    "http://a.test/": {"http://b.test/": "to a", "http://c.test/\u00e9": "\u7b2c\u4e00"},
    "http://b.test/": {"http://a.test/": ""},
    "http://c.test/": {f"http://d.test/{number}": "c" for number in range(5)},
    "http://d.test/": {},
}


@pytest.fixture
def crawled(conf: Configuration) -> Configuration:
    put(conf, {url: {"status": 2, "inlinks": links} for url, links in LINKS.items()})
    return conf


def test_inlinks_of_page_are_listed(crawled: Configuration, capsys: pytest.CaptureFixture[str]) -> None:
    assert print_inlinks(crawled, "http://a.test/") == 0
    assert capsys.readouterr().out.splitlines() == [
        "fromUrl: http://b.test/ anchor: to a",
        "fromUrl: http://c.test/\u00e9 anchor: \u7b2c\u4e00",
    ]
    assert print_inlinks(crawled, "http://b.test/", as_json=True) == 0
    assert json.loads(capsys.readouterr().out) == {"fromUrl": "http://a.test/", "anchor": ""}


@pytest.mark.parametrize("url", ["http://d.test/", "http://nobody.test/"])
def test_page_without_inlinks_is_reported(crawled: Configuration, capsys: pytest.CaptureFixture[str], url: str) -> None:
    assert print_inlinks(crawled, url) == 1
    assert capsys.readouterr().out == f"{url} - no link information.\n"


@pytest.mark.parametrize("runner", ["inline", "local"])
def test_most_linked_pages_are_listed(crawled: Configuration, runner: str) -> None:
    crawled.set("mapreduce.runner", runner)
    best = [("http://c.test/", 5), ("http://a.test/", 2), ("http://b.test/", 1)]
    assert find_most_linked(crawled, 2) == best[:2]
    assert find_most_linked(crawled, 100) == best


def test_invalid_url_is_rejected(crawled: Configuration, capsys: pytest.CaptureFixture[str]) -> None:
    store = crawled.get("storage.data.store", "")
    size = crawled.get("storage.embedded.map.size", "")
    options = ["-D", f"storage.data.store={store}", "-D", f"storage.embedded.map.size={size}"]
    assert main(["readlinkdb", "-url", "no url", *options]) == 255
    assert "no url is not a URL" in capsys.readouterr().err
    assert main(["readlinkdb", "-topN", "1", *options]) == 0
    assert capsys.readouterr().out.endswith("5\thttp://c.test/\n")
