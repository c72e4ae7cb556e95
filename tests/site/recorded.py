"""The server of the recorded crawl, on the address and ports that the recording's names refer to."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.processes import wait_until

IP, PORTS = "127.0.7.1", (80, 8790)


def _listening(address: str, port: int) -> bool:
    with socket.socket() as client:
        client.settimeout(1)
        return client.connect_ex((address, port)) == 0


@contextmanager
def recorded_site(recording: Path, folder: Path, ip: str = IP) -> Iterator[Path]:
    """Serve it from a fresh start; return the directory of ``hosts.txt``. Skip if its ports are in use.

    ``ip``: where; ``hosts.txt`` names :data:`IP`.
    """
    for port in PORTS:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((ip, port))
            except OSError as error:
                pytest.skip(f"the recorded site needs {ip}:{port}: {error}")
    site = folder / "site"
    site.mkdir()
    for name in ("serve_site.py", "site.json", "hosts.txt"):
        shutil.copy(recording / "site" / name, site)
    server = subprocess.Popen([sys.executable, str(site / "serve_site.py"), "--ip", ip])
    try:
        wait_until(lambda: all(_listening(ip, port) for port in PORTS))
        yield site
    finally:
        server.terminate()
        server.wait(10)
