"""Names the add-on that keeps a whole fetch waiting: one that sleeps, waits or computes where all pages are fetched.

Everything that waits for the network shares one thread, the event loop's. Another one looks every second what that is
doing, and warns when it was often found in the same code of somebody else's.
"""

from __future__ import annotations

import sys
import threading
from collections import Counter
from types import FrameType
from typing import Self

from nutch2py.reporting import adopt, reporter, warn

_LOOK = 1.0  # seconds between two looks
_LOOKS = 10  # that have found the same add-on before it is named
_SHARE = 0.3  # of all looks
_NOT_THEIRS = sys.stdlib_module_names | {"nutch2py", "scrapy", "twisted"}


class LoopWatch:
    """Watches the thread that it was made in, while it is entered."""

    def __init__(self) -> None:
        self._thread = threading.get_ident()
        self._reporter = reporter()
        self._stop = threading.Event()
        self._watcher = threading.Thread(target=self._watch, name="loop watch", daemon=True)
        self._looks = 0
        self._found: Counter[str] = Counter()
        self._told: set[str] = set()

    def __enter__(self) -> Self:
        self._watcher.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._watcher.join()

    def _watch(self) -> None:
        adopt(self._reporter)
        while not self._stop.wait(_LOOK):
            self._look()

    def _look(self) -> None:
        self._looks += 1
        name, place = entry(sys._current_frames().get(self._thread))
        if not name:
            return
        self._found[name] += 1
        if name not in self._told and self._found[name] >= max(_LOOKS, _SHARE * self._looks):
            self._told.add(name)
            warn(
                f"{name} ({place}) has kept the whole fetch waiting for about {self._found[name] * _LOOK:.0f} of "
                f"{self._looks * _LOOK:.0f} s: let it wait by asyncio (await asyncio.sleep), or work in a thread "
                "(await asyncio.to_thread)"
            )


def entry(frame: FrameType | None) -> tuple[str, str]:
    """Return the function by which Scrapy, or the loop, came into code of somebody else's, and where it is in it.

    Empty when the loop runs nothing of such.
    """
    name = place = ""
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        if (module, frame.f_code.co_name) == ("asyncio.events", "_run"):  # what the loop runs began here
            return name, place
        if module.partition(".")[0] not in _NOT_THEIRS:
            name, place = f"{module}.{frame.f_code.co_qualname}", f"{frame.f_code.co_filename}:{frame.f_lineno}"
        frame = frame.f_back
    return "", ""
