"""The proxy in front of a service that cannot be stopped alone."""

from __future__ import annotations

import socket
import threading

import pytest

from tests.outages.proxy import Proxy


def _echo(listener: socket.socket) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        threading.Thread(target=_answer, args=[connection], daemon=True).start()


def _answer(connection: socket.socket) -> None:
    with connection:
        while data := connection.recv(100):
            connection.sendall(data)


def test_proxy_hangs_disconnects_and_returns() -> None:
    proxy = Proxy()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=_echo, args=[listener], daemon=True).start()
        proxy.start(listener.getsockname()[1])
        where = ("127.0.0.1", proxy.port)
        with socket.create_connection(where) as client:
            client.sendall(b"one")
            assert client.recv(100) == b"one"
            proxy.stop()
            client.sendall(b"two")
            client.settimeout(0.2)
            with pytest.raises(TimeoutError):
                client.recv(100)
            client.settimeout(60)
            proxy.go_on()
            assert client.recv(100) == b"two"
            proxy.kill()
            assert client.recv(100) == b""
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(where)
        proxy.restart()
        with socket.create_connection(where) as client:
            client.sendall(b"three")
            assert client.recv(100) == b"three"
        proxy.kill()
        listener.shutdown(socket.SHUT_RDWR)
