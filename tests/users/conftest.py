"""A user: an empty folder, the installed command, and nothing else."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from html import unescape
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from tests.installed_wheel import environment, install, run


class User:
    """Types commands into a shell in a folder that is empty at first; ``env``: exported variables."""

    def __init__(self, folder: Path, command: Path) -> None:
        self.folder, self.command = folder, command
        self.env: dict[str, str] = {}

    def types(self, line: str) -> subprocess.CompletedProcess[str]:
        """Run a line that starts with ``nutch2py``, to its end."""
        return run(*self._words(line), cwd=self.folder, **self.env)

    def _words(self, line: str) -> list[str]:
        name, *words = shlex.split(line)
        assert name == "nutch2py", line
        return [str(self.command), *words]

    @contextmanager
    def serving(self, line: str) -> Iterator[str]:
        """Run a command that serves for as long as the block takes; give the address that it prints."""
        with self.started(line) as (_, address):
            yield address

    @contextmanager
    def started(self, line: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
        """Run a command that serves; give its process, which ends with the block, and the address that it prints."""
        process = subprocess.Popen(
            self._words(line), cwd=self.folder, env=environment(**self.env), stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        try:
            yield process, address_in(process.stdout.readline())
        finally:
            process.terminate()
            process.communicate()

    def writes(self, name: str, text: str) -> None:
        """Write a file."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def configures(self, **properties: str) -> None:
        """Write ``conf/nutch-site.xml``, and make every command read it; underscores of names replace dots."""
        lines = "".join(
            f"<property><name>{name.replace('_', '.')}</name><value>{value}</value></property>"
            for name, value in properties.items()
        )
        self.writes("conf/nutch-site.xml", f"<configuration>{lines}</configuration>")
        self.env["NUTCH_CONF_DIR"] = str(self.folder / "conf")


def address_in(line: str) -> str:
    """Return the address in what a server prints first."""
    found = re.search(r"http://\S+?/(?=\s|$)", line)
    assert found is not None, line
    return found[0]


def text_of(url: str) -> str:
    """Return what a page says, without its markup; also one that says that there is nothing."""
    try:
        with urlopen(url, timeout=60) as answer:
            page = answer.read().decode()
    except HTTPError as error:
        with error:
            page = error.read().decode()
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", page)).split())


def findings(lines: str) -> list[dict[str, str]]:
    """Return what ``doctor -json`` has printed."""
    return [json.loads(line) for line in lines.splitlines()]


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the command of an environment into which the wheel was installed."""
    return install(tmp_path_factory.mktemp("wheel")).parent / "nutch2py"


@pytest.fixture
def user(tmp_path: Path, wheel: Path) -> User:
    """A user in an empty folder."""
    folder = tmp_path / "home"
    folder.mkdir()
    return User(folder, wheel)
