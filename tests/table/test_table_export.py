"""Dumps: what a table holds is what the dump says, and the other way round."""

import gzip
import json
import tracemalloc

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import InputError, StoreError
from nutch2py.records.webpage import Host, WebPage
from nutch2py.table import open_store
from nutch2py.table.table_copy import copy_table
from nutch2py.table.table_export import export_table
from nutch2py.table.table_import import BadLineCounter, ImportLimits, import_table


@pytest.fixture
def make(tmp_path):
    stores = []

    def open_one(name="webpage", record=WebPage):
        stores.append(open_store(Configuration(), record, f"embedded:{tmp_path / 'crawl'}", name))
        return stores[-1]

    yield open_one
    for store in stores:
        store.close()


ROWS = [
    ("a", {b"f": {b"st": (b"\0\0\0\2", 5), b"cnt": (b"x" * 300, 6)}, b"mk": {b"": (b"", 7)}}),
    ("b:http/中", {b"h": {b"\xff\xfe": (b"\0", 1), b"a:b": (b"v", 2)}}),
]
LINE = '{"row": "a", "cells": {"f:st": ["AAAAAg==", 5]}}\n'


def fill(store, rows=ROWS):
    store.create()
    with store.batch() as batch:
        for key, cells in rows:
            batch.put_cells(key, cells)


@pytest.mark.parametrize("name", ["dump.jsonl", "dump.jsonl.gz"])
def test_dump_round_trips(make, tmp_path, name):
    source, target = make(), make("copy")
    fill(source)
    assert export_table(source, tmp_path / name) == 2
    assert import_table(target, tmp_path / name) == 2
    assert list(target.scan_cells()) == ROWS
    assert ((tmp_path / name).read_bytes()[:2] == b"\x1f\x8b") is name.endswith(".gz")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted({"crawl", name})


def test_dump_line_format_is_stable(make, tmp_path):
    store = make()
    fill(store)
    export_table(store, tmp_path / "dump")
    first, second = (tmp_path / "dump").read_text().splitlines()
    cells = {"f:cnt": ["eHh4" * 100, 6], "f:st": ["AAAAAg==", 5], "mk:": ["", 7]}
    assert json.loads(first) == {"row": "a", "cells": cells}
    assert list(json.loads(first)["cells"]) == sorted(cells)
    assert json.loads(second) == {
        "row": "b:http/中", "cells": {"h:a:b": ["dg==", 2]}, "cells64": {"h://4=": ["AA==", 1]},
    }  # fmt: skip


def test_equal_tables_give_equal_files(make, tmp_path):
    store = make()
    fill(store)
    for name in ("1.gz", "2.gz"):
        export_table(store, tmp_path / name)
    assert (tmp_path / "1.gz").read_bytes() == (tmp_path / "2.gz").read_bytes()


def test_recorded_dumps_round_trip(make, tmp_path, recording):
    dumps = sorted((recording / "dumps").glob("*.jsonl.gz"))
    assert dumps
    for number, dump in enumerate(dumps):
        store = make(f"t{number}")
        rows = import_table(store, dump)
        assert export_table(store, tmp_path / "out.jsonl") == rows
        wanted = [json.loads(line) for line in gzip.decompress(dump.read_bytes()).splitlines()]
        got = [json.loads(line) for line in (tmp_path / "out.jsonl").read_bytes().splitlines()]
        assert got == wanted, dump.name
        assert [list(row["cells"]) for row in got] == [sorted(row["cells"]) for row in wanted]
        store.drop()
    print(f"{len(dumps)}/{len(dumps)}")


def test_copy_keeps_every_cell(make):
    source, target = make(), make("other")
    fill(source)
    seen = []
    assert copy_table(source, target, seen.append) == 2
    assert list(target.scan_cells()) == ROWS
    assert seen == [2]


def test_host_table_dump_round_trips(make, tmp_path):
    source, target = make("host", Host), make("host2", Host)
    rows = [("com.a", {b"mtdt": {b"q_mt": (b"2", 1)}})]
    fill(source, rows)
    export_table(source, tmp_path / "hosts")
    import_table(target, tmp_path / "hosts")
    assert list(target.scan_cells()) == rows


def test_repeated_import_changes_nothing(make, tmp_path):
    store = make()
    (tmp_path / "dump").write_text(LINE + "\n")
    assert import_table(store, tmp_path / "dump") == 1
    before = list(store.scan_cells())
    assert import_table(store, tmp_path / "dump") == 1
    assert list(store.scan_cells()) == before


def test_import_keeps_newer_cells(make, tmp_path):
    store = make()
    fill(store, [("a", {b"f": {b"st": (b"\0\0\0\3", 9)}})])
    (tmp_path / "dump").write_text(LINE)
    import_table(store, tmp_path / "dump")
    assert list(store.scan_cells()) == [("a", {b"f": {b"st": (b"\0\0\0\3", 9)}})]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 2: "),
        ("[]", "line 2: it is not an object with a row key"),
        ('{"row": 5, "cells": {}}', "line 2: it is not an object with a row key"),
        ('{"row": "", "cells": {}}', "line 2: it is not an object with a row key"),
        ('{"row": "b", "cells": []}', "line 2: cells is not an object"),
        ('{"row": "b", "cells": {"fst": ["", 1]}}', "line 2: column 'fst' is not family:qualifier"),
        ('{"row": "b", "cells": {":st": ["", 1]}}', "line 2: column ':st' is not family:qualifier"),
        ('{"row": "b", "cells": {"f:st": ["*", 1]}}', "line 2: column 'f:st' is not base64"),
        ('{"row": "b", "cells": {"f:st": ["AAAA"]}}', r"line 2: column 'f:st' is not \["),
        ('{"row": "b", "cells": {"f:st": ["AAAA", "1"]}}', r"line 2: column 'f:st' is not \["),
        ('{"row": "b", "cells": {"f:st": ["AAAA", true]}}', r"line 2: column 'f:st' is not \["),
        ('{"row": "b", "cells": {"f:st": ["AAAA", -1]}}', "line 2: column 'f:st' has the time -1"),
        ('{"row": "b", "cells64": {"f:*": ["AAAA", 1]}}', "line 2: column 'f:\\*' is not base64"),
        ('{"row": "b", "cell": {}}', "line 2: it has a member 'cell'"),
        ('{"row": "b\\ud800", "cells": {}}', "line 2: "),
    ],
)
def test_invalid_line_is_named_in_error(make, tmp_path, line, message):
    (tmp_path / "dump").write_text(LINE + line + "\n")
    with pytest.raises(InputError, match=message):
        import_table(make(), tmp_path / "dump")


def test_missing_or_broken_file_is_named_in_error(make, tmp_path):
    with pytest.raises(InputError, match="nowhere"):
        import_table(make(), tmp_path / "nowhere")
    (tmp_path / "cut.gz").write_bytes(gzip.compress(LINE.encode() * 100)[:-12])
    with pytest.raises(InputError, match=r"cannot read the dump .*cut\.gz"):
        import_table(make(), tmp_path / "cut.gz")


def test_failed_export_keeps_old_file(make, tmp_path):
    (tmp_path / "dump").write_text("old")
    store = make("none")
    with pytest.raises(StoreError, match="there is no table"):
        export_table(store, tmp_path / "dump")
    assert (tmp_path / "dump").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["dump"]
    fill(store)
    with pytest.raises(StoreError, match="cannot write"):
        export_table(store, tmp_path / "no folder" / "dump")


@pytest.mark.parametrize(
    "bad", ["{", '{"row": "b", "cells": {"f:st": ["AAA=", 1]}}', "x" * 5_000], ids=["line", "cell", "long"]
)
def test_single_invalid_line_is_reported_and_skipped(make, tmp_path, bad, capsys):
    good = [LINE.replace('"row": "', f'"row": "{number}') for number in range(30)]
    dump = tmp_path / "dump"
    dump.write_text("\n".join([*(line.strip() for line in good), bad]) + "\n")
    store = make()
    rules = ImportLimits(max_line_bytes=4_000)
    counts = BadLineCounter(dump, rules.max_bad_share)
    import_table(store, dump, limits=rules, bad_lines=counts)
    assert sum(1 for _ in store.scan_cells()) == 30
    assert counts.skipped_lines + counts.skipped_cells == 1
    assert "line 31: " in capsys.readouterr().err
    with pytest.raises(InputError, match=r"line 31: .*1 of 31 lines are bad.*storage\.import\.bad\.share"):
        import_table(store, dump, limits=rules._replace(max_bad_share=0.01))


def test_overlong_line_is_not_read_into_memory(make, tmp_path):
    dump = tmp_path / "dump.gz"
    with gzip.open(dump, "wb", 1) as out:
        for _ in range(64):
            out.write(b"x" * (1 << 20))
        out.write(b"\n" + LINE.strip().encode())
    store = make()
    tracemalloc.start()
    try:
        rows = import_table(store, dump, limits=ImportLimits(max_line_bytes=1 << 20, max_bad_share=0.6))
        assert tracemalloc.get_traced_memory()[1] < 12 << 20
    finally:
        tracemalloc.stop()
    assert rows == 1


def test_foreign_file_is_rejected_early(make, tmp_path):
    dump = tmp_path / "dump"
    dump.write_text("no row\n" * 50_000)
    with pytest.raises(InputError, match="1000 of 1000 lines are bad"):
        import_table(make(), dump)
