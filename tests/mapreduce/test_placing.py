"""Where map tasks are best run: what the driver hands to Hadoop. That they run there, tests/cluster shows."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from zipfile import ZipFile

import pytest

from nutch2py.conf import Configuration
from nutch2py.mapreduce import placing
from nutch2py.mapreduce.splits import ListSplit, RangeSplit, encode_split, range_splits
from nutch2py.table import KeyRange, Query, open_store
from nutch2py.webpage import WebPage
from tests.conftest import ROOT

LIBRARIES = ROOT / ".cache" / "services" / "hadoop" / "lib"
SOURCE = Path(placing.__file__).with_name("PlacedSplits.java")


def test_each_split_has_a_line_with_its_machine(tmp_path: Path) -> None:
    here, nowhere = RangeSplit(KeyRange("a", "b"), "node1"), ListSplit(KeyRange("b", "c"))
    arguments = placing.place(tmp_path, [here, nowhere, here])
    assert (tmp_path / "hosts").read_text() == "node1\n\nnode1\n"
    assert arguments == ["--libjars", str(tmp_path / "placing.jar")]
    with ZipFile(tmp_path / "placing.jar") as jar:
        assert jar.namelist() == ["nutch2py/PlacedSplits.class"]


def test_nothing_is_handed_over_where_nothing_is_known(tmp_path: Path) -> None:
    assert placing.place(tmp_path, [RangeSplit(KeyRange("a", "b")), ListSplit(KeyRange("b", "c"))]) == []
    assert list(tmp_path.iterdir()) == []


def test_a_task_reads_the_same_line_wherever_it_runs() -> None:
    assert encode_split(RangeSplit(KeyRange("a", "b"), "node1")) == encode_split(RangeSplit(KeyRange("a", "b")))


def test_ranges_have_the_machines_that_their_store_names(conf: Configuration, monkeypatch: pytest.MonkeyPatch) -> None:
    store, ranges = open_store(conf, WebPage), [KeyRange("", "b"), KeyRange("b", None)]
    monkeypatch.setattr(store, "key_ranges", lambda query, count: ranges[-count:])
    assert range_splits(store, Query(frozenset()), 2) == [RangeSplit(each) for each in ranges]
    monkeypatch.setattr(store, "hosts", lambda found: ["one", "two"])
    assert range_splits(store, Query(frozenset()), 2) == [
        RangeSplit(*each) for each in zip(ranges, ["one", "two"], strict=True)
    ]
    assert range_splits(store, Query(frozenset()), 1) == [RangeSplit(ranges[1])]


def test_the_class_is_that_of_its_source(tmp_path: Path) -> None:
    if shutil.which("javac") is None or not any(LIBRARIES.glob("*.jar")):
        pytest.skip("no javac, or no jars of Hadoop (scripts/services fetch hadoop)")
    version = subprocess.run(["javac", "-version"], capture_output=True, text=True, check=True).stdout
    options = ["-proc:none", "--release", "8", "-g:none", "-nowarn", "-Xlint:none"]
    subprocess.run(["javac", *options, "-cp", f"{LIBRARIES}/*", "-d", tmp_path, SOURCE], check=True)
    made = (tmp_path / "nutch2py" / "PlacedSplits.class").read_bytes()
    assert made[:8] == SOURCE.with_suffix(".class").read_bytes()[:8]
    if version.startswith("javac 17."):
        assert made == SOURCE.with_suffix(".class").read_bytes()
