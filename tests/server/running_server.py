"""Server in a thread for the duration of a test."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

from nutch2py.server.http_server import HttpServer

S = TypeVar("S", bound=HttpServer)


@contextmanager
def serving(server: S) -> Iterator[S]:
    """Serve requests within the block."""
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        yield server
    finally:
        server.stop()
        thread.join()
