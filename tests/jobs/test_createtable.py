"""createtable: start keys of regions, and the message of a store without regions."""

from __future__ import annotations

from pathlib import Path

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import InputError, UsageError
from nutch2py.jobs.table_admin.table_maintenance import create_table, split_keys
from nutch2py.records.webpage import WebPage
from nutch2py.table import open_store
from tests.jobs import recorded


def test_seeds_are_split_into_equal_parts(conf: Configuration, tmp_path: Path) -> None:
    file = tmp_path / "seeds.txt"
    file.write_text(
        "".join(f"http://h{number:02d}.example.com/\tkey=value\n" for number in range(12)) + "not a url://\n"
    )
    keys = split_keys(conf, 4, str(file), None, None)
    assert keys == [f"com.example.h{number:02d}:http/" for number in (3, 6, 9)]
    with pytest.raises(UsageError, match="too few for 40 regions"):
        split_keys(conf, 40, str(file), None, None)


def test_split_keys_may_be_urls(conf: Configuration, tmp_path: Path) -> None:
    file = tmp_path / "keys.txt"
    file.write_text("http://b.example.com/\ncom.example.a:http/\n\n")
    assert split_keys(conf, 1, None, None, str(file)) == ["com.example.a:http/", "com.example.b:http/"]
    with pytest.raises(InputError, match="cannot read"):
        split_keys(conf, 1, None, None, str(tmp_path / "none"))


def test_other_store_is_used_as_sample(conf: Configuration, recording: Path) -> None:
    recorded.load(conf, recording / "dumps" / "round4-updatedb.jsonl.gz")
    keys = split_keys(conf, 5, None, conf.get("storage.data.store"), None)
    rows = sorted(recorded.read(recording / "dumps" / "round4-updatedb.jsonl.gz"))
    sizes = [sum(a <= row < b for row in rows) for a, b in zip(["", *keys], [*keys, "\uffff"], strict=True)]
    assert len(sizes) == 5
    assert max(sizes) < 2 * min(sizes)


def test_store_without_regions_is_reported(
    conf: Configuration, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert create_table(conf, 1, None, None, None) == 0
    assert open_store(conf, WebPage).exists()
    assert "1 region\n" in capsys.readouterr().out
    file = tmp_path / "keys.txt"
    file.write_text("m\n")
    with pytest.raises(UsageError, match="no regions to split"):
        create_table(conf, 1, None, None, str(file))
    with pytest.raises(UsageError, match="-splits needs keys"):
        create_table(conf, 3, None, None, None)
