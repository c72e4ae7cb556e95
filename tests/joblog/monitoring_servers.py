"""Prometheus with promtool, Pushgateway and node_exporter from the packages of Debian or Ubuntu, on loopback ports."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from tests.processes import wait_until
from tests.services import ROOT

_PACKAGES = ("prometheus", "prometheus-pushgateway", "prometheus-node-exporter")
PROGRAMS = ("prometheus", "promtool", "prometheus-pushgateway", "prometheus-node-exporter")
_FOLDER = ROOT / ".cache" / "services" / "monitoring"


def programs() -> Path:
    """Return the folder of the programs; fetch and unpack their packages at the first use, without installing them."""
    found = [shutil.which(name) for name in PROGRAMS]
    if all(found):
        return Path(str(found[0])).parent
    folder = _FOLDER / "usr" / "bin"
    if not all((folder / name).is_file() for name in PROGRAMS):
        missing = [tool for tool in ("apt-get", "dpkg-deb") if shutil.which(tool) is None]
        if missing:
            pytest.skip(f"no Prometheus on the PATH, and no {' and '.join(missing)} to fetch its packages")
        _fetch()
    return folder


def _fetch() -> None:
    _FOLDER.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=_FOLDER.parent) as name:
        folder = Path(name)
        done = _run("apt-get", "download", *_PACKAGES, folder=folder)
        if done.returncode and os.getuid() == 0:  # a fresh machine knows no packages yet
            _run("apt-get", "update", "-qq", folder=folder)
            done = _run("apt-get", "download", *_PACKAGES, folder=folder)
        if done.returncode:
            reason = done.stderr.strip().splitlines()[-1:]
            pytest.skip(f"the packages {', '.join(_PACKAGES)} cannot be fetched: {' '.join(reason)}")
        for package in folder.glob("*.deb"):
            done = _run("dpkg-deb", "-x", str(package), "unpacked", folder=folder)
            assert done.returncode == 0, done.stderr
        shutil.rmtree(_FOLDER, ignore_errors=True)
        (folder / "unpacked").rename(_FOLDER)


def _run(*command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def free_port() -> int:
    """Return a port of loopback that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def get_json(address: str, path: str, **parameters: str) -> Any:
    """Return the response of Prometheus' HTTP API."""
    with urllib.request.urlopen(f"http://{address}{path}?{urlencode(parameters)}", timeout=30) as response:
        return json.load(response)["data"]


def is_ready(address: str, path: str) -> bool:
    """Return whether a server answers with success."""
    try:
        with urllib.request.urlopen(f"http://{address}{path}", timeout=30) as response:
            return bool(response.status == 200)
    except (OSError, urllib.error.HTTPError):
        return False


@contextmanager
def started(name: str, ready: str, folder: Path, *options: str) -> Iterator[str]:
    """Run a program until the end of the block; give its address.

    Args:
        name: The program, of :data:`PROGRAMS`.
        ready: A path that answers with success when the server is ready.
        folder: The working folder, which gets the output.
        options: Options of the program, beside its address.
    """
    address = f"127.0.0.1:{free_port()}"
    command = [str(programs() / name), f"--web.listen-address={address}", "--log.level=warn", *options]
    output = folder / f"{name}.out"
    with output.open("w") as file, subprocess.Popen(command, cwd=folder, stdout=file, stderr=file) as process:
        try:
            wait_until(lambda: is_ready(address, ready) or process.poll() is not None)
            assert process.poll() is None, f"{name} ended: {output.read_text()}"
            yield address
        finally:
            process.terminate()
