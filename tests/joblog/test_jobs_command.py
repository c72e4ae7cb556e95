"""The command jobs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nutch2py import Crawl
from nutch2py.cli import main
from nutch2py.joblog.job_entry import JobState


def test_jobs_command_prints_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = ["-D", f"storage.data.store=embedded:{tmp_path / 'crawldata'}"]
    (tmp_path / "seeds").write_text("http://127.0.0.1:9/\n")
    for words, code in (
        (["inject", str(tmp_path / "seeds")], 0),
        (["generate", "-batchId", "b"], 0),
        (["generate", "-batchId", "empty"], 1),
        (["parse", "none"], 1),
        (["readdb", "-stats"], 0),  # from the kept statistics: no job
        (["readdb", "-stats", "-exact"], 0),
    ):
        assert main([*words, *where]) == code
    capsys.readouterr()
    assert main(["jobs", *where]) == 0
    lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert [[line[1], line[2], line[3], line[7]] for line in lines] == [
        ["readdb", "-", "finished", "0"],
        ["parse", "none", "failed", "1"],
        ["generate", "empty", "finished", "1"],
        ["generate", "b", "finished", "0"],
        ["inject", "-", "finished", "0"],
    ]
    assert [lines[0][6], lines[4][6]] == ["1/1", "1"]
    assert lines[1][8].startswith("there is no batch none")
    assert main(["jobs", "-topN", "1", "-json", *where]) == 0
    entry = json.loads(capsys.readouterr().out)
    assert (entry["id"], entry["table_stats"]["rows"]) == (lines[0][0], 1)
    assert main(["jobs", "-id", lines[4][0], *where]) == 0
    text = capsys.readouterr().out
    assert {"job:\tinject", "exit code:\t0", "injector urls_new:\t1", "status null:\t1", "due:\t1"} <= {
        *text.splitlines()
    }
    assert main(["jobs", "-id", "none", *where]) == 1
    with Crawl(f"embedded:{tmp_path / 'crawldata'}") as crawl:
        assert {entry.state for entry in crawl.jobs()} == {JobState.FINISHED, JobState.FAILED}
