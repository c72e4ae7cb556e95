"""Runs jobs as commands against a hostile server: their memory, leftovers, and the final state of rows."""

from __future__ import annotations

import contextlib
import os
import resource
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import NamedTuple, Self

from nutch2py.conf.configuration import Configuration
from nutch2py.records.webpage import Mark, ParseStatusCode, ProtocolStatusCode, WebPage
from nutch2py.table import TableQuery, open_store
from nutch2py.url.keys import reverse_url
from tests.processes import HEEDING, alive

_SAMPLE = 0.2  # seconds

PROPERTIES = {
    "http.agent.name": "nutch-test",
    "http.filter.ipaddress.exclude": "",
    # that of the tests' servers: redirects lead to other addresses, and are not to be followed there
    "http.filter.ipaddress.include": "127.0.64.0/18",
}


class Ending(NamedTuple):
    """Final state of a row: protocol status and parse result, as named by the tricks; ``indexed``: it has the mark."""

    fetched: str
    parsed: str
    indexed: bool


def proportional_megabytes(pid: int) -> float:
    """Return what a process holds, shared pages divided among those who share them; 0 when it is gone."""
    with contextlib.suppress(OSError), Path(f"/proc/{pid}/smaps_rollup").open("rb") as lines:
        return next((int(line.split()[1]) / 1024 for line in lines if line.startswith(b"Pss:")), 0.0)
    return 0.0


def session_of(leader: int) -> list[int]:
    """Return the processes of a session that live."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (entry / "stat").read_text().rpartition(")")[2].split()
            if int(words[3]) == leader and words[0] != "Z":
                found.append(int(entry.name))
    return found


class Peak:
    """Watches the memory of all processes of a session, from a thread; ``megabytes``: their peak in total."""

    def __init__(self, leader: int) -> None:
        self.megabytes = 0.0
        self._leader, self._stop = leader, threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def _watch(self) -> None:
        while not self._stop.wait(_SAMPLE):
            self.megabytes = max(self.megabytes, sum(map(proportional_megabytes, session_of(self._leader))))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


def processor_seconds() -> float:
    """Return what the children of this process that have ended took of a processor, with theirs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Commands:
    """Runs jobs as commands with a table, an index and a folder for temporary files of their own.

    ``megabytes``: the most that the processes of a command had; ``processor``: seconds of a processor by command.
    """

    def __init__(self, folder: Path, properties: dict[str, str]) -> None:
        self.temporary = folder / "tmp"
        self.temporary.mkdir(parents=True)
        self.folder, self.megabytes = folder, 0.0
        self.processor: dict[str, float] = {}
        self.properties = {
            **PROPERTIES,
            "storage.data.store": f"embedded:{folder / 'table'}",
            "index.embedded.path": str(folder / "index"),
            "hadoop.tmp.dir": str(self.temporary),
            **properties,
        }

    def words(self, *words: str) -> list[str]:
        """Return a command line."""
        options = [word for name, value in self.properties.items() for word in ("-D", f"{name}={value}")]
        return [sys.executable, "-c", HEEDING, *words, *options]

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        """Start a command in a session of its own."""
        environment = {**os.environ, "TMPDIR": str(self.temporary)}
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(
                self.words(*words), stdout=log, stderr=log, cwd=self.folder, env=environment, start_new_session=True
            )

    def run(self, *words: str) -> float:
        """Run a command successfully; return the seconds it took. Assert that no process or file is left."""
        began, before = time.monotonic(), processor_seconds()
        process = self.start(*words)
        with Peak(process.pid) as peak:
            process.wait()
        self.processor[words[0]] = processor_seconds() - before
        self.megabytes = max(self.megabytes, peak.megabytes)
        assert process.returncode == 0, f"{words}: {process.returncode}\n{self.log()[-3000:]}"
        self.assert_nothing_left(process.pid)
        return time.monotonic() - began

    def assert_nothing_left(self, leader: int) -> None:
        assert [pid for pid in session_of(leader) if alive(pid)] == []
        assert [*self.temporary.iterdir()] == []

    def log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")

    def round(self, seeds: list[str], *, sitemaps: bool = False, options: tuple[str, ...] = ()) -> dict[str, float]:
        """Inject seeds and run a round of jobs over them; return the seconds of each job."""
        (self.folder / "seeds").write_text("\n".join(seeds))
        kind, batch = (("-sitemap",), "sitemaps") if sitemaps else ((), "pages")
        commands = (
            ("inject", "seeds"),
            ("generate", "-batchId", batch, *kind),
            ("fetch", batch, *kind, *options),
            ("parse", batch, *kind),
            ("updatedb", batch),
            ("index", batch),
        )
        return {words[0]: self.run(*words) for words in commands}

    def endings(self, urls: list[str]) -> dict[str, Ending]:
        """Return how the rows of URLs ended."""
        conf = Configuration.load(overrides=self.properties)
        fields = frozenset({WebPage.protocol_status, WebPage.parse_status, WebPage.markers})
        names = {reverse_url(url): url for url in urls}
        found = {}
        for key, row in open_store(conf, WebPage).scan(TableQuery(fields)):
            if key in names:
                found[names[key]] = _ending(row)
        return found


def _ending(row: WebPage) -> Ending:
    protocol, parsed = row.protocol_status, row.parse_status
    fetched = ProtocolStatusCode(protocol.code).name if protocol is not None else ""
    name = ""
    if parsed is not None:
        success = parsed.major == ParseStatusCode.SUCCESS
        redirect = success and parsed.minor == ParseStatusCode.REDIRECT
        name = "redirect" if redirect else "success" if success else "failed"
    return Ending(fetched, name, Mark.INDEX in row.markers)
