"""domainstats, protocolstats and crawlcomplete: rows counted as Nutch counts them, in its form."""

from __future__ import annotations

import re

import pytest

from nutch2py.cells import ProtocolStatus
from nutch2py.conf import Configuration
from nutch2py.errors import StoreError
from nutch2py.jobs.counts import PLACES, count_rows, print_counts
from nutch2py.webpage import CrawlStatus
from tests.jobs.rows import put

SUCCESS, NOTFOUND = ProtocolStatus(1), ProtocolStatus(14)
ROWS = {
    "http://a.example.co.uk/1": (CrawlStatus.FETCHED, SUCCESS),
    "http://a.example.co.uk/2": (CrawlStatus.NOTMODIFIED, ProtocolStatus(21)),
    "http://b.example.co.uk/": (CrawlStatus.GONE, NOTFOUND),
    "https://www.example.org/": (CrawlStatus.FETCHED, SUCCESS),
    "https://www.example.org/new": (CrawlStatus.UNFETCHED, None),
    "http://127.0.0.1:8080/": (CrawlStatus.FETCHED, SUCCESS),
    "http://[::1]/": (CrawlStatus.UNFETCHED, None),
}


@pytest.fixture
def crawled(conf: Configuration) -> Configuration:
    put(conf, {url: {"status": int(status), "protocol_status": found} for url, (status, found) in ROWS.items()})
    return conf


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("host", {"127.0.0.1": 1, "a.example.co.uk": 2, "www.example.org": 1}),
        ("domain", {"127.0.0.1": 1, "example.co.uk": 2, "example.org": 1}),
        ("suffix", {"127.0.0.1": 1, "co.uk": 2, "org": 1}),
        ("tld", {"127.0.0.1": 1, "uk": 2, "org": 1}),
    ],
)
@pytest.mark.parametrize("runner", ["inline", "local"])
def test_fetched_pages_by_place(crawled: Configuration, place: str, expected: dict[str, int], runner: str) -> None:
    if runner == "local" and place != "domain":
        pytest.skip("one of them is enough")
    crawled.set("mapreduce.runner", runner)
    assert count_rows(crawled, "x", "domains", place) == {**expected, "FETCHED": 4, "NOT_FETCHED": 3}


def test_rows_by_protocol_status(crawled: Configuration) -> None:
    assert count_rows(crawled, "x", "protocol") == {"NOTFOUND": 1, "NOTMODIFIED": 1, "SUCCESS": 3, "UNFETCHED": 2}


def test_what_is_complete(crawled: Configuration) -> None:
    assert count_rows(crawled, "x", "completion", "host") == {
        "127.0.0.1 FETCHED": 1,
        "[::1] UNFETCHED": 1,
        "a.example.co.uk FETCHED": 2,
        "b.example.co.uk UNFETCHED": 1,
        "www.example.org FETCHED": 1,
        "www.example.org UNFETCHED": 1,
    }


def test_lines_are_those_of_nutch(crawled: Configuration, capsys: pytest.CaptureFixture[str]) -> None:
    assert print_counts(crawled, "DomainStatistics", "domains", "tld", top=2) == 0
    first, *lines, last = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"DomainStatistics: starting at .*", first)
    assert lines == ["4\tFETCHED", "3\tNOT_FETCHED"]
    assert re.fullmatch(r"DomainStatistics: finished at .*, time elapsed: 00:00:0\d", last)


def test_many_names_are_given_on_and_added_up(crawled: Configuration, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = count_rows(crawled, "x", "domains", "host")
    monkeypatch.setattr("nutch2py.jobs.counts._HELD", 1)
    assert count_rows(crawled, "x", "domains", "host") == expected


def test_no_crawl_no_counts(conf: Configuration) -> None:
    with pytest.raises(StoreError, match="there is no table"):
        count_rows(conf, "x", "protocol")


def test_every_place_has_a_name_for_any_host() -> None:
    for place in PLACES.values():
        assert [place(host) for host in ("localhost", "127.0.0.1", "[::1]")] == ["localhost", "127.0.0.1", "[::1]"]
