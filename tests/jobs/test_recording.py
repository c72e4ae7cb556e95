"""Each job of the recorded crawl, run on the recorded table before it: the same cells after it."""

from __future__ import annotations

from pathlib import Path

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.jobs.generate.generate_job import generate
from nutch2py.jobs.index.index_job import index
from nutch2py.jobs.inject.inject_job import inject
from nutch2py.jobs.parse_job import parse
from nutch2py.jobs.updatedb.updatedb_job import updatedb
from tests.conftest import MAP_SIZE
from tests.jobs import recorded

ROUNDS = (1, 2, 3, 4)
TOP_N = {1: 170, 2: 170, 3: 200, 4: 200}


@pytest.fixture
def conf(tmp_path: Path, recording: Path) -> Configuration:
    """The recording's configuration over an empty embedded table."""
    overrides = {"storage.data.store": f"embedded:{tmp_path / 'crawldata'}", "storage.embedded.map.size": MAP_SIZE}
    overrides["encodingdetector.charset.fallback"] = "false"
    overrides["urlfilter.try.escaped"] = overrides["parser.html.outlinks.as.browser"] = "false"
    overrides["urlfilter.validator.underscores"] = "false"
    return Configuration.load(recording / "conf", overrides)


def test_recorded_inject_table_is_reproduced(conf: Configuration, recording: Path, tmp_path: Path) -> None:
    inject(conf, str(recording / "site" / "seeds.txt"))
    expected = recording / "dumps" / "round1-inject.jsonl.gz"
    assert recorded.differences(recording, expected, conf, tmp_path) == ""


@pytest.mark.parametrize("number", ROUNDS)
def test_recorded_generate_table_is_reproduced(
    conf: Configuration, recording: Path, tmp_path: Path, number: int
) -> None:
    recorded.load(conf, recorded.dump_before(recording, number, "generate"))
    generate(
        conf,
        top_n=TOP_N[number],
        add_days=2 if number == 4 else 0,
        batch_id=recorded.batch_id(number),
        now=recorded.recorded_start(recording, f"r{number} generate"),
    )
    expected = recorded.adjusted(
        recording / "dumps" / f"round{number}-generate.jsonl.gz", tmp_path, recorded.force_refetch(number)
    )
    assert recorded.differences(recording, expected, conf, tmp_path) == ""


@pytest.mark.parametrize("listed", [False, True], ids=["by scan", "by list"])
@pytest.mark.parametrize("number", ROUNDS)
def test_recorded_updatedb_table_is_reproduced(
    conf: Configuration, recording: Path, tmp_path: Path, number: int, listed: bool
) -> None:
    before = recorded.dump_before(recording, number, "updatedb")
    recorded.load(conf, before)
    if listed:
        recorded.make_list(conf, recorded.batch_id(number))
    updatedb(conf, recorded.batch_id(number))
    rows = recorded.read(before)
    expected = recorded.adjusted(
        recording / "dumps" / f"round{number}-updatedb.jsonl.gz",
        tmp_path,
        recorded.keep_inlinks(rows),
        recorded.keep_within(rows),
        recorded.modified_when_changed(rows),
    )
    assert recorded.differences(recording, expected, conf, tmp_path) == ""


def test_recorded_index_documents_are_reproduced(conf: Configuration, recording: Path, tmp_path: Path) -> None:
    recorded.load(conf, recording / "dumps" / "round4-updatedb.jsonl.gz")
    index(conf, "-all")
    expected = recorded.adjusted(recording / "dumps" / "round5-index.jsonl.gz", tmp_path, recorded.leave_out)
    assert recorded.differences(recording, expected, conf, tmp_path) == ""


@pytest.mark.parametrize("number", ROUNDS)
def test_recorded_parse_table_is_reproduced(conf: Configuration, recording: Path, tmp_path: Path, number: int) -> None:
    before = recorded.dump_before(recording, number, "parse")
    recorded.load(conf, before)
    parse(conf, recorded.batch_id(number))
    compared = recorded.not_of_tika(number)
    expected = recorded.adjusted(recording / "dumps" / f"round{number}-parse.jsonl.gz", tmp_path, compared)
    assert recorded.differences(recording, expected, conf, tmp_path, compared) == ""
