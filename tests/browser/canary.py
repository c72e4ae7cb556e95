"""Servers that must not be reached: a canary records each connection and packet that it receives."""

from __future__ import annotations

import selectors
import socket
import threading
from typing import Self


class Canary:
    """Listens on a TCP and UDP port of an address; ``caught`` lists what was received."""

    def __init__(self, address: str = "127.0.0.2", port: int = 0) -> None:
        self.address, self.caught = address, list[str]()
        self._tcp = socket.create_server((address, port))
        self.port = self._tcp.getsockname()[1]
        self._udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._udp.bind((address, self.port))
        self._stop, self._stopped = socket.socketpair()
        self._thread = threading.Thread(target=self._listen, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.send(b"x")
        self._thread.join(10)
        for each in (self._tcp, self._udp, self._stop, self._stopped):
            each.close()

    def _listen(self) -> None:
        with selectors.DefaultSelector() as selector:
            for each in (self._tcp, self._udp, self._stopped):
                selector.register(each, selectors.EVENT_READ)
            while True:
                for key, _ in selector.select():
                    if key.fileobj is self._stopped:
                        return
                    if key.fileobj is self._udp:
                        self.caught.append(f"UDP {self._udp.recv(2048)[:60]!r}")
                        continue
                    connection, _ = self._tcp.accept()
                    with connection:
                        connection.settimeout(5)
                        try:
                            self.caught.append(f"TCP {connection.recv(2048)[:200]!r}")
                        except OSError:
                            self.caught.append("TCP")
