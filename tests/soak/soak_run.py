"""A soak from its first round to its last: serves the web, starts the crawler, and notes each round."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.site.server import Reply, ScriptedSite
from tests.soak.measuring import Peaks, Watch, bytes_below
from tests.soak.memory_verdict import Row
from tests.soak.web import Web

_ROOT = Path(__file__).resolve().parents[2]
CHILD_MEGABYTES = 1024
SETTINGS: dict[str, str | int | float] = {
    "http.agent.name": "nutch2py-soak",
    "http.filter.ipaddress.exclude": "sitelocal,linklocal",
    "http.timeout": 3000,
    "http.time.limit": 6,
    "http.robots.503.defer.visits": "false",
    "fetcher.server.delay": 0,
    "fetcher.threads.fetch": 40,
    "parser.timeout": 3,
    "parser.child.memory.mb": CHILD_MEGABYTES,
    "generate.max.count": 4,
    "plugin.includes": "protocol-http|urlfilter-(regex|validator)|parse-(html|tika)|feed|index-(basic|anchor|more)"
    "|urlnormalizer-(pass|regex|basic)|scoring-opic",
}
"""Waits for hostile servers are short here; everything else is as shipped."""


_RULES = r"""-(?i)\.(gif|jpg|png|css|js)$
-[?*!@=]
-.*(/[^/]+)/[^/]+\1/[^/]+\1/
+^http://h[0-9]+\.example:[0-9]+/
"""
"""As shipped, but that no link or redirect leads out of the web."""


class WebSite(ScriptedSite):
    """Serves a :class:`Web`, all of its hosts on one port of the loopback. Nothing is noted, for that would grow."""

    def __init__(self, web: Web) -> None:
        super().__init__()
        self.web, self.requests, self.hostile = web, 0, 0

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> bool:
        lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
        path, host = lines[0].split(" ")[1], headers.get("host", "").partition(":")[0]
        self.requests += 1
        try:
            answer = await asyncio.to_thread(self.web.answer, host, path, self.port)
            if isinstance(answer, Reply):
                if ("ETag", headers.get("if-none-match", "")) in answer.headers:
                    answer = Reply(304, reason="Not Modified", keep=True)
                writer.write(answer.head() + answer.body)
                await writer.drain()
                return answer.keep
            self.hostile += 1
            for step in answer:
                if isinstance(step, bytes):
                    writer.write(step)
                    await writer.drain()
                else:
                    await asyncio.sleep(step)
        except asyncio.CancelledError:
            pass  # the soak is over: asyncio would show the error of a connection that it began itself
        return False


@dataclass
class Soak:
    """Plan of a soak, and its finished rounds. ``to``: a folder for table and index, which is to be empty."""

    web: Web
    to: Path
    pages: int
    properties: dict[str, str | int | float] = field(default_factory=dict)
    program: str = "tests.soak.crawler"
    rows: list[Row] = field(default_factory=list)
    ended: dict[str, Any] = field(default_factory=dict)
    warned: dict[str, int] = field(default_factory=dict)
    hostile: int = 0
    requests: int = 0

    def run(self, more: Callable[[int], bool], report: Callable[[Row, dict[str, Any]], None]) -> None:
        """Do rounds while ``more`` of their number is true; report each with the counters of its jobs."""
        temporary = self.to / "tmp"
        temporary.mkdir(parents=True, exist_ok=True)
        with WebSite(self.web) as site:
            with self._start(site.port, temporary) as process:
                try:
                    self._rounds(process, temporary, more, report)
                    process.wait(60)
                finally:
                    process.kill()
            self.hostile, self.requests = site.hostile, site.requests

    def _rounds(
        self,
        process: subprocess.Popen[str],
        temporary: Path,
        more: Callable[[int], bool],
        report: Callable[[Row, dict[str, Any]], None],
    ) -> None:
        began = time.monotonic()
        with Watch(process.pid, temporary) as watch:
            _answer(process)
            while more(len(self.rows)):
                start = time.monotonic()
                watch.taken()
                counters = _answer(process, "round")
                seconds = time.monotonic() - start
                row = self._row(began, seconds, counters, watch.look(), watch.taken(), temporary)
                self.rows.append(row)
                report(row, counters)
            last = _answer(process, "end")
            self.ended, self.warned = last["ended"], last["warned"]

    def _start(self, port: int, temporary: Path) -> subprocess.Popen[str]:
        hosts = self.to / "hosts"
        hosts.write_text("".join(self.web.hosts_file()), encoding="ascii")
        rules = self.to / "regex-urlfilter.txt"
        rules.write_text(_RULES, encoding="ascii")
        asked = {
            "store": f"embedded:{self.to / 'table'}",
            "properties": {
                **SETTINGS,
                "http.hosts.file": str(hosts),
                "urlfilter.regex.file": str(rules),
                "index.embedded.path": str(self.to / "index"),
                **self.properties,
            },
            "seeds": list(self.web.seeds(port, self.pages)),
            "batch": self.pages,
            "web": self.web.to_json(),
        }
        file = self.to / "asked.json"
        file.write_text(json.dumps(asked), encoding="utf-8")
        return subprocess.Popen(
            [sys.executable, "-m", self.program, str(file)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=_ROOT,
            env={**os.environ, "TMPDIR": str(temporary)},
        )

    def _row(
        self, began: float, seconds: float, counters: dict[str, Any], held: Any, peaks: Peaks, temporary: Path
    ) -> Row:
        return Row(
            number=len(self.rows) + 1,
            minutes=(time.monotonic() - began) / 60,
            seconds=seconds,
            generated=counters["generated"],
            pages=counters["fetched"].get("SUCCESS", 0),
            table_megabytes=bytes_below(self.to / "table") / (1 << 20),
            index_megabytes=bytes_below(self.to / "index") / (1 << 20),
            memory=held.anonymous,
            mapped=held.files,
            handles=held.handles,
            threads=held.threads,
            children=held.processes - 1,
            temporary_files=sum(1 for _ in temporary.iterdir()),
            peak_crawler=peaks.crawler,
            peak_child=peaks.child,
            peak_together=peaks.together,
            peak_handles=peaks.handles,
            peak_temporary=peaks.temporary,
        )


def _answer(process: subprocess.Popen[str], word: str = "") -> dict[str, Any]:
    assert process.stdin is not None
    assert process.stdout is not None
    if word:
        process.stdin.write(f"{word}\n")
        process.stdin.flush()
    line = process.stdout.readline()
    if not line:
        raise RuntimeError(f"the crawler has ended with {process.wait()}")
    answer: dict[str, Any] = json.loads(line)
    return answer
