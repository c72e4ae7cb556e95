"""The search log: its rows, its bounds, its tokens, and the statistics."""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import StoreError
from nutch2py.records.webpage import DerivedRow
from nutch2py.search.search_log import logged_search, result_token, search_log_writer, search_logger
from nutch2py.search.search_log.logged_search import LoggedClick, LoggedSearch, new_search_id, search_time
from nutch2py.search.search_log.result_token import ResultToken, ResultTokenSigner
from nutch2py.search.search_log.search_log_store import (
    MS_PER_DAY,
    SEARCH_LOG_PREFIX,
    LogRow,
    delete_old_rows,
    read_searches,
    write_rows,
)
from nutch2py.search.search_log.search_log_writer import SearchLogWriter
from nutch2py.search.search_log.search_logger import SearchLogger, SessionHasher
from nutch2py.search.search_log.search_quality import measure_search_quality, read_search_quality
from nutch2py.table import DataStore, open_store, prefix_range


@pytest.fixture
def store(conf: Configuration) -> DataStore[DerivedRow]:
    """Give the derived table of an empty crawl."""
    made = open_store(conf, DerivedRow)
    made.create()
    return made


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Give the time in ms that the log sees; tests change it."""
    now = [1_800_000_000_000]
    for module in ("logged_search", "result_token", "search_logger", "search_log_store", "search_quality"):
        monkeypatch.setattr(f"nutch2py.search.search_log.{module}.now_ms", lambda: now[0])
    return now


def search(query: str, total: int = 3, start: int = 0, session: str = "") -> LoggedSearch:
    ids = [f"org.a:http/{number}" for number in range(min(total, 10))]
    return LoggedSearch(query=query, total=total, start=start, shown=len(ids), ids=ids, session=session)


def keys(store: DataStore[DerivedRow]) -> list[str]:
    return [*store.keys(prefix_range(SEARCH_LOG_PREFIX))]


def test_searches_are_read_newest_first_with_their_clicks(store: DataStore[DerivedRow], clock: list[int]) -> None:
    rows = []
    for number in range(3):
        clock[0] += 1000
        search_id = new_search_id()
        rows.append(LogRow(search_id, 0, search(f"q{number}")))
        rows += [LogRow(search_id, position, LoggedClick(position=position)) for position in range(1, number + 1)]
    rows.append(LogRow(new_search_id(), 1, LoggedClick(position=1)))  # of a search that was dropped
    write_rows(store, rows[::-1])
    found = [*read_searches(store)]
    assert [each.search.query for each in found] == ["q2", "q1", "q0"]
    assert [[click.position for click in each.clicks] for each in found] == [[1, 2], [1], []]
    assert [each.time for each in found] == [clock[0], clock[0] - 1000, clock[0] - 2000]
    assert [each.search.query for each in read_searches(store, clock[0] - 1000)] == ["q2", "q1"]
    assert [each.search.query for each in read_searches(store, 0, 1)] == ["q2"]


def test_repeated_click_replaces_its_row(store: DataStore[DerivedRow]) -> None:
    search_id = new_search_id()
    write_rows(store, [LogRow(search_id, 0, search("q")), LogRow(search_id, 2, LoggedClick(position=2))])
    write_rows(store, [LogRow(search_id, 2, LoggedClick(position=2, dwell_ms=500))])
    assert len(keys(store)) == 2
    assert next(read_searches(store)).clicks == [LoggedClick(position=2, dwell_ms=500)]


def test_rows_of_later_versions_are_skipped(store: DataStore[DerivedRow]) -> None:
    row = DerivedRow()
    row.data = b'{"later": 1}'
    with store.batch() as batch:
        batch.put(SEARCH_LOG_PREFIX + new_search_id(), row)
    assert [*read_searches(store)] == []


def test_old_and_excess_rows_are_deleted(
    store: DataStore[DerivedRow], clock: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nutch2py.search.search_log.search_log_store.DELETES_PER_BATCH", 4)
    rows = []
    for _ in range(20):
        rows.append(LogRow(new_search_id(), 0, search("q")))
        clock[0] += MS_PER_DAY
    write_rows(store, rows)
    other = DerivedRow()
    other.data = b"1"
    with store.batch() as batch:
        batch.put("search/other", other)
        batch.put("job/0", other)
    assert delete_old_rows(store, 15, 100) == 5
    assert delete_old_rows(store, 15, 3) == 12
    assert keys(store) == [each.key for each in rows[:-4:-1]]
    assert {"search/other", "job/0"} <= {*store.keys(prefix_range("search/")), *store.keys(prefix_range("job/"))}


def test_writer_never_waits_and_drops_when_queue_is_full(conf: Configuration) -> None:
    entered, released = threading.Event(), threading.Event()

    def open_slow_table(given: Configuration) -> DataStore[DerivedRow]:
        entered.set()
        released.wait(30)
        return open_store(given, DerivedRow)

    writer = SearchLogWriter(conf, open_slow_table)
    assert writer.add(LogRow(new_search_id(), 0, search("q")))
    assert entered.wait(30)
    added = sum(writer.add(LogRow(new_search_id(), 0, search("q"))) for _ in range(2500))
    assert (added, writer.dropped) == (2000, 500)  # while the table is still waited for
    released.set()
    writer.close()
    assert len(keys(open_store(conf, DerivedRow))) == 2001
    assert not writer.add(LogRow(new_search_id(), 0, search("q")))


def test_unavailable_table_drops_rows_with_one_warning(conf: Configuration, capsys: pytest.CaptureFixture[str]) -> None:
    def open_broken_table(_: Configuration) -> DataStore[DerivedRow]:
        raise OSError("no disk")

    writer = SearchLogWriter(conf, open_broken_table)
    assert writer.add(LogRow(new_search_id(), 0, search("q")))
    writer.close()
    assert writer.dropped == 1
    assert capsys.readouterr().err.count("cannot write the search log (no disk)") == 1


FAILURES = {
    "disk full": OSError(errno.ENOSPC, "No space left on device"),
    "quota": StoreError("no space is left for the table"),
    "unavailable": StoreError("HBase does not respond"),
    "bug": ValueError("unexpected"),
}


@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES)
@pytest.mark.parametrize("step", ["open", "write", "prune"])
def test_entries_wait_until_table_can_be_written(
    conf: Configuration, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], step: str,
    failure: Exception,
) -> None:  # fmt: skip
    monkeypatch.setattr(search_log_writer, "RETRY_SECONDS", 0.01)
    failed, is_broken = threading.Semaphore(0), threading.Event()
    is_broken.set()

    def failing(work: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any) -> Any:
            if is_broken.is_set():
                failed.release()
                raise failure
            return work(*arguments)

        return run

    opened = failing(search_log_writer.open_log_store) if step == "open" else search_log_writer.open_log_store
    if step != "open":
        name = {"write": "write_rows", "prune": "delete_old_rows"}[step]
        monkeypatch.setattr(search_log_writer, name, failing(getattr(search_log_writer, name)))
    writer = SearchLogWriter(conf, opened)
    ids = [new_search_id() for _ in range(5)]
    rows = [LogRow(ids[0], 0, search("q")), LogRow(ids[0], 1, LoggedClick(position=1))]
    assert all(map(writer.add, rows))
    for _ in range(3):
        assert failed.acquire(timeout=30)
    later = [LogRow(each, 0, search("later")) for each in ids[1:]]
    assert all(map(writer.add, later))
    is_broken.clear()
    writer.close()
    assert writer.dropped == 0
    assert {*keys(open_store(conf, DerivedRow))} == {row.key for row in (*rows, *later)}
    said = capsys.readouterr().err
    assert said.count("cannot write the search log") == 1
    assert said.count("written again; 0 entries were dropped") == 1


def test_token_of_other_process_or_forged_or_expired_is_rejected(clock: list[int]) -> None:
    signer, token = ResultTokenSigner(), ResultToken(new_search_id(), 10, 10)
    text = signer.encode(token)
    assert len(text) <= result_token.MAX_TOKEN_LENGTH
    assert signer.decode(text) == token
    assert [token.has_position(each) for each in (0, 10, 11, 20, 21)] == [False, False, True, True, False]
    forged = text.replace(".10.10.", ".10.100.")
    for wrong in (
        "",
        "x",
        forged,
        text[:-1],
        text + "0",
        text.upper(),
        ResultTokenSigner().encode(token),
        "9" * 10_000,
    ):
        assert signer.decode(wrong) is None, wrong
    clock[0] += MS_PER_DAY
    assert signer.decode(text) == token
    clock[0] += 1
    assert signer.decode(text) is None


def test_session_hash_changes_every_day(clock: list[int]) -> None:
    hasher = SessionHasher()
    first = hasher.hash("abc")
    assert (len(first), hasher.hash("abc"), hasher.hash("")) == (16, first, "")
    assert first != SessionHasher().hash("abc")
    assert hasher.hash("x" * (search_logger.MAX_SESSION_LENGTH + 1)) == ""
    clock[0] += MS_PER_DAY
    assert hasher.hash("abc") not in ("", first)


def test_logger_is_off_by_default_and_bounds_its_entries(conf: Configuration) -> None:
    assert SearchLogger.from_conf(conf) is None
    conf.set("search.log", "true")
    logger = SearchLogger.from_conf(conf)
    assert logger is not None
    with closing(logger):
        assert logger.log_search("", 0, 0, [], "page") == ""
        token = logger.log_search("q" * 5000, 500, 20, ["k" * 3000] * 5, "api", "s")
        assert logger.log_click(token, 21, 10**12, "s")
        assert not logger.log_click(token, 20)
        assert not logger.log_click(token, 26)
        assert logger.log_search("none", 0, 0, [], "page") == ""
    found = [*read_searches(open_store(conf, DerivedRow))]
    assert {each.search.query for each in found} == {"q" * logged_search.MAX_QUERY_LENGTH, "none"}
    (logged,) = (each for each in found if each.search.total)
    assert (logged.search.shown, logged.search.ids, logged.search.source) == (5, ["k" * 3000] * 2, "api")
    assert [(click.position, click.dwell_ms) for click in logged.clicks] == [(21, MS_PER_DAY)]
    assert logged.clicks[0].session == logged.search.session != ""


def test_statistics_count_searches_clicks_and_positions(store: DataStore[DerivedRow], conf: Configuration) -> None:
    rows = []

    def add(logged: LoggedSearch, *clicks: LoggedClick) -> None:
        search_id = new_search_id()
        rows.append(LogRow(search_id, 0, logged))
        rows.extend(LogRow(search_id, click.position, click) for click in clicks)

    add(search("Web  Crawler", session="a"), LoggedClick(position=1, dwell_ms=2000, session="a"))
    add(search("web crawler"), LoggedClick(position=2), LoggedClick(position=3, dwell_ms=4000))
    add(search("web crawler"))
    add(search("web crawler", start=10), LoggedClick(position=12))
    add(search("unclicked", session="b"))
    add(search("nothing", total=0))
    add(search("nothing", total=0))
    write_rows(store, rows)
    quality = read_search_quality(conf, 1, 10)
    assert (quality.searches, quality.queries, quality.sessions, quality.without_hits) == (6, 3, 2, 2)
    assert (quality.clicked, quality.clicks, quality.click_through) == (2, 4, 0.5)
    assert (quality.mean_click_position, quality.median_dwell_ms) == (4.5, 3000)
    frequent = [(each.query.casefold(), each.searches, each.clicked) for each in quality.frequent]
    assert [frequent[0][1:], frequent[1], frequent[2]] == [(3, 2), ("nothing", 2, 0), ("unclicked", 1, 0)]
    assert [each.query for each in quality.no_hits] == ["nothing"]
    assert [each.query for each in quality.no_clicks] == ["unclicked"]
    assert read_search_quality(conf, 1, 1).frequent == quality.frequent[:1]
    assert read_search_quality(conf, 1, 10, "api").searches == 0
    assert measure_search_quality([], 1, 10).click_through is None


def test_search_time_is_that_of_the_id(clock: list[int]) -> None:
    assert search_time(new_search_id()) == clock[0]
