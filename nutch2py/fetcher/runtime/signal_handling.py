"""Signals while a fetch runs: they stop it between two steps of its event loop, never inside one.

An exception out of a signal's handler comes wherever Python happens to be. In a function that libcurl calls it would be
printed and lost, and in the middle of a step it would leave a transfer half ended.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

_SignalHandler = Callable[[int, FrameType | None], object]


@contextmanager
def signals_between_steps(loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """Call the handlers of SIGINT and SIGTERM in a step of the loop of their own; a second signal is heeded at once.

    Without effect where signals are not for this thread, and for those that are ignored or end the process themselves.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before: dict[int, _SignalHandler] = {}
    told: list[int] = []  # and not yet heeded

    def heed() -> None:
        if told:
            number = told.pop()
            before[number](number, None)

    def tell(number: int, frame: FrameType | None) -> None:
        if told:
            before[number](number, frame)
            return
        told.append(number)
        loop.call_soon_threadsafe(heed)  # wakes the loop, too

    for number in (int(signal.SIGINT), int(signal.SIGTERM)):
        handler = signal.getsignal(number)
        if callable(handler):
            before[number] = handler
            signal.signal(number, tell)
    try:
        yield
    finally:
        for number, handler in before.items():
            if signal.getsignal(number) is tell:  # the handler may have put another in its place
                signal.signal(number, handler)
    heed()  # one that came in the last step
