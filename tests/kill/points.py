"""Points at which a command can be struck: before and after each thing that it makes durable, and each page parsed.

This file is copied as ``sitecustomize.py`` into a folder on the path of every process that a struck command starts, so
it runs first in all of them, and uses nothing but the standard library. Without ``NUTCH2PY_STRIKE`` in the
environment it does nothing. That names a folder:

- ``plan.json``: ``at`` (the start of the point's name), ``number`` (the first point that counts), ``task`` (only in
  a process that the driver has started), ``do`` (see :func:`_strike`), ``limit``;
- ``points``: one line of 32 bytes for each point that was reached, in the order over all processes;
- ``struck``: made by the first process that strikes, with the name of the point; ``go``: ends a hold.
"""

from __future__ import annotations

import functools
import importlib.abc
import importlib.machinery
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

FOLDER, DRIVER = "NUTCH2PY_STRIKE", "NUTCH2PY_STRIKE_DRIVER"
LINE = 32
POINTS = {
    "nutch2py.table.embedded.embedded_batch": [("EmbeddedBatch", "_write", "write")],
    "nutch2py.table.embedded.embedded_store": [("EmbeddedStore", "compare_and_set", "lock")],
    "nutch2py.table.embedded.storage.table_files": [("TableFiles", "write_contents", "contents")],
    "nutch2py.table.hbase.hbase_batch": [("HBaseBatch", "_write", "write")],
    "nutch2py.table.hbase.hbase_due_update": [("HBaseDueUpdater", "write", "listing")],
    "nutch2py.table.hbase.hbase_store": [("HBaseStore", "compare_and_set", "lock")],
    "nutch2py.indexer.writers.embedded_writer": [
        ("EmbeddedIndexWriter", "_commit", "commit"),
        ("EmbeddedIndexWriter", "_commit_scores", "scores"),
    ],
    "nutch2py.indexer.writers.solr_writer": [
        ("SolrIndexWriter", "_flush", "send"),
        ("_SolrCollection", "commit", "commit"),
    ],
    "nutch2py.parser.worker.parse_worker": [("_RequestHandler", "handle", "parse")],
    "nutch2py.joblog.job_recorder": [("JobRecorder", "_write", "log")],
}
"""Module -> (class, method, name of the point). A write of the job log is one point; the store's own is none then."""
_INSIDE = threading.local()


class _Striker:
    """The points of this process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.driver = int(os.environ.setdefault(DRIVER, str(os.getpid())))
        self.plan: dict[str, Any] = json.loads((folder / "plan.json").read_text())
        self.log = os.open(folder / "points", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        if (
            os.getpid() == self.driver
        ):  # shells let their children in the background ignore it, and so the harness's own
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def reach(self, name: str) -> None:
        """Note a point; strike if it is the one."""
        os.write(self.log, name[: LINE - 1].ljust(LINE - 1).encode() + b"\n")
        number = os.lseek(self.log, 0, os.SEEK_CUR) // LINE - 1
        plan = self.plan
        if not plan or number < plan["number"] or not name.startswith(plan["at"]):
            return
        if plan["task"] and os.getpid() == self.driver:
            return
        try:
            struck = os.open(self.folder / "struck", os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        except FileExistsError:  # another process, or this one before
            return
        os.write(struck, f"{number} {name}".encode())
        os.close(struck)
        self._strike(plan["do"])

    def _strike(self, what: str) -> None:
        if what == "group":
            os.killpg(self.driver, signal.SIGKILL)
        elif what == "driver":
            os.kill(self.driver, signal.SIGKILL)
        elif what == "self":
            os.kill(os.getpid(), signal.SIGKILL)
        elif what in ("SIGINT", "SIGTERM"):
            os.kill(self.driver, getattr(signal, what))
        elif what == "hold":
            until = time.monotonic() + 300
            while not (self.folder / "go").exists() and time.monotonic() < until:
                time.sleep(0.01)
        elif what == "size":
            import resource

            resource.setrlimit(resource.RLIMIT_FSIZE, (self.plan["limit"], resource.RLIM_INFINITY))
        elif what == "fsync":
            (self.folder / "fsync").touch()


def _watched(method: Callable[..., Any], name: str, striker: _Striker) -> Callable[..., Any]:
    @functools.wraps(method)
    def run(*arguments: Any, **named: Any) -> Any:
        if getattr(_INSIDE, "log", False):
            return method(*arguments, **named)
        striker.reach(f"{name} before")
        _INSIDE.log = name == "log"
        try:
            result = method(*arguments, **named)
        finally:
            _INSIDE.log = False
        striker.reach(f"{name} after")
        return result

    return run


class _Finder(importlib.abc.MetaPathFinder):
    """Finds modules as Python does, and puts points into those of :data:`POINTS` when they have run."""

    def __init__(self, striker: _Striker) -> None:
        self.striker = striker

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name not in POINTS:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def run(module: ModuleType) -> None:
            execute(module)
            for owner, method, point in POINTS[name]:
                holder = getattr(module, owner)
                setattr(holder, method, _watched(getattr(holder, method), point, self.striker))

        spec.loader.exec_module = run  # type: ignore[method-assign]
        return spec


if FOLDER in os.environ:
    sys.meta_path.insert(0, _Finder(_Striker(Path(os.environ[FOLDER]))))
