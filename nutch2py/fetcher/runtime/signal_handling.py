"""Handles signals during a fetch between two steps of the event loop, never inside one.

An exception from a signal handler is raised wherever Python happens to be. In a libcurl callback it would be printed
and lost; within a step it would leave a transfer half finished.
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
    """Call the handlers of SIGINT and SIGTERM in their own step of the loop; a second signal is handled immediately.

    No effect outside the main thread, or for signals that are ignored or have the default handler.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers: dict[int, _SignalHandler] = {}
    pending: list[int] = []  # received, not yet handled

    def handle_pending() -> None:
        if pending:
            number = pending.pop()
            handlers[number](number, None)

    def receive(number: int, frame: FrameType | None) -> None:
        if pending:
            handlers[number](number, frame)
            return
        pending.append(number)
        loop.call_soon_threadsafe(handle_pending)  # also wakes the loop

    for number in (int(signal.SIGINT), int(signal.SIGTERM)):
        handler = signal.getsignal(number)
        if callable(handler):
            handlers[number] = handler
            signal.signal(number, receive)
    try:
        yield
    finally:
        for number, handler in handlers.items():
            if signal.getsignal(number) is receive:  # the handler may have been replaced meanwhile
                signal.signal(number, handler)
    handle_pending()  # a signal received in the last step
