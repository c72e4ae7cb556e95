"""Makes mrjob 0.7.4 (of 2020, pinned) importable with current Python versions.

It imports ``distutils`` (removed in Python 3.12) and ``pipes`` (removed in 3.13), of which it uses three functions, and
tries to import pyspark. The ``distutils`` of setuptools takes 0.1 s to import, pyspark 0.25 s, yaml 0.01 s. So every
import of mrjob in this package is inside ``with mrjob_importable():``.
"""

from __future__ import annotations

import re
import shlex
import shutil
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from types import ModuleType


def _parse_version(text: str) -> tuple[int, ...]:
    """Return the numbers of a version, as mrjob's use of ``LooseVersion`` for Hadoop versions expects."""
    return tuple(int(number) for number in re.findall(r"\d+", text))


def _create_module(name: str, **members: object) -> ModuleType:
    module = ModuleType(name)
    vars(module).update(members)
    return module


@contextmanager
def mrjob_importable() -> Iterator[None]:
    """Install the modules that mrjob imports, only for the block, so that other code finds the real ones or none."""
    places = {
        "distutils": _create_module("distutils", __path__=[]),
        "distutils.spawn": _create_module("distutils.spawn", find_executable=shutil.which),
        "distutils.version": _create_module("distutils.version", LooseVersion=_parse_version),
        "pipes": _create_module("pipes", quote=shlex.quote),
    }
    before = {name: sys.modules[name] for name in places if name in sys.modules}
    sys.modules.update(places)
    hidden = _ImportBlocker()
    sys.meta_path.insert(0, hidden)
    try:
        yield
    finally:
        sys.meta_path.remove(hidden)
        for name in places:
            sys.modules.pop(name, None)
        sys.modules.update(before)


class _ImportBlocker:
    """Hides optional dependencies of mrjob in this thread only; a plug-in in another thread may need them.

    spark-submit is passed to mrjob explicitly, and its configuration files are not used.
    """

    def __init__(self) -> None:
        self._thread = threading.get_ident()

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        """Leave other modules to the next finder."""
        if name in ("pyspark", "yaml") and threading.get_ident() == self._thread:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


class JobKeyMixin:
    """Mixin for runners: mrjob names its jobs by ``datetime.utcnow()``, which is deprecated."""

    def _make_unique_job_key(self, label: str | None = None, owner: str | None = None) -> str:
        label = label or self._label()  # type: ignore[attr-defined]
        owner = owner or self._owner()  # type: ignore[attr-defined]
        return f"{label}.{owner}.{datetime.now(UTC):%Y%m%d.%H%M%S.%f}"
