"""Every console block of the tutorials, run in order with the installed wheel; output equals the transcript."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.import_graph import ROOT
from tests.installed_wheel import environment, install

TUTORIALS = sorted(path for path in (ROOT / "docs" / "tutorial").glob("*.md") if path.name != "index.md")
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_MEASURED = re.compile(r"(\d+ min )?\d+(\.\d+)?( ms| s\b)")
_MARK = "@@command@@"


class Step(NamedTuple):
    """A command with its here-documents, and the output that the page shows."""

    command: str
    shown: str


def steps(page: str) -> list[Step]:
    """Return the commands of a page; a block in any other form raises ValueError."""
    found = []
    for language, text in _BLOCK.findall(page):
        if language != "console" or not text.startswith("$ "):
            raise ValueError(f"a block that is not run: {text[:80]}")
        for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
            command, _, rest = part.partition("\n")
            here = re.search(r"<<'(\w+)'$", command)
            if here:
                body, _, rest = rest.partition(f"\n{here[1]}\n")
                command = f"{command}\n{body}\n{here[1]}"
            found.append(Step(command, rest))
    return found


def pattern(shown: str) -> re.Pattern[str]:
    """Return what output must match: an ellipsis stands for any text, a line of it for any lines; times may differ."""
    lines = [re.escape(_MEASURED.sub("#", line)).replace("…", ".*") for line in shown.splitlines()]
    return re.compile("".join("(?:.*\n)*" if line == ".*" else f"{line}\n" for line in lines))


def test_changed_transcript_is_noticed() -> None:
    shown = "3 pages (…) in 2 s\n…\nend\n"
    assert pattern(shown).fullmatch(_MEASURED.sub("#", "3 pages (7 B) in 1.5 s\na\nb\nend\n"))
    assert not pattern(shown).fullmatch(_MEASURED.sub("#", "4 pages (7 B) in 2 s\na\nend\n"))
    assert not pattern(shown).fullmatch(_MEASURED.sub("#", "3 pages (7 B) in 2 s\nend\nmore\n"))
    with pytest.raises(ValueError, match="not run"):
        steps("```python\nx = 1\n```\n")


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the commands of an environment that has the wheel of this checkout."""
    return install(tmp_path_factory.mktemp("installed")).parent


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_tutorial_runs_as_written(page: Path, commands: Path, tmp_path: Path) -> None:
    found = steps(page.read_text(encoding="utf-8"))
    assert found
    script = ["set -m", "trap 'kill $(jobs -p) 2>/dev/null' EXIT"]
    for step in found:
        script += [step.command, f"printf '%s %s\\n' '{_MARK}' $?"]
        if step.command.endswith("&"):
            script += ["sleep 3"]  # a reader is slower than a script
    path = f"{commands}:{environment()['PATH']}"
    bash = ["bash", "-c", "\n".join(script)]
    # pip builds a package with the libraries of this environment instead of downloading them
    offline = {"PIP_NO_BUILD_ISOLATION": "false", "PIP_NO_INDEX": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    done = subprocess.run(
        bash, cwd=tmp_path, env=environment(PATH=path, HOME=str(tmp_path), **offline), stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
    )  # fmt: skip
    # a shell reports a job that `kill` ended at a moment of its own
    lines = re.sub(r"^\[\d+\]\+? +Terminated .*\n", "", done.stdout, flags=re.MULTILINE)
    printed = re.split(rf"^{_MARK} (\d+)\n", lines, flags=re.MULTILINE)
    assert len(printed) == 2 * len(found) + 1, done.stdout
    for step, output, code in zip(found, printed[::2], printed[1::2], strict=False):
        assert code == "0", (step.command, output)
        assert pattern(step.shown).fullmatch(_MEASURED.sub("#", output.lstrip())), (step.command, step.shown, output)
