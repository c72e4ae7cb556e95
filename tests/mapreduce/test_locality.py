"""Where map tasks are best run: what the driver hands to Hadoop. That they run there, tests/cluster shows."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from zipfile import ZipFile

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.mapreduce.input_splits import BatchListSplit, RangeSplit, encode_split, range_splits
from nutch2py.mapreduce.runners.hadoop import locality
from nutch2py.records.webpage import WebPage
from nutch2py.table import KeyRange, TableQuery, open_store
from tests.conftest import ROOT

LIBRARIES = ROOT / ".cache" / "services" / "hadoop" / "lib"
SOURCE = Path(locality.__file__).with_name("PlacedSplits.java")


def test_each_split_line_names_its_host(tmp_path: Path) -> None:
    here, nowhere = RangeSplit(KeyRange("a", "b"), "node1"), BatchListSplit(KeyRange("b", "c"))
    arguments = locality.prepare_locality(tmp_path, [here, nowhere, here])
    assert (tmp_path / "hosts").read_text() == "node1\n\nnode1\n"
    assert arguments == ["--libjars", str(tmp_path / "placing.jar")]
    with ZipFile(tmp_path / "placing.jar") as jar:
        assert jar.namelist() == ["nutch2py/PlacedSplits.class"]


def test_unknown_hosts_add_no_location(tmp_path: Path) -> None:
    assert (
        locality.prepare_locality(tmp_path, [RangeSplit(KeyRange("a", "b")), BatchListSplit(KeyRange("b", "c"))]) == []
    )
    assert list(tmp_path.iterdir()) == []


def test_task_reads_same_line_on_any_host() -> None:
    assert encode_split(RangeSplit(KeyRange("a", "b"), "node1")) == encode_split(RangeSplit(KeyRange("a", "b")))


def test_ranges_have_hosts_of_store(conf: Configuration, monkeypatch: pytest.MonkeyPatch) -> None:
    store, ranges = open_store(conf, WebPage), [KeyRange("", "b"), KeyRange("b", None)]
    monkeypatch.setattr(store, "key_ranges", lambda query, count: ranges[-count:])
    assert range_splits(store, TableQuery(frozenset()), 2) == [RangeSplit(each) for each in ranges]
    monkeypatch.setattr(store, "range_hosts", lambda found: ["one", "two"])
    assert range_splits(store, TableQuery(frozenset()), 2) == [
        RangeSplit(*each) for each in zip(ranges, ["one", "two"], strict=True)
    ]
    assert range_splits(store, TableQuery(frozenset()), 1) == [RangeSplit(ranges[1])]


def test_compiled_class_matches_source(tmp_path: Path) -> None:
    if shutil.which("javac") is None or not any(LIBRARIES.glob("*.jar")):
        pytest.skip("no javac, or no jars of Hadoop (scripts/services fetch hadoop)")
    version = subprocess.run(["javac", "-version"], capture_output=True, text=True, check=True).stdout
    options = ["-proc:none", "--release", "8", "-g:none", "-nowarn", "-Xlint:none"]
    subprocess.run(["javac", *options, "-cp", f"{LIBRARIES}/*", "-d", tmp_path, SOURCE], check=True)
    made = (tmp_path / "nutch2py" / "PlacedSplits.class").read_bytes()
    assert made[:8] == SOURCE.with_suffix(".class").read_bytes()[:8]
    if version.startswith("javac 17."):
        assert made == SOURCE.with_suffix(".class").read_bytes()
