"""Rows with cells of another writer, not of their columns' types: every job names them, counts them and continues."""

import pytest

from nutch2py.cli import main
from nutch2py.records.webpage import WebPage
from nutch2py.table import open_store
from nutch2py.url.keys import reverse_url
from tests.jobs.crawl import SETTINGS, rounds, site

CELLS = {
    "status": (b"f", b"st", b"\0\2"),
    "fetch-time": (b"f", b"ts", b"1234"),
    "interval": (b"f", b"fi", b"x"),
    "parse-status": (b"p", b"st", b"\xff\xff\xff"),
    "protocol-status": (b"f", b"prot", b"\x80"),
    "score": (b"s", b"s", b"0.5"),
    "cash": (b"mtdt", b"_csh_", b"1"),
    "distance": (b"mk", b"dist", b"near"),
    "page-rank": (b"s", b"pr", b""),
}
"""A row each, and the one cell of it that is malformed."""

ROUND = (["generate", "-batchId", "bad"], ["fetch", "bad"], ["parse", "bad"], ["updatedb", "bad"], ["index", "bad"])
JOBS = (
    ["readdb", "-stats", "-sort"],
    *ROUND,
    ["fetch", "-all"],
    ["parse", "-all", "-force"],
    ["updatedb", "-all"],
    ["index", "-all"],
    ["index", "-reindex"],
    ["clean"],
    ["dedup"],
    ["pagerank"],
    ["pagerank", "-D", "pagerank.method=mapreduce"],
    ["updatehostdb", "-linkDb"],
    ["readdb", "-dump", "OUT", "-text", "-links"],
)


@pytest.mark.parametrize("runner", ["inline", "local"])
def test_every_job_skips_unreadable_rows(conf, tmp_path, runner, capfd):
    conf.set("plugin.includes", conf.get("plugin.includes") + "|scoring-depth|scoring-opic")
    for name, value in SETTINGS.items():
        conf.set(name, value)
    store = open_store(conf, WebPage)
    with site() as url:
        seeds = tmp_path / "seeds"
        seeds.write_text(f"{url}/0\n{url}/1\n{url}/2\n")
        rounds(conf, str(seeds), 2)
        rows = len(list(store.scan_cells()))
        with store.batch() as batch:
            for name, (family, qualifier, value) in CELLS.items():
                key, later = reverse_url(f"{url}/{name}"), 1 << 60
                cells = dict(dict(store.scan_cells())[reverse_url(f"{url}/0")])
                for mark in (b"_gnmrk_", b"_ftcmrk_", b"__prsmrk__", b"_updmrk_"):
                    cells[b"mk"] = {**cells[b"mk"], mark: (b"bad", later)}
                batch.put_cells(key, {**cells, family: {**cells[family], qualifier: (value, later)}})
        store.close()
        options = ["-r", runner, "-D", f"storage.data.store={conf.get('storage.data.store')}"]
        options += [word for name in SETTINGS for word in ("-D", f"{name}={conf.get(name)}")]
        options += ["-D", f"plugin.includes={conf.get('plugin.includes')}", "-D", "http.agent.name=x"]
        named = set()
        for command in JOBS:
            words = [str(tmp_path / "out") if word == "OUT" else word for word in command]
            code = main([*words, *options])
            output = capfd.readouterr()
            assert code == 0, (command, output.err)
            assert "CellError" not in output.err, command
            assert "rows skipped" in output.err, (command, output.out, output.err)
            named |= {name for name in CELLS if f"/{name} skipped: " in output.err}
    assert named == set(CELLS)
    left = dict(store.scan_cells())
    assert len(left) >= rows + len(CELLS)
    for name, (family, qualifier, value) in CELLS.items():
        if name != "protocol-status":  # which fetch overwrites without reading
            assert left[reverse_url(f"{url}/{name}")][family][qualifier][0] == value, "it is left as it is"
    store.close()
