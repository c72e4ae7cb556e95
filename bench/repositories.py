"""Public repositories at a commit, fetched by git and kept in a folder."""

from __future__ import annotations

import subprocess
from pathlib import Path


def checked_out(repository: str, commit: str, patterns: list[str], folder: Path) -> Path:
    """Fetch a repository (``owner/name``) at a commit, if missing; return its folder within ``folder``.

    ``patterns``: required files, in the syntax of git's sparse checkout.
    """
    target = folder / repository.replace("/", "+")
    complete = target / ".complete"
    if complete.exists() and complete.read_text() == commit:
        return target
    target.mkdir(parents=True, exist_ok=True)
    for arguments in (
        ("init", "-q"),
        ("config", "remote.origin.url", f"https://github.com/{repository}"),
        ("sparse-checkout", "set", "--no-cone", *patterns),
        ("fetch", "-q", "--depth", "1", "--filter=blob:none", "origin", commit),
        ("checkout", "-q", commit),
    ):
        done = subprocess.run(["git", "-C", target, *arguments], stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{repository} was not got: git said: {done.stderr.strip()}")
    complete.write_text(commit)
    return target
