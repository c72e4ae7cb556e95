"""A server that answers in a thread for as long as a test needs it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

from nutch2py.server.http_server import HttpServer

S = TypeVar("S", bound=HttpServer)


@contextmanager
def answering(server: S) -> Iterator[S]:
    """Let a server answer within the block."""
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        yield server
    finally:
        server.stop()
        thread.join()
