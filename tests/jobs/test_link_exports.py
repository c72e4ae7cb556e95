"""nodedumper and webgraph: what has most links or score, and the links as a file for other programs."""

from __future__ import annotations

from pathlib import Path

import networkx
import pytest

from nutch2py.cli import main
from nutch2py.conf.configuration import Configuration
from nutch2py.errors import StoreError, UsageError
from nutch2py.jobs.tools.node_dumper import NodeDumperParameters, find_top_nodes
from nutch2py.jobs.tools.webgraph import export_graph
from tests.jobs.rows import put

PAGES = {
    "http://www.a.test/": {"score": 2.5, "inlinks": {"http://b.test/": 'to <a> & "b"\t\x01', "http://c.test/": ""}},
    "http://x.a.test/": {"score": 1.0, "inlinks": {"http://b.test/": "x\ny"}, "outlinks": {"http://b.test/": ""}},
    "http://b.test/": {"score": 3.0, "inlinks": {"http://x.a.test/": "\u7b2c\u4e00"}},
    "http://c.test/": {"score": 0.0},
}


@pytest.fixture
def crawled(conf: Configuration) -> Configuration:
    put(conf, {url: {"status": 2, **fields} for url, fields in PAGES.items()})
    return conf


@pytest.fixture
def options(crawled: Configuration) -> list[str]:
    names = ("storage.data.store", "storage.embedded.map.size")
    return [word for name in names for word in ("-D", f"{name}={crawled.get(name, '')}")]


@pytest.mark.parametrize("runner", ["inline", "local"])
def test_nodedumper_lists_top_pages(crawled: Configuration, runner: str) -> None:
    crawled.set("mapreduce.runner", runner)
    crawled.set("mapreduce.job.maps", 3)
    assert find_top_nodes(crawled, NodeDumperParameters(value="inlinks", top=2)) == [
        ("http://www.a.test/", 2),
        ("http://x.a.test/", 1),
    ]
    assert find_top_nodes(crawled, NodeDumperParameters(value="scores", top=1)) == [("http://b.test/", 3.0)]
    assert find_top_nodes(crawled, NodeDumperParameters(value="outlinks", top=9))[0] == ("http://x.a.test/", 1)


def test_nodedumper_lists_top_hosts_and_domains(crawled: Configuration) -> None:
    crawled.set("mapreduce.job.maps", 3)
    added = NodeDumperParameters(value="scores", top=1, group="domain", aggregate="sum")
    assert find_top_nodes(crawled, added) == [("a.test", 3.5)]
    assert find_top_nodes(crawled, NodeDumperParameters(value="scores", top=2, group="domain", aggregate="max")) == [
        ("b.test", 3.0),
        ("a.test", 2.5),
    ]
    assert find_top_nodes(crawled, NodeDumperParameters(value="inlinks", top=1, group="host")) == [("www.a.test", 2)]


def test_nodedumper_and_webgraph_commands_work(
    options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["nodedumper", "-scores", "-topn", "2", *options]) == 0
    assert capsys.readouterr().out.splitlines()[-2:] == ["http://b.test/\t3", "http://www.a.test/\t2.5"]
    file = tmp_path / "nodes.txt"
    assert main(["nodedumper", "-inlinks", "-group", "host", "max", "-output", str(file), *options]) == 0
    assert file.read_text(encoding="utf-8").splitlines()[0] == "www.a.test\t2"
    assert main(["nodedumper", "-inlinks", "-group", "planet", "max", *options]) == 255
    assert main(["readdb", "-topN", "3", "1", *options]) == 0
    assert capsys.readouterr().out.splitlines()[-3:] == [
        "3.0\thttp://b.test/",
        "2.5\thttp://www.a.test/",
        "1.0\thttp://x.a.test/",
    ]
    assert main(["readdb", "-topN", "none", *options]) == 255
    assert main(["webgraph", "-o", str(tmp_path / "g"), "-format", "edges", "-hosts", *options]) == 0
    assert capsys.readouterr().out.endswith(f"WebGraph: 4 hosts and 4 links in {tmp_path / 'g'}\n")
    assert "x.a.test\tb.test\t1\n" in (tmp_path / "g").read_text(encoding="utf-8")
    assert main(["webgraph", "-o", str(tmp_path / "g.tsv"), "-hosts", *options]) == 0
    assert (tmp_path / "g.tsv").read_text(encoding="utf-8") == (tmp_path / "g").read_text(encoding="utf-8")
    assert main(["webgraph", "-o", str(tmp_path / "g.csv"), *options]) == 255
    assert "no format of webgraph is CSV" in capsys.readouterr().err


def test_pages_are_exported_as_graphml(crawled: Configuration, tmp_path: Path) -> None:
    file = tmp_path / "graph.graphml"
    assert export_graph(crawled, file) == (4, 4)
    graph = networkx.read_graphml(file)
    assert set(graph.nodes) == {*PAGES}
    assert graph.nodes["http://b.test/"] == {"status": "2 (status_fetched)", "score": 3.0}
    assert graph.edges["http://b.test/", "http://www.a.test/"]["anchor"] == 'to <a> & "b"\t\ufffd'
    assert graph.edges["http://x.a.test/", "http://b.test/"]["anchor"] == "\u7b2c\u4e00"


def test_hosts_are_exported_as_graphml_and_pages_as_edges(crawled: Configuration, tmp_path: Path) -> None:
    file = tmp_path / "hosts"
    assert export_graph(crawled, file, between_hosts=True) == (4, 4)
    graph = networkx.read_graphml(file)
    assert graph.edges["b.test", "www.a.test"]["links"] == 1
    assert export_graph(crawled, file, "edges") == (4, 4)
    assert "http://b.test/\thttp://x.a.test/\tx y\n" in file.read_text(encoding="utf-8")


def test_tables_of_several_stores_are_merged(
    crawled: Configuration, options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    there, rules = f"embedded:{tmp_path / 'merged'}", tmp_path / "prefixes.txt"
    rules.write_text("http://b.test/\nhttp://x.a.test/\n", encoding="utf-8")
    filters = ["-D", "plugin.includes.add=urlfilter-prefix", "-D", f"urlfilter.prefix.file={rules}"]
    own = crawled.get("storage.data.store", "")
    assert main(["mergedb", there, own, "-filter", "-normalize", *filters, *options]) == 0
    out = capsys.readouterr().out
    assert "copytable: 2 rows of webpage" in out
    assert "copytable: 2 rows skipped, 0 moved to another URL" in out
    assert main(["mergedb", there, *options]) == 0
    assert "copytable: 4 rows of webpage" in capsys.readouterr().out
    assert main(["copytable", own, *options]) == 255


def test_unwritable_file_is_named_and_nothing_left(crawled: Configuration, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="name a file"):
        export_graph(crawled, tmp_path / "none" / "graph")
    with pytest.raises(StoreError, match="is a folder"):
        export_graph(crawled, tmp_path)
    with pytest.raises(UsageError, match="not one of graphml"):
        export_graph(crawled, tmp_path / "graph", "dot")
    assert not [path for path in tmp_path.iterdir() if "graph" in path.name]
