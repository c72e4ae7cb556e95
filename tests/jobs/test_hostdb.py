"""Host table: inject, counters and output."""

from __future__ import annotations

from pathlib import Path

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import StoreError
from nutch2py.joblog.job_log_store import read_entries
from nutch2py.jobs.hostdb.hostdb_jobs import hostinject, readhostdb, updatehostdb
from nutch2py.records.webpage import DerivedRow, Host
from nutch2py.table import open_store
from tests.jobs import recorded
from tests.jobs.rows import put


def hosts(conf: Configuration) -> dict[str, tuple[dict[str, bytes], dict[str, str], dict[str, str]]]:
    """Return metadata, inlinks and outlinks by row key."""
    found = open_store(conf, Host).scan(recorded.TableQuery())
    return {
        key: (dict(h.metadata.decoded_items()), dict(h.inlinks.decoded_items()), dict(h.outlinks.decoded_items()))
        for key, h in found
    }


def test_injected_host_settings_are_set_and_others_kept(conf: Configuration, tmp_path: Path) -> None:
    file = tmp_path / "hosts.txt"
    file.write_text("a.example.com\tq_mt=2\tq_cd = 500\thalf\n# note\n\nhttps://b.example.com:8080/x\tq_mcd=7\n")
    hostinject(conf, str(file))
    file.write_text("a.example.com\tq_mt=3\n")
    result = hostinject(conf, str(file))
    assert result.count("hostinject", "hosts_injected") == 1
    open_store(conf, DerivedRow).create()  # a crawl exists: from now on jobs are logged
    hostinject(conf, str(file))
    (entry,) = read_entries(open_store(conf, DerivedRow), 10)
    assert (entry.job, entry.state, entry.counters) == ("hostinject", "finished", {"hostinject": {"hosts_injected": 1}})
    assert hosts(conf) == {
        "com.example.a": ({"q_mt": b"3", "q_cd": b"500"}, {}, {}),
        "com.example.b": ({"q_mcd": b"7"}, {}, {}),
    }


def test_host_counts_equal_independent_count(conf: Configuration, recording: Path, tmp_path: Path) -> None:
    path = recording / "dumps" / "round4-updatedb.jsonl.gz"
    recorded.load(conf, path)
    settings = tmp_path / "hosts.txt"
    settings.write_text("a.interop.test\tq_mt=2\n")
    hostinject(conf, str(settings))
    conf.set("mapreduce.job.maps", 4)
    updatehostdb(conf, count_links=True)
    found = hosts(conf)
    rows: dict[str, list[recorded.Row]] = {}
    for key, row in recorded.read(path).items():
        rows.setdefault(key.split(":")[0], []).append(row)
    assert found.keys() == rows.keys()
    for host, of_host in rows.items():
        metadata, inlinks, outlinks = found[host]
        assert int(metadata["p"]) == len(of_host)
        fetched = sum(row.get("f:st", [""])[0] == "AAAAAg==" for row in of_host)
        assert int(metadata.get("f", 0)) == fetched
        assert sum(map(int, inlinks.values())) == sum(column.startswith("il:") for row in of_host for column in row)
        assert sum(map(int, outlinks.values())) == sum(column.startswith("ol:") for row in of_host for column in row)
    assert found["test.interop.a"][0]["q_mt"] == b"2"


def test_counting_without_links_keeps_links(conf: Configuration, recording: Path) -> None:
    recorded.load(conf, recording / "dumps" / "round1-updatedb.jsonl.gz")
    updatehostdb(conf, count_links=True)
    before = hosts(conf)
    updatehostdb(conf, count_links=False)
    assert hosts(conf) == before


@pytest.mark.parametrize("host", ["a.example.com", "http://a.example.com/x", None])
def test_readhostdb_of_unknown_crawl_is_an_error(
    conf: Configuration, host: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    """A crawl without a host table is none: it only has to be made."""
    put(conf, {"http://a.example.com/": {}})
    assert readhostdb(conf, host) == (0 if host is None else 1)
    assert "run updatehostdb or hostinject first" in capsys.readouterr().err
    conf.set("storage.crawl.id", "mistyped")
    with pytest.raises(StoreError, match="there is no table mistyped_webpage"):
        readhostdb(conf, host)


def test_readhostdb_shows_one_and_all(conf: Configuration, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "hosts.txt"
    file.write_text("a.example.com\tq_mt=2\nb.example.com\tq_mt=4\n")
    hostinject(conf, str(file))
    capsys.readouterr()
    assert readhostdb(conf, "http://a.example.com/") == 0
    assert capsys.readouterr().out == "host:\ta.example.com\nmetadata q_mt : \t2\n\n"
    assert readhostdb(conf, None) == 0
    assert capsys.readouterr().out.count("host:") == 2
