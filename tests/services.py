"""Real servers for tests: instances run by scripts/services, removed at the end."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import pytest

from tests.processes import SessionProcess, alive

ROOT = Path(__file__).resolve().parent.parent
_LINES_OF_A_LOG = 60
needs_spark = pytest.mark.skipif(
    shutil.which("java") is None or importlib.util.find_spec("pyspark") is None or sys.version_info >= (3, 13),
    reason="Spark needs a JDK 17 on the PATH, pyspark (pip install 'nutch2py[spark]') and Python 3.11 or 3.12",
)


class _RemovalGuard:
    """Runs a command when this process ends without having released the guard, by SIGKILL, too.

    pytest-xdist kills its workers when a run is interrupted; their servers would run on.
    """

    _PROGRAM = (
        "import subprocess, sys, time\n"
        "if not sys.stdin.buffer.read(1):\n"
        "    for attempt in range(3):\n"  # a start that was under way may go on for a moment
        "        time.sleep(attempt)\n"
        "        subprocess.run(sys.argv[1:], stdin=subprocess.DEVNULL, check=False)\n"
    )

    def __init__(self, command: list[str]) -> None:
        self._process = SessionProcess(
            [sys.executable, "-S", "-E", "-c", self._PROGRAM, *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def release(self) -> None:
        """End the guard: what it would have removed is gone."""
        self._process.communicate(b"-")


class Service:
    """An instance of a server; it can be stopped, killed and started again while a test runs."""

    kind = ""
    """As scripts/services calls it."""
    environment: dict[str, str] = {}  # noqa: RUF012
    program = ROOT / "scripts" / "services"

    def __init__(self, name: str = "") -> None:
        self.name = name or f"test-{os.getpid()}-{int(time.time())}"
        self.endpoint = ""
        self._guard: _RemovalGuard | None = None

    def _command(self, action: str, *words: str) -> list[str]:
        return [str(self.program), action, self.kind, "--instance", self.name, *words]

    def services(self, action: str, *words: str) -> str:
        command = self._command(action, *words)
        environment = {**os.environ, **self.environment}
        done = subprocess.run(
            command, capture_output=True, encoding="utf-8", errors="replace", check=False, env=environment
        )
        assert done.returncode == 0, f"{' '.join(command)} failed:\n{done.stderr}"
        return done.stdout.strip()

    def start(self, *parts: str) -> None:
        """Start the parts that do not run; the server is removed when the tests end, however they end."""
        self._guard = self._guard or _RemovalGuard(self._command("remove"))
        self.endpoint = self.services("start", *parts)

    def stop(self, *parts: str) -> None:
        self.services("stop", *parts)

    def crash(self, *parts: str) -> None:
        """Kill some parts, or all; what shall be killed must run."""
        files = [self.folder / "run" / f"{part}.pid" for part in parts] or [*self.folder.glob("run/*.pid")]
        idle = [file.stem for file in files if not (file.exists() and alive(int(file.read_text())))]
        assert files, f"nothing of {self.kind} runs: there is nothing to crash"
        assert not idle, f"{', '.join(idle)} of {self.kind} does not run: there is nothing to crash"
        self.services("stop", "--crash", *parts)

    def remove(self) -> None:
        self.services("remove")
        if self._guard is not None:
            self._guard.release()
            self._guard = None

    @property
    def folder(self) -> Path:
        return ROOT / ".cache" / "services" / self.kind / self.name

    def logs(self) -> Iterator[tuple[str, str]]:
        """Give the end of what each of its processes said, for the report of a test that failed."""
        for path in sorted(self.folder.glob("log/*.out")):
            lines = path.read_text(errors="replace").splitlines()
            yield f"{self.kind} {path.name}", "\n".join(lines[-_LINES_OF_A_LOG:])


S = TypeVar("S", bound=Service)


@contextmanager
def running(server: S) -> Iterator[S]:
    """Start a server and remove it at the end; skip where there is no Java or Maven."""
    missing = [tool for tool in ("java", "mvn") if shutil.which(tool) is None]
    if missing:
        pytest.skip(f"{' and '.join(missing)} not on the PATH: a JDK 17 and Maven run the {server.kind} of this test")
    try:
        server.start()
        yield server
    finally:
        server.remove()
