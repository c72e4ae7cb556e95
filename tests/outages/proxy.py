"""A TCP proxy for one service of a shared process: it can be silent or gone without affecting the others."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress

_PIECE = 65536  # bytes


class Proxy:
    """Forwards its ``port`` to a port of this machine, in its own threads, after :meth:`start`."""

    def __init__(self, address: str = "127.0.0.1", port: int = 0) -> None:
        self.address, self.port = address, port
        self.since = 0.0
        """When it went away, by :func:`time.monotonic`."""
        self._target = 0
        self._listener: socket.socket | None = None
        self._open: set[socket.socket] = set()
        self._passing = threading.Event()
        self._passing.set()

    def start(self, target: int) -> None:
        """Listen; at the same port after a kill."""
        self._target = target
        self._listener = socket.create_server((self.address, self.port))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, args=[self._listener], daemon=True).start()

    def stop(self) -> None:
        """Become silent: accept and keep connections, forward nothing."""
        self.since = time.monotonic()
        self._passing.clear()

    def go_on(self) -> None:
        """Forward data received meanwhile and from now on."""
        self._passing.set()

    def kill(self) -> None:
        """Close all connections and reject new ones."""
        self.since = time.monotonic()
        assert self._listener is not None
        for connection in (self._listener, *self._open):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()
        self._open.clear()

    def restart(self) -> None:
        """Accept connections again."""
        self.start(self._target)

    def _accept(self, listener: socket.socket) -> None:
        with suppress(OSError):  # it was closed
            while True:
                client, _ = listener.accept()
                try:
                    server = socket.create_connection(("127.0.0.1", self._target))
                except OSError:
                    client.close()
                    continue
                self._open |= {client, server}
                for source, target in ((client, server), (server, client)):
                    threading.Thread(target=self._pass, args=[source, target], daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(_PIECE):
                self._passing.wait()
                target.sendall(data)
        for connection in (source, target):
            self._open.discard(connection)
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()
