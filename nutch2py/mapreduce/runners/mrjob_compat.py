"""Lets mrjob 0.7.4, of 2020 and pinned, be used with today's Python.

It wants ``distutils`` (gone since Python 3.12) and ``pipes`` (gone since 3.13), of which it uses three functions, and
looks for pyspark by importing it. Where setuptools offers a ``distutils`` of its own, that costs 0.1 s; pyspark costs
0.25 s, and yaml 0.01 s. So every import of mrjob in this package stands in a ``with mrjob_importable():``.
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
    """Stand in for ``LooseVersion``: the numbers of a version, which is how mrjob compares those of Hadoop."""
    return tuple(int(number) for number in re.findall(r"\d+", text))


def _create_module(name: str, **members: object) -> ModuleType:
    module = ModuleType(name)
    vars(module).update(members)
    return module


@contextmanager
def mrjob_importable() -> Iterator[None]:
    """Put modules in place that mrjob imports, for the block alone: others shall find the real ones, or none."""
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
    """Finds none of what mrjob would only look for, in this thread; a plug-in that another one loads may need it.

    spark-submit is named to mrjob here, and none of its own configuration files is read.
    """

    def __init__(self) -> None:
        self._thread = threading.get_ident()

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        """Leave all but these to the next finder."""
        if name in ("pyspark", "yaml") and threading.get_ident() == self._thread:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


class JobKeyMixin:
    """For runners: mrjob names its jobs by ``datetime.utcnow()``, which Python will drop."""

    def _make_unique_job_key(self, label: str | None = None, owner: str | None = None) -> str:
        label = label or self._label()  # type: ignore[attr-defined]
        owner = owner or self._owner()  # type: ignore[attr-defined]
        return f"{label}.{owner}.{datetime.now(UTC):%Y%m%d.%H%M%S.%f}"
