"""The wheel of this checkout, installed as users install it: an environment of its own, with a command."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

from tests.conftest import ROOT


def run(*words: str | Path, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder to its end, without what the tests' own process imports from."""
    command = [str(word) for word in words]
    return subprocess.run(command, cwd=cwd, env=environment(**env), capture_output=True, text=True, check=False)


def environment(**more: str) -> dict[str, str]:
    """Return the environment of a user, who has set nothing."""
    left_out = ("PYTHONPATH", "NUTCH_CONF_DIR", "NUTCH2PY_COMMAND")
    return {name: value for name, value in os.environ.items() if name not in left_out} | more


def install(folder: Path) -> Path:
    """Build the wheel and install it below ``folder``, with the libraries of the tests' environment; return its Python.

    The command ``nutch2py`` is next to it.
    """
    built = run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder, cwd=ROOT)
    assert built.returncode == 0, built.stderr
    (wheel,) = folder.glob("nutch2py-*.whl")
    venv.create(folder / "venv", with_pip=False)
    python = folder / "venv" / "bin" / "python"
    options = ("--no-deps", "--no-index", "--no-compile", "--disable-pip-version-check", "-q")
    done = run(sys.executable, "-m", "pip", "--python", python, "install", *options, wheel, cwd=folder)
    assert done.returncode == 0, done.stderr
    variables = {"base": str(folder / "venv"), "platbase": str(folder / "venv")}
    packages = Path(sysconfig.get_path("purelib", "venv", variables))
    (packages / "libraries.pth").write_text(f"{sysconfig.get_path('purelib')}\n", encoding="utf-8")
    return python
