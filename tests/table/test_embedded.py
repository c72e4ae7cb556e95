"""Embedded store: the contract of every store, and its own folders, forks, threads and key sample."""

import os
import random
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError, StoreError
from nutch2py.jobs.batches.batch_lists import BatchListStore
from nutch2py.jobs.batches.update_journal import delete_journal
from nutch2py.records.webpage import DerivedRow, WebPage
from nutch2py.table import KeyRange, TableQuery, open_store
from nutch2py.table.embedded.storage import packing, table_files

from .store_suite import StoreSuite, page_at, write


@pytest.fixture
def make_store(tmp_path):
    opened = []

    def make(record, name, **properties):
        conf = Configuration({name.replace("_", "."): str(value) for name, value in properties.items()})
        opened.append(open_store(conf, record, f"embedded:{tmp_path / 'crawl'}", name))
        return opened[-1]

    yield make
    for store in opened:
        store.close()


class TestEmbeddedStore(StoreSuite):
    @pytest.fixture
    def make_store(self, make_store):
        return make_store


@pytest.fixture
def store(make_store):
    store = make_store(WebPage, "webpage")
    store.create()
    return store


def test_relative_and_home_folders_are_resolved(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for location, folder in (("embedded:here", "here"), ("embedded:~/there", "there")):
        store = open_store(Configuration(), WebPage, location)
        store.create()
        store.close()
        assert (tmp_path / folder / "webpage" / "meta" / "data.mdb").is_file()


def test_crawl_id_is_part_of_table_name(tmp_path):
    conf = Configuration({"storage.data.store": f"embedded:{tmp_path}", "storage.crawl.id": "test"})
    assert open_store(conf, WebPage).name == "test_webpage"


@pytest.mark.parametrize("name", ["a/b", "..", ".x", "", "a b"])
def test_invalid_table_names_are_rejected(tmp_path, name):
    conf = Configuration({"storage.schema.webpage": name})
    with pytest.raises(ConfigurationError, match="name of a table"):
        open_store(conf, WebPage, f"embedded:{tmp_path}", name or " ")


def test_location_without_folder_is_rejected():
    with pytest.raises(ConfigurationError, match="embedded:FOLDER"):
        open_store(Configuration(), WebPage, "embedded:")


def test_shared_mutation_on_many_rows_is_independent(store):
    page, other = page_at(), WebPage()
    page.fetch_time = 1
    alike = page.mutation()
    other.fetch_time, other.markers = 2, {"_x_": "y"}
    with store.batch() as batch:
        for key in "abcde":
            batch.mutate(key, alike)
        for _ in range(3):
            batch.mutate("b", other.mutation())
        batch.delete("c")
        batch.mutate("d", alike, 1)  # older than what the same batch has put
        batch.mutate("f", alike, 1_000)
    times = {key: page.fetch_time for key, page in store.scan(TableQuery(frozenset({WebPage.fetch_time})))}
    assert times == {"a": 1, "b": 2, "d": 1, "e": 1, "f": 1}
    assert [key for key, page in store.scan(TableQuery()) if "_x_" in page.markers] == ["b"]
    with store.batch() as batch:
        batch.mutate("a", other.mutation(), 1_000)  # older than the row
        batch.mutate("f", other.mutation(), 1_001)
    assert [store.get(key).fetch_time for key in "af"] == [1, 2]


def test_batch_flushes_by_rows_and_bytes(make_store):
    by_rows = make_store(WebPage, "webpage", gora_buffer_write_limit=3)
    by_rows.create()
    batch = by_rows.batch()
    for key in "abcd":
        batch.put(key, page_at())
    assert [key for key, _ in by_rows.scan(TableQuery())] == ["a", "b", "c"]
    by_bytes = make_store(WebPage, "b_webpage", storage_buffer_write_bytes=1_000)
    by_bytes.create()
    batch = by_bytes.batch()
    for key in "ab":
        page = WebPage()
        page.content = os.urandom(600)
        batch.put(key, page)
    assert [key for key, _ in by_bytes.scan(TableQuery())] == ["a", "b"]


def test_replaced_contents_are_deleted_at_next_flush(store):
    for round_ in range(3):
        for key in "abc":
            page = WebPage(fields=frozenset())
            page.content = f"{key}{round_}".encode() * 100
            write(store, {key: page})
    page = WebPage(fields=frozenset())
    page.status = 2
    write(store, {"a": page})
    table = store.get_files()
    assert table.content.stat()["entries"] == 3
    assert [page.content[:2] for _, page in store.scan(TableQuery.for_fields([WebPage.content]))] == [
        b"a2",
        b"b2",
        b"c2",
    ]


def test_contents_replaced_during_scan_are_read_again(store):
    def contents(letter):
        page = WebPage(fields=frozenset())
        page.content = letter * 400
        return page

    keys = [f"k{i:03d}" for i in range(600)]
    write(store, {key: contents(b"a") for key in keys})
    scan = store.scan(TableQuery.for_fields([WebPage.content]))
    first = next(scan)
    write(store, {key: contents(b"b") for key in keys})
    write(store, {"other": contents(b"c")})
    with store.batch() as batch:
        batch.delete(keys[5])
    rest = list(scan)
    assert first[1].content == b"a" * 400
    assert {page.content for _, page in rest} <= {b"a" * 400, b"b" * 400, b"c" * 400}
    assert [key for key, _ in rest if key not in (keys[5], "other")] == [k for k in keys[1:] if k != keys[5]]


def test_random_writes_equal_dictionary(store):
    """Puts, deletes and long keys in random order leave what a plain dictionary would hold."""
    rng = random.Random(7)
    heads = ["com.a:http/", "com.a:http/" + "x" * 489, "com.a:http/" + "x" * 600, "com.b:http/"]
    model = {}
    for _ in range(60):
        with store.batch() as batch:
            touched = set()
            for _ in range(20):
                key = rng.choice(heads) + "".join(rng.choice("ab\x01中") for _ in range(rng.randrange(4)))
                if key in touched:
                    continue
                touched.add(key)
                if rng.random() < 0.3:
                    batch.delete(key)
                    model.pop(key, None)
                else:
                    page = WebPage(fields=frozenset())
                    depth = rng.randrange(1000)
                    page.markers["dist"], page.content = str(depth), b"c" * depth
                    batch.put(key, page)
                    model[key] = (str(depth), depth)
    read = {
        k: (p.markers["dist"], len(p.content))
        for k, p in store.scan(TableQuery.for_fields([WebPage.markers, WebPage.content]))
    }
    assert read == model
    assert list(read) == sorted(model, key=str.encode)
    bounds = sorted([*model, "com.a:http/" + "x" * 489, "com.a:http/" + "x" * 490])
    for start, stop in zip(bounds, bounds[3:], strict=False):
        got = [k for k, _ in store.scan(TableQuery.for_fields([WebPage.markers]).with_range(KeyRange(start, stop)))]
        assert got == [k for k in sorted(model) if start <= k < stop]


def test_large_table_is_split_by_sampled_keys(store, monkeypatch):
    from nutch2py.table.embedded import embedded_store as module

    monkeypatch.setattr(module, "SMALL_TABLE_ROWS", 100)
    keys = [f"com.host{i:05d}.www:http/page" for i in range(20_000)]
    page = page_at()
    write(store, dict.fromkeys(keys, page))
    ranges = store.key_ranges(TableQuery(), 4)
    assert len(ranges) == 4
    sizes = [sum(key in part for key in keys) for part in ranges]
    assert min(sizes) > 2_500
    with store.batch() as batch:
        for key in keys:
            batch.delete(key)
    assert store._sample_keys(KeyRange()) == []


def test_forked_child_reopens_table(store):
    write(store, {"a": page_at()})
    parents = store.get_files()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            write(store, {"b": page_at(7)})
            code = 0 if store.get_files() is not parents and store.get("a").status == 2 else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert store.get("b").markers["dist"] == "7"
    assert store.get_files() is parents
    write(store, {"c": page_at()})
    assert [key for key, _ in store.scan(TableQuery())] == ["a", "b", "c"]


def test_threads_share_store(store):
    rounds, threads = 20, 4
    started = threading.Barrier(threads)

    def work(number):
        started.wait()
        for turn in range(rounds):
            write(store, {f"t{number}-{turn:02d}": page_at(turn)})
            assert store.get(f"t{number}-{turn:02d}").markers["dist"] == str(turn)

    with ThreadPoolExecutor(threads) as pool:
        for done in [pool.submit(work, number) for number in range(threads)]:
            done.result()
    assert sum(1 for _ in store.scan(TableQuery())) == rounds * threads


def test_stores_in_process_share_files(store, make_store):
    other = make_store(WebPage, "webpage")
    assert other.get_files() is store.get_files()
    store.close()
    write(other, {"a": page_at()})
    assert store.get("a").status == 2
    store.close()
    other.close()
    assert not table_files.list_open()


def test_table_dropped_elsewhere_is_detected(store, make_store):
    write(store, {"a": page_at()})
    other = make_store(WebPage, "webpage")
    assert other.get("a") is not None
    store.drop()
    with pytest.raises(StoreError, match="there is no table"):
        other.get("a")
    batch = other.batch()
    batch.put("a", page_at())
    with pytest.raises(StoreError, match="there is no table"):
        batch.flush()
    store.create()
    batch.flush()
    assert store.get("a") is not None


def test_family_created_by_other_process_is_read(store):
    list(store.scan(TableQuery()))
    child = os.fork()
    if child == 0:
        code = 1
        try:
            with store.batch() as batch:
                batch.put_cells("a", {b"zz": {b"q": (b"v", 5)}})
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert list(store.scan_cells()) == [("a", {b"zz": {b"q": (b"v", 5)}})]
    assert store.get("a").cells == {b"zz": {b"q": b"v"}}


def test_rows_are_deleted_without_reading(tmp_path, monkeypatch):
    """The data that updatedb keeps in the derived table can be as large as its changes."""
    conf = Configuration({"storage.data.store": f"embedded:{tmp_path}"})
    lists = BatchListStore(conf)
    lists.store.create()
    keys = [f"j/b/{number}" for number in range(30)] + ["j/b/" + "long" * 200]
    with lists.store.batch() as batch:
        for key in keys:
            entry = DerivedRow()
            entry.data = os.urandom(10_000)
            batch.put(key, entry)
    read = []
    unpack = packing.unpack
    monkeypatch.setattr(packing, "unpack", lambda packed: read.append(len(packed)) or unpack(packed))
    delete_journal(lists, "b")
    assert list(lists.store.keys(KeyRange())) == []
    assert len(read) <= 1  # that of the long key, which shares a bucket with others


def test_packed_cells_equal_single_cells():
    chance = random.Random(4)
    names = [b"a", b"b", b"c", b"d"]
    for _ in range(5_000):
        cells: dict[bytes, tuple[bytes, int]] = {}
        packed = None
        for _ in range(chance.randrange(1, 5)):
            puts = {name: bytes([chance.randrange(9)]) for name in chance.sample(names, chance.randrange(5))}
            deletes = chance.sample(names, chance.choice((0, 0, 1, 2)))
            cleared, guarded, time = chance.random() < 0.1, chance.random() < 0.5, chance.randrange(1, 5)
            packed = packing.merge_changes(packed, [packing.FamilyChange(cleared, deletes, puts, time, guarded)])
            for name in [*cells] if cleared else deletes:
                if name in cells and not (guarded and cells[name][1] > time):
                    del cells[name]
            for name, value in puts.items():
                if not (guarded and name in cells and cells[name][1] > time):
                    cells[name] = (value, time)
            assert ({} if packed is None else packing.unpack_cells(packed)) == cells


def test_waiting_for_long_writer_is_logged(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(table_files, "WAIT_WARNING_DELAY", 0.1)
    conf = Configuration()
    open_store(conf, WebPage, f"embedded:{tmp_path}").create()
    held = subprocess.Popen([sys.executable, "-c", WRITES_LONG, str(tmp_path)], stdin=-1, stdout=-1, text=True)
    assert held.stdout.readline() == "begun\n"
    files_of = [each for each in table_files.list_open() if each.path.parent == tmp_path]
    for each in files_of:
        each.close()
    threading.Timer(0.5, held.stdin.close).start()
    assert [*open_store(conf, WebPage, f"embedded:{tmp_path}").keys(KeyRange())] == []
    assert f"WARN waiting for the table webpage in {tmp_path}: another process is writing it" in capsys.readouterr().err
    assert held.wait(20) == 0
    held.stdout.close()


WRITES_LONG = """
import sys
from nutch2py.conf.configuration import Configuration
from nutch2py.table import open_store
from nutch2py.records.webpage import WebPage
store = open_store(Configuration(), WebPage, f"embedded:{sys.argv[1]}")
with store.get_files().write_transaction():
    print("begun", flush=True)
    sys.stdin.read()
"""
