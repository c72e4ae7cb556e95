"""--log-file: what jobs and their tasks say, with time, level, job and batch, and without secrets."""

from __future__ import annotations

import json
import logging
import os
import re
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from nutch2py.cli import main
from nutch2py.support import log_file
from nutch2py.support.reporting import Reporter, capture_reporting, log_line, use_reporter

SECRET = "s3cret-of-solr"


def test_every_line_has_timestamp_and_level(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "log"
    (tmp_path / "seeds").write_text("http://127.0.0.1:9/\nno url\n")
    where = ["-D", f"storage.data.store=embedded:{tmp_path / 'crawldata'}", "-D", f"solr.auth.password={SECRET}"]
    assert main(["--log-file", str(file), "inject", str(tmp_path / "seeds"), *where]) == 0
    shown = capsys.readouterr()
    lines = file.read_text().splitlines()
    head = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (INFO|WARNING|ERROR) (\S+) (\S+) (.*)")
    found = [head.fullmatch(line) for line in lines]
    assert all(found)
    assert [each[4] for each in found if each] == shown.out.splitlines()
    assert {each[2] for each in found if each} == {"-", "inject"}  # a task reports an invalid seed
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert main(["parse", f"none-{SECRET}", "--log-file", str(file), "--log-format", "json", *where]) == 1
    records = [json.loads(line) for line in file.read_text().splitlines()[len(lines) :]]
    assert records[-1]["level"] == "ERROR"
    assert records[-1]["message"].startswith("there is no batch none-********")
    assert SECRET not in file.read_text()
    assert log_file.LOG_FILE_VARIABLE not in os.environ
    assert main(["version", "--log-file", str(tmp_path)]) == 255


def test_task_processes_write_to_log_file(tmp_path: Path) -> None:
    """A plug-in's Python log records in a local task are written to the file, with job and batch, masked."""
    file = tmp_path / "log"
    code = (
        "import logging\\n"
        "from nutch2py.support import log_file\\n"
        f"log_file.attach_log_handler(['{SECRET}'])\\n"
        f"logging.getLogger('loud').warning('with the {SECRET}')\\n"
        "logging.getLogger('loud').info('not this')\\n"
    ).replace("\\n", "\n")
    log_file.open_log(file, "json")
    try:
        with log_file.log_job_context("fetch", "b"):
            environment = {**os.environ, **log_file.log_job_environment()}
            subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, env=environment)
        log_file.write_log_lines("INFO", "afterwards\n\n")
        logging.getLogger("of.this.process").error("an error")
    finally:
        log_file.close_log()
    records = [json.loads(line) for line in file.read_text().splitlines()]
    assert [[each[name] for name in ("level", "job", "batch", "message")] for each in records] == [
        ["WARNING", "fetch", "b", "loud: with the ********"],
        ["INFO", "", "", "afterwards"],
        ["ERROR", "", "", "of.this.process: an error"],
    ]
    log_file.write_log_lines("INFO", "nowhere")
    assert len(file.read_text().splitlines()) == 3


def test_jobs_of_two_threads_log_their_own_job_and_batch(tmp_path: Path) -> None:
    """Also in threads that a job starts; a library's thread has no job while several run."""
    file, both_run = tmp_path / "log", threading.Barrier(2, timeout=30)
    records: dict[str, str] = {}

    def run(job: str, batch: str) -> None:
        with log_file.log_job_context(job, batch), use_reporter(Reporter()):
            both_run.wait()
            with ThreadPoolExecutor(1, initializer=capture_reporting()) as pool:
                pool.submit(log_line, f"in a thread of {job}").result()
            with ThreadPoolExecutor(1) as pool:
                pool.submit(logging.getLogger("library").warning, "of any").result()
            logging.getLogger("plugin").warning("of %s", job)
            records[job] = log_file.log_job_environment()[log_file.LOG_JOB_VARIABLE]
            both_run.wait()

    log_file.open_log(file, "json")
    try:
        threads = [threading.Thread(target=run, args=each) for each in (("fetch", "1"), ("parse", "2"))]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    finally:
        log_file.close_log()
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert sorted((row["job"], row["batch"], row["message"]) for row in rows) == [
        ("", "", "library: of any"),
        ("", "", "library: of any"),
        ("fetch", "1", "in a thread of fetch"),
        ("fetch", "1", "plugin: of fetch"),
        ("parse", "2", "in a thread of parse"),
        ("parse", "2", "plugin: of parse"),
    ]
    assert records == {"fetch": "fetch\t1", "parse": "parse\t2"}
    assert log_file.LOG_JOB_VARIABLE not in os.environ


def test_quiet_command_prints_result_and_warnings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "seeds").write_text("http://127.0.0.1:9/\nno url\n")
    where = ["-D", f"storage.data.store=embedded:{tmp_path / 'crawldata'}", "-D", "http.filter.ipaddress.exclude="]
    file = tmp_path / "log"
    assert main(["-q", "inject", str(tmp_path / "seeds"), "--log-file", str(file), *where]) == 0
    shown = capsys.readouterr()
    assert shown.out == ""
    assert all(line.startswith("WARN ") for line in shown.err.splitlines())
    assert "InjectorJob: " in file.read_text()  # the file has all
    assert main(["readdb", "-stats", "--quiet", *where]) == 0
    assert "TOTAL urls:\t1" in capsys.readouterr().out
    assert main(["parse", "none", "-q", *where]) == 1
    assert "there is no batch none" in capsys.readouterr().err


def test_verbose_command_prints_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "seeds").write_text("http://127.0.0.1:9/\n")
    where = ["-D", f"storage.data.store=embedded:{tmp_path / 'crawldata'}", "-D", f"solr.auth.password={SECRET}"]
    level = logging.getLogger().level
    file = tmp_path / "log"
    assert main(["inject", str(tmp_path / "seeds"), "-v", "--log-file", str(file), *where]) == 0
    shown = capsys.readouterr()
    assert ": finished at" in shown.out
    assert "INFO nutch2py: configuration: " in shown.err
    assert "injector urls_injected = 1" in shown.err
    assert "injector urls_injected = 1" in file.read_text()
    assert SECRET not in shown.err + shown.out
    assert logging.getLogger().level == level
    assert main(["inject", str(tmp_path / "seeds"), *where]) == 0
    assert capsys.readouterr().err == ""
    assert main(["inject", str(tmp_path / "seeds"), "-v", "-q", *where]) == 255
