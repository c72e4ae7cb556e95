"""The units of systemd and the crontab in docs/systemd: their commands are commands, and do what the units say."""

from __future__ import annotations

import re
import shlex
import shutil
import signal
import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path

import pytest

from nutch2py.cli import all_command_parsers
from tests.conftest import ROOT
from tests.processes import HEEDING, wait_until
from tests.site.server import Reply, ScriptedSite

FOLDER = ROOT / "docs" / "systemd"
PROGRAM = "/opt/nutch2py/bin/nutch2py"
UNITS = sorted(path for path in FOLDER.iterdir() if path.suffix)


def unit(name: str) -> ConfigParser:
    parser = ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(FOLDER / name)
    return parser


def command_lines() -> list[list[str]]:
    services = [unit(path.name)["Service"] for path in UNITS if path.suffix == ".service"]
    lines = [section["ExecStart"] for section in services]
    lines += re.findall(r"&& (.*)", (FOLDER / "crontab").read_text(encoding="utf-8"))
    return [shlex.split(line) for line in lines]


@pytest.mark.parametrize("words", command_lines(), ids=" ".join)
def test_systemd_units_run_existing_commands(words: list[str]) -> None:
    program, name, *rest = words
    assert program == PROGRAM
    all_command_parsers()[name].parse_args(rest)


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_systemd_units_are_well_formed(path: Path) -> None:
    found = unit(path.name)
    assert found["Unit"]["Description"].startswith("nutch2py: ")
    if shutil.which("systemd-analyze"):
        done = subprocess.run(["systemd-analyze", "verify", path], capture_output=True, text=True, check=False)
        assert not [line for line in done.stderr.splitlines() if "Unknown" in line or "Failed to parse" in line]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not on the PATH")
@pytest.mark.parametrize("name", ["nutch2py.service", "nutch2py-crawl.service"])
def test_services_are_hardened(name: str) -> None:
    command = ["systemd-analyze", "security", "--offline=true", "--threshold=45", str(FOLDER / name)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if "unrecognized option" in done.stderr:
        pytest.skip("this systemd-analyze cannot judge files")
    assert done.returncode == 0, done.stdout[-200:] + done.stderr


def test_timer_starts_existing_service() -> None:
    assert (FOLDER / "nutch2py-crawl.timer").with_suffix(".service").is_file()
    assert unit("nutch2py-crawl.service")["Service"]["SuccessExitStatus"] == "1"  # nothing is due


def test_crawl_stopped_by_unit_resumes_at_next_start(site: ScriptedSite, tmp_path: Path) -> None:
    """By the words of the unit, with the signal of the unit."""
    site.on("/", Reply(200, b"<html><a href=/a>a</a> words", content_type="text/html"))
    site.on("/a", Reply(pieces=iter(lambda: b"word ", b""), pause=0.05, length=False))
    folder = tmp_path / "conf"
    folder.mkdir()
    seeds = folder / "seeds.txt"
    seeds.write_text(site.url("/") + "\n", encoding="utf-8")
    section = unit("nutch2py-crawl.service")["Service"]
    places = {"/etc/nutch2py": str(folder), "/var/lib/nutch2py": str(tmp_path)}
    line = section["ExecStart"].removeprefix(f"{PROGRAM} ")
    for old, new in places.items():
        line = line.replace(old, new)
    options = ["-D", "http.filter.ipaddress.exclude=", "-D", "fetcher.server.delay=0"]
    words = [sys.executable, "-c", HEEDING, *shlex.split(line), *options]
    with subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as crawl:
        wait_until(lambda: site.gets("/a") == 1 or crawl.poll() is not None)
        crawl.send_signal(getattr(signal, section["KillSignal"]))
        said = crawl.communicate(timeout=int(section["TimeoutStopSec"]))[0]
    assert crawl.returncode == 130, said
    site.on("/a", Reply(200, b"<html>words", content_type="text/html"))
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("1 page fetched ")
    assert site.gets("/") == 1
    assert "FetcherJob" in (tmp_path / "crawl.log").read_text(encoding="utf-8")
