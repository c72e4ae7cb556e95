"""Crawls of earlier versions open in this one, and every job continues them; later layouts are rejected."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from nutch2py import Crawl
from nutch2py.backends.embedded_index.index_directory import SCHEMA_VERSION, IndexDirectory
from nutch2py.cli import main
from nutch2py.conf.configuration import Configuration
from nutch2py.errors import IndexingError, InputError, StoreError
from nutch2py.search.engines.embedded_searcher import EmbeddedSearcher
from nutch2py.search.query.query_plan import SearchOptions
from nutch2py.table.embedded.storage import migrations, table_files
from nutch2py.table.embedded.storage.migrations import LayoutMigration
from nutch2py.table.embedded.storage.table_files import STATE_DATABASE, VERSION, TableFiles
from nutch2py.version import __version__
from tests.upgrade.kept import HERE, SETTINGS, URL, WAITING, answers, unpack, versions

VERSIONS = versions()
TABLES = ("webpage", "host", "batch")


def test_current_version_is_archived_and_archives_are_small() -> None:
    assert __version__ in VERSIONS
    kept = [HERE / f"{version}{suffix}" for version in VERSIONS for suffix in (".tar.xz", ".json")]
    assert sum(path.stat().st_size for path in kept) < 200_000


@pytest.mark.parametrize("version", VERSIONS)
def test_every_job_continues_crawl_of_older_version(tmp_path: Path, version: str) -> None:
    expected = json.loads((HERE / f"{version}.json").read_text(encoding="utf-8"))
    report = json.loads(json.dumps(answers(unpack(version, tmp_path))))
    assert report.keys() == expected.keys()
    for job, counters in report["jobs"].items():  # which may count more by now
        report["jobs"][job] = {group: _of(counters[group], names) for group, names in expected["jobs"][job].items()}
    for each in report:
        assert report[each] == expected[each], each
    assert expected["generated"], "a batch was made"
    assert expected["troubles"] == 0


def _of(counters: dict[str, int], names: Mapping[str, int]) -> dict[str, int]:
    return {name: count for name, count in counters.items() if name in names}


@pytest.mark.parametrize("version", VERSIONS)
def test_commands_read_crawl_of_older_version(tmp_path: Path, version: str, capsys: pytest.CaptureFixture[str]) -> None:
    where = [
        "-D",
        f"storage.data.store=embedded:{unpack(version, tmp_path)}",
        "-D",
        f"storage.embedded.map.size={1 << 30}",
    ]
    shown = {
        "readdb -stats": "TOTAL urls",
        f"readdb -url {URL}0": "Page 0",
        "readdb -batches": WAITING,
        "readhostdb": "127.0.0.1",
        "checktable": "sound",
        "search text": "Text",
    }
    for words, text in shown.items():
        assert main([*words.split(), *where]) == 0, words
        assert text in capsys.readouterr().out, words


@contextmanager
def writing(table: Path) -> Iterator[tuple[Any, dict[bytes, Any]]]:
    """Give a write transaction of a table, whatever its layout, and its handles."""
    opened = table_files.acquire(table, 1 << 30, str(table))
    try:
        with opened.write_transaction() as (txn, handles):
            yield txn, handles
    finally:
        table_files.release(opened)


def layout_of(table: Path) -> bytes:
    with writing(table) as (txn, handles):
        return bytes(txn.get(VERSION, db=handles[STATE_DATABASE]) or b"")


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    return unpack(__version__, tmp_path)


def test_layout_version_is_stored_in_files(tables: Path) -> None:
    assert {layout_of(tables / name) for name in TABLES} == {str(migrations.LAYOUT_VERSION).encode()}
    assert isinstance(json.loads((tables / "index" / "index.json").read_text())["schema"], int)


def test_older_layout_is_migrated_on_open(tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two registered steps, taken in order, in one transaction, once; the log says so."""
    taken: list[str] = []

    def step(name: str) -> LayoutMigration:
        def apply(_: TableFiles, txn: Any, handles: Mapping[bytes, Any]) -> None:
            taken.append(name)
            txn.put(name.encode(), b"done", db=handles[STATE_DATABASE])

        return LayoutMigration(apply, f"the {name} step")

    now = migrations.LAYOUT_VERSION
    monkeypatch.setattr(
        migrations, "MIGRATIONS", {**migrations.MIGRATIONS, now: step("first"), now + 1: step("second")}
    )
    monkeypatch.setattr(migrations, "LAYOUT_VERSION", now + 2)
    warnings: list[str] = []
    with Crawl(f"embedded:{tables}", SETTINGS, on_warning=warnings.append) as crawl:
        assert crawl.page(f"{URL}0") is not None
        assert crawl.stats().total > 0
    of_webpage = [text for text in warnings if text.startswith("webpage in ")]
    assert [text.partition(": ")[2] for text in of_webpage] == ["the first step", "the second step"]
    assert f"migrated from layout {now} to {now + 1}" in of_webpage[0]
    assert taken == ["first", "second"] * (len(warnings) // 2)
    assert layout_of(tables / "webpage") == str(now + 2).encode()


def test_failed_migration_step_leaves_table_unchanged(tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_: TableFiles, txn: Any, handles: Mapping[bytes, Any]) -> None:
        txn.put(b"half", b"done", db=handles[STATE_DATABASE])
        raise StoreError("the disk is full: free some space")

    now = migrations.LAYOUT_VERSION
    with monkeypatch.context() as later:
        later.setattr(migrations, "MIGRATIONS", {**migrations.MIGRATIONS, now: LayoutMigration(fails, "never said")})
        later.setattr(migrations, "LAYOUT_VERSION", now + 1)
        with Crawl(f"embedded:{tables}", SETTINGS) as crawl, pytest.raises(StoreError, match="disk is full"):
            crawl.stats()
    assert layout_of(tables / "webpage") == str(now).encode()
    with writing(tables / "webpage") as (txn, handles):
        assert txn.get(b"half", db=handles[STATE_DATABASE]) is None


def test_every_older_layout_has_a_migration_step() -> None:
    assert sorted(migrations.MIGRATIONS) == list(range(1, migrations.LAYOUT_VERSION))


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (b"9", r"webpage in .* has layout 9, which a later version of nutch2py made; .*exporttable.*importtable"),
        (b"0", r"webpage in .* has layout 0, which is none of nutch2py's .*: restore it"),
        (b"\xff", r"webpage in .* has layout .*, which is none of nutch2py's"),
    ],
)  # fmt: skip
def test_unsupported_layout_is_rejected(tables: Path, number: bytes, said: str) -> None:
    with writing(tables / "webpage") as (txn, handles):
        txn.put(VERSION, number, db=handles[STATE_DATABASE])
    with Crawl(f"embedded:{tables}", SETTINGS) as crawl:
        for job in (crawl.stats, crawl.generate, lambda: crawl.updatedb(WAITING)):
            with pytest.raises(StoreError, match=said):
                job()
    assert layout_of(tables / "webpage") == number


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (9, r"the index .* has layout 9, which a later version of nutch2py made; .*install the later version"),
        (0, r"the index .* has layout 0, that of an earlier version .*: rebuild it with index -reindex"),
    ],
)
def test_index_of_other_layout_is_rejected_until_rebuilt(tables: Path, number: int, said: str) -> None:
    path = tables / "index" / "index.json"
    ours = json.loads(path.read_text())
    path.write_text(json.dumps({**ours, "schema": number}))
    warnings: list[str] = []
    with Crawl(f"embedded:{tables}", SETTINGS, on_warning=warnings.append) as crawl:
        with pytest.raises(IndexingError, match=said):
            crawl.search("text")
        crawl.parse(WAITING)
        crawl.updatedb(WAITING)
        with pytest.raises(IndexingError, match=said):
            crawl.index(WAITING)
        crawl.index("-reindex")
        assert crawl.search("text").total > 0
    assert any(f"has layout {number}" in text and "rebuilding it" in text for text in warnings)
    assert json.loads(path.read_text()) == IndexDirectory(path.parent / "new", Configuration.load()).version_record


def test_index_of_0_1_0_is_used_with_its_analyzer_until_rebuilt(tmp_path: Path) -> None:
    tables = unpack("0.1.0", tmp_path)
    path = tables / "index" / "index.json"
    ours = json.loads(path.read_text())
    assert ours == {"schema": 1, "analysis": "1"}
    with Crawl(f"embedded:{tables}", SETTINGS) as crawl:
        before = crawl.search("text").total
        crawl.parse(WAITING)
        crawl.updatedb(WAITING)
        crawl.index(WAITING)
        assert json.loads(path.read_text()) == ours
        assert crawl.search("text").total >= before > 0
        with pytest.raises(InputError, match="cannot sort by date: run index -reindex"):
            EmbeddedSearcher(crawl.conf).search("text", options=SearchOptions(newest_first=True))
        crawl.index("-reindex")
        assert json.loads(path.read_text())["schema"] == SCHEMA_VERSION
        assert crawl.search("text").total >= before
        assert EmbeddedSearcher(crawl.conf).search("text", options=SearchOptions(newest_first=True)).total >= before
