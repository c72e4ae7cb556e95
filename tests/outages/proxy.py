"""A TCP proxy before a service that lives in a process with others: it can be silent or gone, the others go on."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress

_PIECE = 65536  # bytes


class Proxy:
    """Passes on what comes to its ``port`` to a port of this machine, in threads of its own, from :meth:`start` on."""

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
        """Begin to listen; again at the same port when it was killed."""
        self._target = target
        self._listener = socket.create_server((self.address, self.port))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, args=[self._listener], daemon=True).start()

    def stop(self) -> None:
        """Be silent: connections are taken and stay, nothing is passed on."""
        self.since = time.monotonic()
        self._passing.clear()

    def go_on(self) -> None:
        """Pass on what has come meanwhile, and what comes."""
        self._passing.set()

    def kill(self) -> None:
        """End all connections, and refuse new ones."""
        self.since = time.monotonic()
        assert self._listener is not None
        for connection in (self._listener, *self._open):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()
        self._open.clear()

    def restart(self) -> None:
        """Take connections again."""
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
