"""Mapped memory of a table's files is bounded in processes that read them."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.records.webpage import WebPage
from nutch2py.table import DataStore, KeyRange, TableQuery, open_store
from nutch2py.table.due_index import TimeSpan
from nutch2py.table.embedded.storage import resident_pages
from nutch2py.table.embedded.storage.resident_pages import MappedFiles
from nutch2py.table.embedded.storage.table_files import discard

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere mapped memory cannot be read")
ROWS, TEXT = 3_000, "text of a page " * 300
MEGABYTE = 1 << 20


@pytest.fixture
def table(conf: Configuration) -> DataStore[WebPage]:
    """A table of 13 MB of text, 24 MB of file."""
    store = open_store(conf, WebPage)
    store.create()
    with store.batch() as batch:
        for number in range(ROWS):
            page = WebPage({}, frozenset())
            page.text, page.title = TEXT, str(number)
            batch.put(f"com.example.www:http/{number:06d}", page)
    return store


def mapped_bytes(store: DataStore[WebPage]) -> int:
    """Return how much of the file of rows this process holds, as reported by the kernel."""
    inode = str((Path(store.location.partition(":")[2]) / store.name / "meta" / "data.mdb").stat().st_ino)
    held, counts = 0, False
    for line in Path("/proc/self/smaps").read_text(encoding="utf-8", errors="replace").splitlines():
        words = line.split()
        if "-" in words[0]:
            counts = words[4] == inode
        elif counts and words[0] == "Rss:":
            held += int(words[1]) * 1024
    return held


def read(store: DataStore[WebPage]) -> int:
    """Scan all rows in steps; return the peak of mapped memory."""
    most = 0
    for number, (_, page) in enumerate(store.scan(TableQuery(frozenset({WebPage.text, WebPage.title})))):
        assert (page.text, page.title) == (TEXT, str(number))
        if number % 100 == 0:
            most = max(most, mapped_bytes(store))
    assert number == ROWS - 1
    return most


def bounded(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(resident_pages, "MAX_MAPPED_BYTES", most)
    monkeypatch.setattr(resident_pages, "READS_PER_CHECK", 1)
    monkeypatch.setattr("nutch2py.table.embedded.row_reader.CHUNK_ROWS", 100)


def test_scan_releases_mapped_pages_above_limit(table: DataStore[WebPage], monkeypatch: pytest.MonkeyPatch) -> None:
    bounded(monkeypatch, 0)
    held = read(table)
    bounded(monkeypatch, 1 << 40)
    assert held < read(table) / 2
    assert mapped_bytes(table) > 5 * MEGABYTE


def test_gets_and_writes_release_mapped_pages(table: DataStore[WebPage], monkeypatch: pytest.MonkeyPatch) -> None:
    def get() -> None:
        assert table.get("com.example.www:http/000007", {WebPage.title}) is not None

    def write() -> None:
        page = WebPage({}, frozenset())
        page.title = "new"
        with table.batch() as batch:
            batch.put("com.example.www:http/000008", page)

    for step in (get, write):
        bounded(monkeypatch, 1 << 40)
        read(table)
        assert mapped_bytes(table) > 5 * MEGABYTE
        bounded(monkeypatch, 0)
        step()
        assert mapped_bytes(table) < MEGABYTE


def test_random_rows_release_pages_within_transaction(
    table: DataStore[WebPage], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One group of writes, or of gets, may meet every page of a table."""
    keys, held, look = (
        [f"com.example.www:http/{number:06d}" for number in range(ROWS)],
        list[int](),
        MappedFiles.release_if_many,
    )

    def looked(files: MappedFiles, places: int) -> None:
        held.append(mapped_bytes(table))
        look(files, places)

    def write() -> None:
        with table.batch() as batch:
            for key in keys:
                page = WebPage({}, frozenset())
                page.title, page.fetch_time, page.score = "new", 1, 0.5
                batch.put(key, page)

    def get() -> None:
        assert [page and page.title for page in table.get_many(keys, {WebPage.title, WebPage.text})] == ["new"] * ROWS

    def delete() -> None:
        with table.batch() as batch:
            for key in keys:
                batch.delete(key)

    monkeypatch.setattr(MappedFiles, "release_if_many", looked)
    monkeypatch.setattr("nutch2py.table.embedded.row_reader.POINT_READS", 500)
    monkeypatch.setattr(resident_pages, "PIECE_READS", 500)
    bounded(monkeypatch, 0)
    for step in (write, get, delete):
        held.clear()
        step()
        assert max(held) < 9 * MEGABYTE  # and 24 in all
    assert list(table.keys(KeyRange())) == []


def test_due_count_releases_pages(table: DataStore[WebPage], monkeypatch: pytest.MonkeyPatch) -> None:
    with table.batch() as batch:
        for number in range(ROWS):
            page = WebPage({}, frozenset())
            page.fetch_time = number
            batch.put(f"com.example.www:http/{number:06d}", page)
    looks, look = list[int](), MappedFiles.release_if_many
    monkeypatch.setattr(
        MappedFiles, "release_if_many", lambda files, places: (looks.append(places), look(files, places))
    )
    monkeypatch.setattr("nutch2py.table.embedded.embedded_due_index.CHUNK", 1_000)
    assert table.due_index().count([TimeSpan(0, ROWS)], 10 * ROWS) == ROWS
    assert looks.count(resident_pages.PIECE_READS) == 3


def test_concurrent_reader_thread_continues(table: DataStore[WebPage], monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages go while a transaction of another thread is open: it maps them again."""
    bounded(monkeypatch, 0)
    failures: list[BaseException] = []

    def guarded(work: Callable[[], object]) -> Callable[[], None]:
        def run() -> None:
            try:
                work()
            except BaseException as error:  # noqa: BLE001 - reported to the test
                failures.append(error)

        return run

    def write() -> None:
        for _ in range(20):
            page = WebPage({}, frozenset())
            page.text = TEXT
            with table.batch() as batch:
                batch.put("com.example.www:http/000008", page)

    threads = [threading.Thread(target=guarded(work)) for work in (lambda: read(table), write, lambda: read(table))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_unsupported_platform_releases_nothing(table: DataStore[WebPage], monkeypatch: pytest.MonkeyPatch) -> None:
    def silent(*_: object, **__: object) -> object:
        raise FileNotFoundError

    monkeypatch.setattr(resident_pages, "open", silent, raising=False)
    bounded(monkeypatch, 0)
    assert resident_pages.mapped_bytes() == 0
    assert table.get("com.example.www:http/000007", {WebPage.title}) is not None


def test_table_is_not_closed_while_pages_are_released(
    table: DataStore[WebPage], conf: Configuration, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else other memory could be mapped where its file was, and be emptied."""
    asked, closed, at_once = threading.Event(), threading.Event(), list[bool]()
    spans = resident_pages.MappedFiles.address_ranges

    def close() -> None:
        asked.set()
        discard(Path(table.location.partition(":")[2]) / table.name)
        closed.set()

    def slow(files: resident_pages.MappedFiles) -> Iterator[tuple[int, int]]:
        found = [*spans(files)]
        if not asked.is_set():
            thread.start()
            asked.wait(30)
            at_once.append(closed.wait(0.3))
        yield from found

    thread = threading.Thread(target=close)
    bounded(monkeypatch, 0)
    monkeypatch.setattr(resident_pages.MappedFiles, "address_ranges", slow)
    assert table.get("com.example.www:http/000007", {WebPage.title}) is not None
    thread.join()
    assert at_once == [False]
    page = open_store(conf, WebPage).get("com.example.www:http/000007", {WebPage.title})
    assert page is not None
    assert page.title == "7"


def test_foreign_mapped_files_do_not_cause_repeated_release(
    table: DataStore[WebPage], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An index that is mapped, too, would have every transaction look for pages that are not there."""
    held, looks = [300], list[int]()
    monkeypatch.setattr(resident_pages, "READS_PER_CHECK", 1)
    monkeypatch.setattr(resident_pages, "mapped_bytes", lambda: held[0] * MEGABYTE)
    monkeypatch.setattr(resident_pages.MappedFiles, "address_ranges", lambda _: looks.append(1) or ())
    for _ in range(10):
        assert table.get("com.example.www:http/000007", {WebPage.title}) is not None
    assert len(looks) == 1
    for held[0], times in ((550, 1), (560, 2), (10, 2), (270, 3)):
        assert table.get("com.example.www:http/000007", {WebPage.title}) is not None
        assert len(looks) == times


def test_missing_smaps_does_not_fail(table: DataStore[WebPage], monkeypatch: pytest.MonkeyPatch) -> None:
    def silent(_: resident_pages.MappedFiles) -> Iterator[tuple[int, int]]:
        raise PermissionError

    bounded(monkeypatch, 0)
    monkeypatch.setattr(resident_pages.MappedFiles, "address_ranges", silent)
    assert table.get("com.example.www:http/000007", {WebPage.title}) is not None
