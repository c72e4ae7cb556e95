"""domainstats, protocolstats and crawlcomplete: rows counted as Nutch counts them, in its form."""

from __future__ import annotations

import re

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import StoreError
from nutch2py.jobs.tools.domain_and_status_counts import GROUPINGS, count_rows_by_name, print_counts
from nutch2py.records.cells import ProtocolStatus
from nutch2py.records.webpage import CrawlStatus
from nutch2py.url.url_parts import ICANN_DOMAINS
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
def test_domainstats_counts_fetched_pages(
    crawled: Configuration, place: str, expected: dict[str, int], runner: str
) -> None:
    if runner == "local" and place != "domain":
        pytest.skip("one of them is enough")
    crawled.set("mapreduce.runner", runner)
    assert count_rows_by_name(crawled, "x", "domains", place) == {**expected, "FETCHED": 4, "NOT_FETCHED": 3}


def test_protocolstatus_counts_rows(crawled: Configuration) -> None:
    assert count_rows_by_name(crawled, "x", "protocol") == {
        "NOTFOUND": 1,
        "NOTMODIFIED": 1,
        "SUCCESS": 3,
        "UNFETCHED": 2,
    }


def test_crawlcomplete_counts_complete_pages(crawled: Configuration) -> None:
    assert count_rows_by_name(crawled, "x", "completion", "host") == {
        "127.0.0.1 FETCHED": 1,
        "[::1] UNFETCHED": 1,
        "a.example.co.uk FETCHED": 2,
        "b.example.co.uk UNFETCHED": 1,
        "www.example.org FETCHED": 1,
        "www.example.org UNFETCHED": 1,
    }


def test_output_lines_match_nutch(crawled: Configuration, capsys: pytest.CaptureFixture[str]) -> None:
    assert print_counts(crawled, "DomainStatistics", "domains", "tld", limit=2) == 0
    first, *lines, last = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"DomainStatistics: starting at .*", first)
    assert lines == ["4\tFETCHED", "3\tNOT_FETCHED"]
    assert re.fullmatch(r"DomainStatistics: finished at .*, time elapsed: 00:00:0\d", last)


def test_many_names_are_spilled_and_summed(crawled: Configuration, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = count_rows_by_name(crawled, "x", "domains", "host")
    monkeypatch.setattr("nutch2py.jobs.tools.domain_and_status_counts.MAX_BUFFERED_NAMES", 1)
    assert count_rows_by_name(crawled, "x", "domains", "host") == expected


def test_missing_crawl_is_rejected(conf: Configuration) -> None:
    with pytest.raises(StoreError, match="there is no table"):
        count_rows_by_name(conf, "x", "protocol")


def test_every_group_has_a_name_for_any_host() -> None:
    for place in GROUPINGS.values():
        assert [place(ICANN_DOMAINS, host) for host in ("localhost", "127.0.0.1", "[::1]")] == [
            "localhost",
            "127.0.0.1",
            "[::1]",
        ]
