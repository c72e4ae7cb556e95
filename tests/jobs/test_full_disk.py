"""A disk that takes nothing more, wherever a command writes: named with what to do, and nothing is done by halves.

The disk is a library between program and system (:mod:`tests.failing_disk`), so that each number of the system's and
each place can be had alone. Afterwards the same command, with space again, ends as if nothing had been.
"""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from nutch2py.cli import main
from nutch2py.conf.configuration import Configuration
from nutch2py.records.webpage import Mark
from tests.failing_disk import failing_disk, library
from tests.jobs import crawl
from tests.jobs.stages import BATCH, Crawl, State, state

SPACE = {
    errno.ENOSPC: ("no space is left", "free some space"),
    errno.EDQUOT: ("quota is used up", "raise the quota"),
    errno.EFBIG: ("no file may grow", "ulimit -f"),
    errno.EROFS: ("read-only", "mount it for writing"),
}


class Case(NamedTuple):
    """A command, the part of the paths that cannot be written, and what it has to say. ``says``: the place it names."""

    words: str
    below: str
    code: int
    says: str
    runner: str = "inline"


CASES = {
    "table": Case("updatedb B", "/crawl/webpage/", 4, "webpage in "),
    "batch lists": Case("updatedb B", "/crawl/batch/", 4, "batch in "),
    "index": Case("index B", "/crawl/index/", 5, "crawl/index"),
    "index of the local runner": Case("index B", "/crawl/index/", 5, "crawl/index", "local"),
    "CSV": Case("index B -D plugin.includes=PLUGINS|indexer-(csv|embedded)", "/csvindexwriter/", 5, "csvindexwriter"),
    "WARC": Case("fetch B -warc WORK/warc", "/warc/", 4, "/warc"),
    "dump": Case("readdb -dump WORK/dump", "/dump", 4, "/dump"),
    "exporttable": Case("exporttable WORK/table.json.gz", "table.json.gz", 4, "table.json.gz"),
    "temporary folder": Case("parse B", "/nutch2py-job-", 4, "TMPDIR"),
    "temporary folder of the local runner": Case("updatedb B", "/nutch2py-job-", 4, "TMPDIR", "local"),
    "log of the job": Case("inject WORK/seeds.txt", "/said", 4, "standard output"),
}  # fmt: skip


class Site:
    """Crawls by job: as each is before its round's job, made in this process."""

    def __init__(self, folder: Path, site: crawl.Site) -> None:
        self.folder, self.disk = folder, library(folder)
        seeds = folder / "seeds.txt"
        seeds.write_text("".join(f"{site.url}/{number}\n" for number in range(0, 60, 3)))
        whole = Crawl(folder / "crawl", seeds)
        whole.folder.mkdir()
        self.after: dict[str, State] = {}
        options = [word for name, value in whole.settings.items() for word in ("-D", f"{name}={value}")]
        for words in (["inject", str(seeds)], ["generate", "-batchId", BATCH], *([job, BATCH] for job in _OF_A_BATCH)):
            shutil.copytree(whole.folder, folder / f"before-{words[0]}")
            assert main([*words, *options]) == 0
            self.after[words[0]] = state(whole.conf)
        shutil.copytree(whole.folder, folder / "before-readdb")
        shutil.copytree(whole.folder, folder / "before-exporttable")


_PLUGINS = Configuration.load().get_trimmed("plugin.includes")
_OF_A_BATCH = ("fetch", "parse", "updatedb", "index")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with crawl.changing_site() as served:
        made = Site(tmp_path_factory.mktemp("full"), served)
        if made.disk is None:
            pytest.skip("there is no C compiler")
        yield made


def run(work: Path, case: Case, crawled: Crawl, disk: dict[str, str]) -> tuple[int, str]:
    """Run the command; return its exit code and what it said on standard error."""
    settings = {**crawled.settings, "mapreduce.runner": case.runner}
    options = [word for name, value in settings.items() for word in ("-D", f"{name}={value}")]
    given = case.words.replace("WORK", str(work)).replace("PLUGINS", _PLUGINS)
    words = [BATCH if word == "B" else word for word in given.split()]
    temporary = work / "tmp"
    temporary.mkdir(exist_ok=True)
    with (work / "said").open("wb") as said:
        done = subprocess.run(
            [sys.executable, "-m", "nutch2py.cli", *words, *options],
            stdout=said, stderr=subprocess.PIPE, cwd=work, text=True, check=False,
            env={**os.environ, "TMPDIR": str(temporary), **disk},
        )  # fmt: skip
    assert not [*temporary.iterdir()]
    return done.returncode, done.stderr


def test_task_unable_to_report_has_disk_checked(site: Site, tmp_path: Path) -> None:
    assert site.disk is not None
    words = (
        "from pathlib import Path; from nutch2py.support.disk_errors import probe_disk; "
        f"print(probe_disk(Path({str(tmp_path)!r})))"
    )
    command = [sys.executable, "-c", words]
    for disk, message in (({}, "None"), (failing_disk(site.disk, errno.ENOSPC, "/.tried-"), "no space is left for ")):
        done = subprocess.run(command, env={**os.environ, **disk}, capture_output=True, text=True, check=True)
        assert done.stdout.startswith(message)
        assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize(
    ("name", "number"),
    [(name, errno.ENOSPC) for name in CASES]
    + [(name, number) for name in ("index", "exporttable") for number in SPACE if number != errno.ENOSPC],
)
def test_full_disk_ends_job_with_reason(site: Site, tmp_path: Path, name: str, number: int) -> None:
    case = CASES[name]
    job = case.words.split()[0]
    shutil.copytree(site.folder / f"before-{job}", tmp_path / "crawl")
    shutil.copy(site.folder / "seeds.txt", tmp_path)
    crawled = Crawl(tmp_path / "crawl", tmp_path / "seeds.txt")
    assert site.disk is not None
    code, said = run(tmp_path, case, crawled, failing_disk(site.disk, number, case.below))
    what, repair = SPACE[number]
    errors = [line for line in said.splitlines() if line.startswith("nutch2py: ")]
    assert (code, len(errors)) == (case.code, 1), said
    assert "Traceback" not in said
    assert case.says in errors[0]
    if name not in ("table", "batch lists"):  # LMDB reports some of them as an input/output error
        assert what in errors[0]
        assert repair in errors[0]
    marks = f"mk:{Mark.INDEX.value}"
    if job == "index":
        assert not [key for key, cells in state(crawled.conf).items() if isinstance(cells, dict) and marks in cells]
    code, said = run(tmp_path, case, crawled, {})
    assert code == 0, said
    if job in site.after:
        assert state(crawled.conf) == site.after[job]
