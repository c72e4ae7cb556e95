"""Temporary servers of a measurement: an instance of scripts/services, and the CPU time of its processes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from bench.measuring import Cost, cpu_seconds

_ROOT = Path(__file__).resolve().parent.parent
_PARTS = {"hbase": ("master", "gateway"), "hadoop": ("cluster",)}


@dataclass(frozen=True)
class Service:
    """A running instance. ``address``: the address that its start has printed."""

    kind: str
    instance: str
    address: str

    def processes(self) -> dict[str, int]:
        """Return the process ids of its parts."""
        run = _ROOT / ".cache" / "services" / self.kind / self.instance / "run"
        parts = _PARTS.get(self.kind, (self.kind,))
        return {part: int((run / f"{part}.pid").read_text(encoding="ascii")) for part in parts}

    def seconds(self) -> dict[str, float]:
        """Return the CPU seconds of its parts so far."""
        return {part: cpu_seconds([pid]) for part, pid in self.processes().items()}

    def used(self) -> float:
        """Return its CPU seconds so far."""
        return sum(self.seconds().values())

    def cost_of(self, call: Callable[[], Cost]) -> tuple[Cost, float]:
        """Return the cost of a call including the server's CPU seconds, and these separately."""
        before = self.used()
        cost = call()
        servers = self.used() - before
        return replace(cost, cpu=cost.cpu + servers), servers


@contextmanager
def service(kind: str, name: str = "", data: Path | None = None) -> Iterator[Service]:
    """Start an instance with its data in the folder ``data``; stop and remove it at the end."""
    instance = f"bench-{name}{'-' if name else ''}{os.getpid()}"
    options = [kind, "--instance", instance, *([] if data is None else ["--data", str(data)])]
    services = str(_ROOT / "scripts" / "services")
    try:
        started = subprocess.run([services, "start", *options], stdout=subprocess.PIPE, text=True, check=False)
        if started.returncode:
            raise SystemExit(f"{kind} did not start; scripts/services says why")
        yield Service(kind, instance, started.stdout.strip().splitlines()[-1])
    finally:
        subprocess.run([services, "remove", *options], check=True, stdout=sys.stderr)
