"""Truncated or changed files of a table are rejected or named; no signal, no silent loss."""

import base64
import json
import random
import threading

import lmdb
import msgspec
import pytest

from nutch2py.cli import main
from nutch2py.conf.configuration import Configuration
from nutch2py.errors import StoreError
from nutch2py.records.webpage import WebPage
from nutch2py.table import TableQuery, open_store
from nutch2py.table.embedded import blobs
from nutch2py.table.embedded.storage import migrations, packing
from nutch2py.table.embedded.storage.lmdb_pages import DamagedFileError, PageFile, check_complete

from .store_suite import page_at, write

LONG = "com.long:http/" + "p" * 600


def opened(folder, name=None):
    return open_store(Configuration({"storage.embedded.map.size": str(1 << 30)}), WebPage, f"embedded:{folder}", name)


def pages(count=60, size=3_000):
    made = {}
    for number in range(count):
        page = page_at(number)
        page.text, page.title = f"text {number} " * 20, f"title {number}"
        page.content = random.Random(number).randbytes(size) if number % 2 else b"<p>compressible</p>" * 50
        made[f"k{number:05d}"] = page
    made[LONG] = page_at(1)
    return made


@pytest.fixture
def folder(tmp_path):
    store = opened(tmp_path)
    store.create()
    write(store, pages())
    write(store, {"k00003": page_at(7)})
    store.close()
    return tmp_path


def cut(path, how):
    size = path.stat().st_size
    keep = {"half": size // 2 + 77, "a byte": size - 1, "a page": size - 4096, "all": 0, "meta pages": 5000}[how]
    path.write_bytes(path.read_bytes()[:keep])


@pytest.mark.parametrize("name", ["meta", "content"])
@pytest.mark.parametrize("how", ["half", "a byte", "a page", "all", "meta pages"])
def test_truncated_file_is_rejected_by_every_command(folder, name, how, capsys):
    path = folder / "webpage" / name / "data.mdb"
    cut(path, how)
    for command in (["readdb", "-stats"], ["parse", "-all"], ["updatedb", "-all"], ["exporttable", str(folder / "x")]):
        assert main([*command, "-D", f"storage.data.store=embedded:{folder}"]) == 4
        output = capsys.readouterr().err
        assert str(path) in output
        assert "exporttable -salvage" in output
    assert path.stat().st_size < 1 << 20, "nothing was made longer by opening it"


@pytest.mark.parametrize("name", ["meta", "content"])
def test_missing_file_is_not_an_empty_table(folder, name, capsys, tmp_path):
    (folder / "webpage" / name / "data.mdb").unlink()
    seeds = tmp_path / "seeds"
    seeds.write_text("http://a.org/\n")
    assert main(["inject", str(seeds), "-D", f"storage.data.store=embedded:{folder}"]) == 4
    assert f"{name}/data.mdb is missing" in capsys.readouterr().err
    opened(folder).drop()
    assert not opened(folder).exists()


@pytest.mark.parametrize("at", [16, 20, 8, 10, 40, 4096 + 16, 4096 + 40])
def test_torn_meta_page_is_rejected(folder, at):
    path = folder / "webpage" / "meta" / "data.mdb"
    data = bytearray(path.read_bytes())
    data[at : at + 8] = b"\xff" * 8
    path.write_bytes(data)
    with pytest.raises(StoreError, match=r"webpage in|another version"):
        opened(folder).get("k00001")


def test_sound_file_shorter_than_last_page_is_accepted(tmp_path):
    """Pages that one transaction allocates and frees are never written: they may be after the end of the file."""
    path = tmp_path / "data.mdb"
    with lmdb.open(str(tmp_path), map_size=1 << 26) as environment:
        for number in range(300):
            with environment.begin(write=True) as txn:
                txn.put(b"%03d" % number, b"x" * 5_000)
        for number in range(5, 300):
            with environment.begin(write=True) as txn:
                txn.delete(b"%03d" % number)
        for _ in range(20):
            with environment.begin(write=True) as txn:
                txn.put(b"001", b"y" * 5_000)
    with PageFile(path) as file:
        file.select_meta(file.current_meta())
        free, last = file.free_pages(), file.meta.last_page
    first = next(page for page in range(last, 1, -1) if page not in free) + 1
    assert first < last, "the last page is in use: this would show nothing"
    whole = path.read_bytes()
    path.write_bytes(whole[: first * 4096])
    check_complete(path)
    with lmdb.open(str(tmp_path), map_size=1 << 26) as environment, environment.begin() as txn:
        assert [(key, value[:1]) for key, value in txn.cursor()] == [(b"00%d" % n, b"xyxxx"[n:][:1]) for n in range(5)]
    path.write_bytes(whole[: (first - 1) * 4096])
    with pytest.raises(DamagedFileError, match="it was truncated"):
        check_complete(path)


def change(path, bytes_there):
    """Change one bit in every copy of some bytes of a file."""
    data = bytearray(path.read_bytes())
    at = data.find(bytes_there)
    assert at >= 0
    while at >= 0:
        data[at + len(bytes_there) // 2] ^= 1
        at = data.find(bytes_there, at + 1)
    path.write_bytes(data)


def test_damaged_cell_raises_and_checktable_names_row(folder, capsys):
    change(folder / "webpage" / "meta" / "data.mdb", b"text 41 text 41")
    store = opened(folder)
    page = store.get("k00041", {WebPage.text, WebPage.status})
    assert page.status == 2, "another family is as sound as before"
    with pytest.raises(StoreError, match=r"checksum .*run checktable to list the damage.*exporttable -salvage"):
        _ = page.text
    changing = store.get("k00040")
    changing.text = "new"
    write(store, {"k00040": changing})
    with pytest.raises(StoreError, match="checksum"), store.batch() as batch:
        batch.put("k00041", page_with_title("no checksum may be written over the damage"))
    store.close()
    option = ["-D", f"storage.data.store=embedded:{folder}"]
    assert main(["checktable", *option]) == 4
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "webpage: meta/data.mdb: row k00041: p: the checksum of a row's cells is wrong"
    assert lines[1] == f"checktable: webpage: {len(pages())} rows, {lines[1].split()[4]} cells: 1 problems"


def page_with_title(title):
    page = WebPage(fields=frozenset())
    page.title = title
    return page


@pytest.mark.parametrize("number", [40, 41])
def test_damaged_content_raises_and_checktable_counts_it(folder, number, capsys):
    stored = blobs.compress(pages()[f"k{number:05d}"].content)
    assert stored[:1] == (b"\2" if number % 2 else b"\1"), "both forms are tried"
    change(folder / "webpage" / "content" / "data.mdb", stored)
    store = opened(folder)
    with pytest.raises(StoreError, match=f"row k000{number if number % 2 else '..'}: "):
        list(store.scan(TableQuery.for_fields({WebPage.content})))
    store.close()
    assert main(["checktable", "-D", f"storage.data.store=embedded:{folder}"]) == 4
    assert "content/data.mdb: content " in capsys.readouterr().out


def test_missing_content_raises_instead_of_waiting(folder, capsys):
    store = opened(folder)
    with store.get_files().content.begin(write=True) as txn:
        txn.delete((5).to_bytes(8))
    with pytest.raises(StoreError, match=r"row k00005: its content is missing"):
        list(store.scan(TableQuery.for_fields({WebPage.content})))
    with pytest.raises(StoreError, match=r"row k00005: its content is missing"):
        store.get("k00005")
    store.close()
    assert main(["checktable", "-D", f"storage.data.store=embedded:{folder}"]) == 4
    assert "row k00005: its content: it is missing" in capsys.readouterr().out


def test_salvage_keeps_readable_rows(folder, tmp_path, capsys):
    option = ["-D", f"storage.data.store=embedded:{folder}"]
    before = dict(opened(folder).scan_cells())
    opened(folder).close()
    cut(folder / "webpage" / "content" / "data.mdb", "half")
    assert main(["exporttable", "-salvage", str(tmp_path / "saved.gz"), *option]) == 0
    assert "its content" in capsys.readouterr().out
    other = f"storage.data.store=embedded:{tmp_path / 'other'}"
    assert main(["importtable", str(tmp_path / "saved.gz"), "-D", other]) == 0
    after = dict(opened(tmp_path / "other").scan_cells())
    assert after.keys() == before.keys()
    lost = [key for key in before if before[key] != after[key]]
    assert 0 < len(lost) < len(before)
    for key in lost:
        del before[key][b"f"][b"cnt"]
    assert after == before


def test_layout_1_table_is_readable_and_writable(tmp_path, monkeypatch):
    with monkeypatch.context() as older:
        older.setattr(packing, "_add_checksum", msgspec.msgpack.Encoder().encode)
        older.setattr(migrations, "LAYOUT_VERSION", 1)
        older.setattr(blobs, "compress", lambda value: b"\0" + value)
        store = opened(tmp_path)
        store.create()
        write(store, pages())
        before = list(store.scan_cells())
        store.close()
    path = tmp_path / "webpage" / "meta" / "data.mdb"
    assert b"\xc1" not in {value[:1] for value in values(path, b"p")}
    store = opened(tmp_path)
    assert list(store.scan_cells()) == before
    assert version(store) == b"2", "a program that knows no checksums must not open it any more"
    write(store, {"k00001": page_at(3)})
    assert store.get("k00001").markers["dist"] == "3"
    assert store.get("k00002").content == pages()["k00002"].content
    assert len(list(store.check(pytest.fail))) == len(before)
    store.close()


def values(path, family):
    with PageFile(path) as file:
        file.select_meta(file.current_meta())
        return [value for _, value in file.entries(file.databases(pytest.fail)[family], pytest.fail)]


def version(store):
    files = store.get_files()
    with files.read_transaction() as txn:
        return files.get_state(txn, b"version")


def test_checktable_during_concurrent_write_reports_sound(folder):
    store, writer = opened(folder), opened(folder)
    stop = threading.Event()

    def work():
        number = 0
        while not stop.is_set():
            write(writer, {f"k{number % 90:05d}": page_at(number)})
            number += 1

    thread = threading.Thread(target=work)
    thread.start()
    try:
        for _ in range(10):
            rows = dict(store.check(pytest.fail))
            assert set(pages()) <= set(rows)
    finally:
        stop.set()
        thread.join()
    before = list(store.scan_cells())
    found = list(store.check(pytest.fail))
    assert [key for key, _ in found] == [key for key, _ in before]
    assert [cells[b"mk"] for _, cells in found] == [cells[b"mk"] for _, cells in before]
    store.close()
    writer.close()


def test_single_byte_change_causes_at_most_a_note(folder):
    """Files with changed pages are read without LMDB: nothing but notes comes of it."""
    path = folder / "webpage" / "meta" / "data.mdb"
    whole, chance, noted = path.read_bytes(), random.Random(5), 0
    for _ in range(150):
        data = bytearray(whole)
        at = chance.randrange(len(data))
        data[at] ^= 1 << chance.randrange(8)
        path.write_bytes(data)
        notes = []
        for _, cells in opened(folder).salvage(notes.append):
            assert cells
        noted += bool(notes)
    assert noted > 20


def test_checktable_counts_foreign_cells(folder, tmp_path, capsys):
    cells = {"f:st": [base64.b64encode(b"\0\2").decode(), 5]}
    store = opened(folder)
    with store.batch() as batch:
        batch.put_cells("k00002", {b"f": {b"st": (b"\0\2", 1 << 60)}})
    store.close()
    option = ["-D", f"storage.data.store=embedded:{folder}"]
    assert main(["checktable", *option]) == 4
    assert "webpage: row k00002: f:st: 2 bytes where an int has 4" in capsys.readouterr().out
    lines = [json.dumps({"row": f"r{number}", "cells": {}}) for number in range(20)]
    (tmp_path / "dump").write_text("\n".join([*lines, json.dumps({"row": "b", "cells": cells})]) + "\n")
    assert main(["importtable", str(tmp_path / "dump"), *option]) == 0
    output = capsys.readouterr()
    assert "line 21: row b: f:st: 2 bytes where an int has 4: cell skipped" in output.err
    assert output.out.splitlines()[-1].endswith("skipped: 0 lines, 1 cells")


def test_damaged_row_byte_never_ends_job():
    """Changed bits of packed cells are reported as damage, or the result still is cells: bytes with times."""
    whole = packing._pack(1_795_340_000_000, {b"dist": b"23", b"_gnmrk_": b"b-1"}, {b"dist": 1_795_340_000_001})
    damaged = 0
    for at in range(len(whole)):
        for value in range(256):
            changed = whole[:at] + bytes([value]) + whole[at + 1 :]
            try:
                cells = packing.unpack_cells(changed)
            except packing.DamagedCellsError:
                damaged += 1
                continue
            assert all(type(cell) is bytes and type(time) is int for cell, time in cells.values())
    assert damaged > 200 * len(whole)
