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

from nutch2py.support.reporting import current_reporter, set_reporter, warn

_SAMPLE_INTERVAL = 1.0  # seconds between two looks
_MIN_SAMPLES = 10  # that have found the same add-on before it is named
_MIN_SHARE = 0.3  # of all looks
_TRUSTED_PACKAGES = sys.stdlib_module_names | {"nutch2py", "scrapy", "twisted"}


class LoopWatchdog:
    """Watches the thread that it was made in, while it is entered."""

    def __init__(self) -> None:
        self._loop_thread_id = threading.get_ident()
        self._reporter = current_reporter()
        self._stop = threading.Event()
        self._sampler_thread = threading.Thread(target=self._watch, name="loop watch", daemon=True)
        self._sample_count = 0
        self._hits: Counter[str] = Counter()
        self._reported: set[str] = set()

    def __enter__(self) -> Self:
        self._sampler_thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._sampler_thread.join()

    def _watch(self) -> None:
        set_reporter(self._reporter)
        while not self._stop.wait(_SAMPLE_INTERVAL):
            self._sample()

    def _sample(self) -> None:
        self._sample_count += 1
        name, place = find_addon_frame(sys._current_frames().get(self._loop_thread_id))
        if not name:
            return
        self._hits[name] += 1
        if name not in self._reported and self._hits[name] >= max(_MIN_SAMPLES, _MIN_SHARE * self._sample_count):
            self._reported.add(name)
            warn(
                f"{name} ({place}) has kept the whole fetch waiting for about {self._hits[name] * _SAMPLE_INTERVAL:.0f} of "
                f"{self._sample_count * _SAMPLE_INTERVAL:.0f} s: let it wait by asyncio (await asyncio.sleep), or work in a thread "
                "(await asyncio.to_thread)"
            )


def find_addon_frame(frame: FrameType | None) -> tuple[str, str]:
    """Return the function by which Scrapy, or the loop, came into code of somebody else's, and where it is in it.

    Empty when the loop runs nothing of such.
    """
    name = place = ""
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        if (module, frame.f_code.co_name) == ("asyncio.events", "_run"):  # what the loop runs began here
            return name, place
        if module.partition(".")[0] not in _TRUSTED_PACKAGES:
            name, place = f"{module}.{frame.f_code.co_qualname}", f"{frame.f_code.co_filename}:{frame.f_lineno}"
        frame = frame.f_back
    return "", ""
