"""The ways of docs/install.md: the wheel installed from a package index by old and new pip, uv and pipx."""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

import pytest

from tests.import_graph import ROOT
from tests.installed_wheel import run

_NO_INDEX = ("No matching distribution", "Could not find a version", "ConnectionError", "Failed to fetch", "dns error")
PIP_OF_DEBIAN_12 = "23.0.1"
EXTRAS = "formats,main-text"
IMPORTS = "import lxml_html_clean, pypdfium2, trafilatura"
"""What the extras promise."""


def checked(done: subprocess.CompletedProcess[str]) -> str:
    """Return the output of an installer; skip the test when no package index can be reached."""
    output = done.stdout + done.stderr
    if done.returncode and any(text in output for text in _NO_INDEX):
        pytest.skip(f"no package index: {output[-300:]}")
    assert done.returncode == 0, output
    return output


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    checked(run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder, cwd=ROOT))
    (found,) = folder.glob("nutch2py-*.whl")
    return found


def new_environment(folder: Path, *packages: str) -> Path:
    """Make an environment with pip and packages; return its folder of commands."""
    venv.create(folder, with_pip=True)
    commands = folder / "bin"
    checked(run(commands / "python", "-m", "pip", "install", "-q", *packages, cwd=folder))
    return commands


@pytest.mark.parametrize("pip", [f"pip=={PIP_OF_DEBIAN_12}", "pip"])
def test_pip_installs_wheel_with_extras(pip: str, wheel: Path, tmp_path: Path) -> None:
    commands = new_environment(tmp_path / "venv", "--upgrade", pip)
    checked(run(commands / "pip", "install", "-q", f"{wheel}[{EXTRAS}]", cwd=tmp_path))
    checked(run(commands / "python", "-c", IMPORTS, cwd=tmp_path))
    assert "nutch2py" in checked(run(commands / "nutch2py", "version", cwd=tmp_path))


@pytest.mark.parametrize(
    ("package", "command"), [("uv", ("tool", "install", "--python", sys.executable)), ("pipx", ("install",))]
)
def test_tool_installs_command(package: str, command: tuple[str, ...], wheel: Path, tmp_path: Path) -> None:
    commands = new_environment(tmp_path / "venv", package)
    folders = {
        "UV_TOOL_DIR": "tools", "UV_TOOL_BIN_DIR": "bin", "PIPX_HOME": "pipx", "PIPX_BIN_DIR": "bin", "HOME": "home",
    }  # fmt: skip
    variables = {name: str(tmp_path / value) for name, value in folders.items()}
    checked(run(commands / package, *command, f"{wheel}[{EXTRAS}]", cwd=tmp_path, **variables))
    assert "nutch2py" in checked(run(tmp_path / "bin" / "nutch2py", "version", cwd=tmp_path))
