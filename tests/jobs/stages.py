"""A crawl as it is before each job of its second round, and jobs run over it as processes that can be killed.

Before the second round the site has changed: pages that were fetched in the first are due again, and have lost links or
redirect. Write buffers are small, so that a kill falls between two flushes and not before the only one.
"""

from __future__ import annotations

import itertools
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from nutch2py.backends.embedded_index.index_directory import IndexDirectory
from nutch2py.conf.configuration import Configuration
from nutch2py.jobs.batches.batch_lists import BatchListStore
from nutch2py.records.webpage import DerivedRow, WebPage
from nutch2py.search.engines.embedded_searcher import EmbeddedSearcher
from nutch2py.table import open_store
from nutch2py.table.table_copy import copy_table
from tests.counted_kills import Kills
from tests.jobs import crawl
from tests.processes import wait_until

BATCH = "test-2"
JOBS = {
    "inject": ["inject", "SEEDS"],
    "generate": ["generate", "-topN", "24", "-adddays", "31", "-batchId", BATCH],
    "fetch": ["fetch", BATCH],
    "parse": ["parse", BATCH],
    "updatedb": ["updatedb", BATCH],
    "index": ["index", BATCH],
}
SCORES = {"scores": ["index", "-scores"]}
"""Jobs after these, and after a pagerank."""
SMALL_BUFFERS = {"gora.buffer.write.limit": "3", "storage.buffer.write.bytes": "2000", "index.embedded.batch": "4"}
State = dict[str, object]
_number = itertools.count()


def state(conf: Configuration) -> State:
    """Return all that a job may leave: the cells of the table, the notes of links that are gone, the documents."""
    table = crawl.table(conf)
    lists = BatchListStore(conf)
    notes = {f"links gone {key}": urls for key, urls in lists.iter_dropped_links(lists.dropped_links_range("-all"))}
    documents: State = {}
    if (IndexDirectory.from_conf(conf).path / "index.json").exists():
        searcher = EmbeddedSearcher(conf)
        documents = {f"document {key}": searcher.get_document(key) for key in table}
        assert searcher.count() == sum(document is not None for document in documents.values())
    return {**table, **notes, **documents}


class Crawl:
    """A crawl, its seeds, and commands run over it. ``settings``: additional properties."""

    def __init__(self, folder: Path, seeds: Path, **settings: str) -> None:
        self.folder, self.seeds = folder, seeds
        store = {"storage.data.store": f"embedded:{folder}"}
        self.settings = {
            **crawl.SETTINGS,
            **SMALL_BUFFERS,
            **store,
            **{name.replace("__", "."): value for name, value in settings.items()},
        }

    @property
    def conf(self) -> Configuration:
        """The configuration that commands get."""
        return Configuration.load(overrides=self.settings)

    @property
    def said(self) -> str:
        """Output of the last command so far."""
        return self._log.read_text()

    @property
    def _log(self) -> Path:
        return self.folder.with_name(f"{self.folder.name}.log")

    def start(self, words: list[str], runner: str = "inline") -> subprocess.Popen[bytes]:
        """Start a command in a process group of its own; return when its job has said that it starts."""
        settings = {**self.settings, "mapreduce.runner": runner}
        options = [word for name, value in settings.items() for word in ("-D", f"{name}={value}")]
        words = [str(self.seeds) if word == "SEEDS" else word for word in words]
        command = [sys.executable, "-m", "nutch2py.cli", *words, *options]
        with self._log.open("wb") as log:
            process = subprocess.Popen(
                command, stdout=log, stderr=subprocess.STDOUT, start_new_session=True, cwd=self.folder.parent
            )
        wait_until(lambda: self._log.stat().st_size or process.poll() is not None)
        return process

    def run(self, words: list[str], runner: str = "inline") -> float:
        """Run a command to its end; return the seconds from the first line of its job to the last."""
        process = self.start(words, runner)
        started = time.time()
        code = process.wait(timeout=300)
        assert code == 0, self.said
        return self._log.stat().st_mtime - started

    def kill(self, words: list[str], runner: str, kills: Kills, after: float) -> float | None:
        """Run a command, and kill it and all that it started some seconds after its job began.

        Return None when that hit; otherwise the seconds that the job took, which were less.
        """
        process = self.start(words, runner)
        started = time.time()
        with suppress(subprocess.TimeoutExpired):
            process.wait(after)
        hit = kills.kill(process, group=True, finished=lambda: "finished at" in self.said)
        return None if hit else self._log.stat().st_mtime - started

    def copy(self, folder: Path) -> Crawl:
        """Copy the whole crawl to a folder that does not exist yet."""
        shutil.copytree(self.folder, folder)
        return Crawl(folder, self.seeds)


Stages = Callable[[str], tuple[Crawl, State]]


def make_stages(site: crawl.Site, folder: Path) -> Stages:
    """Crawl; give, for a job, the crawl as it is before that job of the second round, and the state after it."""
    seeds = folder / "seeds.txt"
    seeds.write_text("".join(f"{site.url}/{number}\n" for number in range(0, 60, 3)))
    made: dict[str, tuple[Crawl, State]] = {}
    current = Crawl(folder / "crawldata", seeds)
    current.folder.mkdir()

    def note(job: str) -> None:
        before = current.copy(folder / f"before-{job}")
        current.run((JOBS | SCORES)[job])
        made[job] = before, state(current.conf)

    note("inject")
    for words in (
        ["generate", "-topN", "12", "-batchId", "test-1"],
        ["fetch", "test-1"],
        ["parse", "test-1"],
        ["updatedb", "test-1"],
    ):
        current.run(words)
    site.change()
    for job in ("generate", "fetch", "parse", "updatedb", "index"):
        note(job)
    current.run(["pagerank"])
    note("scores")
    _check(made)
    return made.__getitem__


def _check(made: dict[str, tuple[Crawl, State]]) -> None:
    """Fail unless links are lost to a redirect and to a parse, inlinks go with them, and documents are indexed."""
    notes = {job: {name for name in after if name.startswith("links gone")} for job, (_, after) in made.items()}
    assert notes["fetch"], "no page that was fetched again redirects"
    assert notes["parse"] > notes["fetch"], "no page that was parsed again has lost a link"
    assert not notes["updatedb"]
    rows = {key: cells for key, cells in made["parse"][1].items() if isinstance(cells, dict)}
    lost = 0
    for key, cells in rows.items():
        after = made["updatedb"][1][key]
        assert isinstance(after, dict)
        lost += any(column.startswith("il:") and column not in after for column in cells)
    assert lost > 5, f"{lost} rows lost an inlink"
    documents = [name for name in made["index"][1] if name.startswith("document") and made["index"][1][name]]
    assert len(documents) > 5, f"{len(documents)} documents"
    changed = [name for name in documents if made["scores"][1][name] != made["index"][1][name]]
    assert len(changed) > 5, f"{len(changed)} documents have another score"


def on_hbase(stage: Crawl, hbase: Any, folder: Path) -> Crawl:
    """Copy a crawl, its batch lists included, to tables of its own in HBase."""
    crawl_id = f"stage{next(_number)}"
    settings = {
        "storage.data.store": hbase.address(),
        "storage.crawl.id": crawl_id,
        "hbase.thrift.write.rows": "5",
        "hbase.thrift.scan.rows": "5",
        "index.embedded.path": str(folder / "index"),
    }
    folder.mkdir(exist_ok=True)
    copy = Crawl(folder / "work", stage.seeds, **settings)
    for record in (WebPage, DerivedRow):
        source, target = open_store(stage.conf, record), open_store(copy.conf, record)
        target.create()
        if source.exists():
            copy_table(source, target)
    return copy
