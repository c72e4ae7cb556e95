"""freegen: a batch of given URLs, due or not, of existing or new rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from nutch2py.cli import main
from nutch2py.conf.configuration import Configuration
from nutch2py.errors import InputError, UsageError
from nutch2py.jobs.generate.freegen_job import freegen
from nutch2py.jobs.generate.generate_job import generate
from nutch2py.jobs.monitoring.batch_report import list_open_batches
from nutch2py.records.webpage import Mark, WebPage
from nutch2py.support.clock import now_ms
from nutch2py.table import open_store
from nutch2py.url.keys import reverse_url
from tests.jobs.rows import put


@pytest.fixture
def seeds(tmp_path: Path) -> str:
    path = tmp_path / "seeds.txt"
    lines = ["# named", "http://old.test/", "http://new.test/?a=b", "no url", "http://new.test/map.xml\t-sitemap"]
    path.write_text("\n".join(lines), encoding="utf-8")
    return str(path)


def row(conf: Configuration, url: str) -> WebPage:
    page = open_store(conf, WebPage).get(reverse_url(url))
    assert page is not None
    return page


def old_row(conf: Configuration) -> None:
    put(conf, {"http://old.test/": {"status": 2, "fetch_time": now_ms() + 10**9, "fetch_interval": 7, "score": 0.5}})


@pytest.mark.parametrize("runner", ["inline", "local"])
def test_freegen_adds_undue_and_new_rows(conf: Configuration, seeds: str, runner: str) -> None:
    conf.set("mapreduce.runner", runner)
    conf.set("generate.max.count", 1)
    old_row(conf)
    made = freegen(conf, seeds, batch_id="named")
    assert (made.batch_id, made.urls) == ("named", 2)
    assert row(conf, "http://old.test/").markers[Mark.GENERATE] == "named"
    assert row(conf, "http://old.test/").fetch_interval == 7
    assert row(conf, "http://new.test/?a=b").markers[Mark.GENERATE] == "named"
    assert Mark.GENERATE not in row(conf, "http://new.test/map.xml").markers
    assert [(batch.batch_id, batch.count) for batch in list_open_batches(conf)] == [("named", 2)]


def test_repeated_freegen_changes_nothing(conf: Configuration, seeds: str) -> None:
    old_row(conf)
    assert freegen(conf, seeds, batch_id="named").urls == 2
    assert freegen(conf, seeds, batch_id="named").urls == 2


def test_rows_of_open_batch_keep_it(conf: Configuration, seeds: str, capsys: pytest.CaptureFixture[str]) -> None:
    put(conf, {"http://old.test/": {"status": 1, "fetch_time": 1, "fetch_interval": 7}})
    assert generate(conf, batch_id="first").urls == 1
    made = freegen(conf, seeds, batch_id="named")
    assert (made.urls, made.count("generator", "already_generated")) == (1, 1)
    assert row(conf, "http://old.test/").markers[Mark.GENERATE] == "first"
    assert "1 URLs are in other open batches" in capsys.readouterr().out


def test_filters_are_applied_when_requested(conf: Configuration, seeds: str) -> None:
    conf.set("plugin.includes.add", "urlfilter-prefix")
    rules = Path(seeds).with_name("prefixes.txt")
    rules.write_text("http://old.test/\n", encoding="utf-8")
    conf.set("urlfilter.prefix.file", str(rules))
    assert freegen(conf, seeds, filter_urls=True, normalize=True, batch_id="one").urls == 1
    assert freegen(conf, seeds, batch_id="two").urls == 1  # the filter rejects the other one


def test_invalid_arguments_create_nothing(conf: Configuration, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        freegen(conf, str(tmp_path / "nothing"))
    with pytest.raises(UsageError):
        freegen(conf, str(tmp_path), batch_id="-all")
    assert not open_store(conf, WebPage).exists()


def test_freegen_command_works(conf: Configuration, seeds: str, capsys: pytest.CaptureFixture[str]) -> None:
    store, size = conf.get("storage.data.store", ""), conf.get("storage.embedded.map.size", "")
    words = ["freegen", seeds, "-D", f"storage.data.store={store}", "-D", f"storage.embedded.map.size={size}"]
    for more, code in (["-filter"], 0), ([], 0), ([], 1):  # the shipped filter rejects the "?"
        assert main([*words, *more]) == code
        assert f"containing {1 - code} URLs" in capsys.readouterr().out
