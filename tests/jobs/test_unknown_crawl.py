"""A mistyped crawl id is an error of every command that reads or changes a crawl, and creates nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from nutch2py.cli import main
from tests.conftest import MAP_SIZE

COMMANDS = (
    "readdb -stats", "readdb -url http://a.test/", "readdb -topN 3", "readdb -batches", "readdb -locks", "readhostdb",
    "readhostdb a.test", "readlinkdb -url http://a.test/", "domainstats host", "crawlcomplete host", "protocolstats",
    "nodedumper -inlinks", "webgraph -o {0}/graph", "exporttable {0}/table", "copytable embedded:{0}/copy",
    "report -o {0}/report.html", "checktable", "jobs", "generate", "fetch -all", "fetch b", "parse -all",
    "updatedb -all",
    "index -all", "clean", "dedup", "pagerank", "updatehostdb", "search words",
)  # fmt: skip


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the folder of a crawl without an id."""
    folder = tmp_path_factory.mktemp("crawl")
    (folder / "seeds").write_text("http://a.test/\n")
    assert main(["inject", str(folder / "seeds"), *location(folder)]) == 0
    return folder


def location(place: Path) -> list[str]:
    store = f"storage.data.store=embedded:{place / 'crawldata'}"
    return ["-D", store, "-D", f"storage.embedded.map.size={MAP_SIZE}", "-D", "http.agent.name=x"]


@pytest.mark.parametrize("command", COMMANDS)
def test_mistyped_crawl_id_is_named_and_creates_nothing(
    place: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    before = sorted(place.rglob("*"))
    name, *words = command.format(place).split()
    code = main([name, "-crawlId", "mistyped", *words, *location(place)])
    assert code == (5 if name == "search" else 4)
    assert ("mistyped_index" if name == "search" else "no table mistyped_webpage") in capsys.readouterr().err
    assert sorted(place.rglob("*")) == before
