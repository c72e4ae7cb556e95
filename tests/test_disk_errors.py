"""Commands that make a folder or a file of their own on a full disk: exit code 4 and one line."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.failing_disk import failing_disk

COMMANDS = {
    "init": "init nospace/conf -agent a",
    "init with seeds": "init nospace https://a.test/ -agent a",
    "token": "token name -role read -D rest.tokens.file={folder}/nospace/tokens",
    "package": "package -D mapreduce.package={folder}/nospace/package.tar.gz",
    "readdb -dump": "readdb -dump {folder}/nospace/dump -text",
}


@pytest.mark.parametrize("fails_folders", [True, False], ids=["folders", "files"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
@pytest.mark.parametrize("name", COMMANDS)
def test_full_disk_is_no_error_of_usage(
    tmp_path: Path, disk: Path, name: str, number: int, fails_folders: bool
) -> None:
    run = [sys.executable, "-m", "nutch2py"]
    (tmp_path / "seeds").write_text("https://a.test/\n")
    inject = [*run, "inject", "seeds", "-D", "http.agent.name=a"]
    subprocess.run(inject, cwd=tmp_path, check=True, capture_output=True)
    if not fails_folders:
        (tmp_path / "nospace").mkdir()
    done = subprocess.run(
        [*run, *COMMANDS[name].format(folder=tmp_path).split()],
        cwd=tmp_path,
        env={**os.environ, **failing_disk(disk, number, "nospace", fails_folders=fails_folders)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 4, done.stderr
    errors = [line for line in done.stderr.splitlines() if line.startswith("nutch2py: ")]
    assert len(errors) == 1, done.stderr
    assert {errno.ENOSPC: "no space is left", errno.EDQUOT: "quota is used up"}[number] in errors[0]
