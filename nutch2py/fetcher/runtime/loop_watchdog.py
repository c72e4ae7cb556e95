"""Detects add-ons that block the event loop: by sleeping, waiting or computing in it.

All network I/O shares the event loop's thread. A second thread samples that thread every second, and warns when it
often finds the same third-party code.
"""

from __future__ import annotations

import sys
import threading
from collections import Counter
from types import FrameType
from typing import Self

from nutch2py.support.reporting import capture_reporting, warn

SAMPLE_INTERVAL = 1.0
"""Seconds between samples."""
_MIN_SAMPLES = 10  # samples with the same add-on before a warning
_MIN_SHARE = 0.3  # share of all samples
_TRUSTED_PACKAGES = sys.stdlib_module_names | {"nutch2py", "scrapy", "twisted"}


class LoopWatchdog:
    """Watches the thread that created it, while entered."""

    def __init__(self) -> None:
        self._loop_thread_id = threading.get_ident()
        self._use_context = capture_reporting()
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
        self._use_context()
        while not self._stop.wait(SAMPLE_INTERVAL):
            self._sample()

    def _sample(self) -> None:
        self._sample_count += 1
        name, location = find_addon_frame(sys._current_frames().get(self._loop_thread_id))
        if not name:
            return
        self._hits[name] += 1
        if name not in self._reported and self._hits[name] >= max(_MIN_SAMPLES, _MIN_SHARE * self._sample_count):
            self._reported.add(name)
            warn(
                f"{name} ({location}) has blocked the whole fetch for about "
                f"{self._hits[name] * SAMPLE_INTERVAL:.0f} of "
                f"{self._sample_count * SAMPLE_INTERVAL:.0f} s: "
                "wait with asyncio (await asyncio.sleep), or work in a thread (await asyncio.to_thread)"
            )


def find_addon_frame(frame: FrameType | None) -> tuple[str, str]:
    """Return the third-party function that Scrapy or the loop called, and its location; empty if there is none."""
    name = location = ""
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        if (module, frame.f_code.co_name) == ("asyncio.events", "_run"):  # the outermost frame of a loop callback
            return name, location
        if module.partition(".")[0] not in _TRUSTED_PACKAGES:
            name, location = f"{module}.{frame.f_code.co_qualname}", f"{frame.f_code.co_filename}:{frame.f_lineno}"
        frame = frame.f_back
    return "", ""
