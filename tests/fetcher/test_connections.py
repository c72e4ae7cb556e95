"""Servers that close kept-alive connections without notice."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.fetcher.downloader.transport import ScrapyTransport, run_with_transport
from nutch2py.fetcher.downloader.transport_settings import TransportSettings
from nutch2py.fetcher.protocols.fetch_response import FetchResponse
from nutch2py.fetcher.protocols.http_settings import HttpSettings

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 5\r\n\r\nhello"


def _serve(connection: socket.socket) -> None:
    """Serve one request, and close when the second arrives."""
    with connection, connection.makefile("rb") as lines:
        while lines.readline() not in (b"\r\n", b""):
            pass
        connection.sendall(ANSWER)
        while lines.readline() not in (b"\r\n", b""):
            pass


@pytest.fixture
def server() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listening:

        def accept() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:  # closed
                    return
                threading.Thread(target=_serve, args=(connection,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        listening.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_page_is_fetched_when_all_kept_connections_are_dead(server: str, version: str) -> None:
    conf = {"http.agent.name": "probe", "http.useHttp11": str(version == "1.1"), "http.filter.ipaddress.exclude": ""}
    answers: list[FetchResponse] = []

    async def main(transport: ScrapyTransport) -> None:
        answers.extend(await asyncio.gather(*(transport.get(f"{server}/{number}") for number in range(16))))
        answers.append(await transport.get(f"{server}/last"))

    run_with_transport(HttpSettings.from_conf(Configuration(conf)), TransportSettings(), main)
    assert [answer.failure for answer in answers] == [None] * 17
    assert {answer.content for answer in answers} == {b"hello"}
