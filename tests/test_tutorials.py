"""Every block of the tutorials, run in order with the installed wheel; output equals the transcript."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.doc_blocks import blocks, normalized, pattern, run, steps, steps_to_run
from tests.import_graph import ROOT
from tests.installed_wheel import environment, install

TUTORIALS = sorted(path for path in (ROOT / "docs" / "tutorial").glob("*.md") if path.name != "index.md")
_WITH_SERVERS = {"first-cluster", "from-nutch-2"}
_SECONDS = 1800.0
"""Time of a tutorial with servers that start, on a machine with other work; it only ends a tutorial that hangs."""


def test_changed_transcript_is_noticed() -> None:
    shown = "3 pages (…) in 2 s\n…\nend\n"
    assert pattern(shown).fullmatch(normalized("3 pages (7 B) in 1.5 s\na\nb\nend\n"))
    assert not pattern(shown).fullmatch(normalized("4 pages (7 B) in 2 s\na\nend\n"))
    assert not pattern(shown).fullmatch(normalized("3 pages (7 B) in 2 s\nend\nmore\n"))
    with pytest.raises(ValueError, match="not run"):
        steps("x = 1\n")


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the commands of an environment that has the wheel of this checkout."""
    return install(tmp_path_factory.mktemp("installed")).parent


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_tutorial_runs_as_written(page: Path, commands: Path, tmp_path: Path) -> None:
    text = page.read_text(encoding="utf-8")
    found = steps_to_run(text)
    assert found
    # all of a tutorial runs, but for a download
    assert [
        block for block in blocks(text) if block.language != "console" or (block.reason and "git" not in block.text)
    ] == []
    if page.stem in _WITH_SERVERS:
        if not (shutil.which("java") and shutil.which("mvn")):
            pytest.skip("needs a JDK 17 and Maven")
        (tmp_path / "nutch2py").symlink_to(ROOT)
    if "pip install pandas" in text:
        pandas = [*(ROOT / ".cache" / "docs-environment").glob("lib/python*/site-packages/pandas")]
        if not pandas:
            pytest.skip("pandas is missing: scripts/docs site installs requirements-docs.lock")
        (packages,) = commands.parent.glob("lib/python*/site-packages")
        (packages / "docs.pth").write_text(f"{pandas[0].parent}\n", encoding="utf-8")
    path = f"{commands}:{environment()['PATH']}"
    # pip builds a package with the libraries of this environment instead of downloading them
    offline = {"PIP_NO_BUILD_ISOLATION": "false", "PIP_NO_INDEX": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    if page.stem not in _WITH_SERVERS:  # Maven keeps its jars in the home folder
        offline["HOME"] = str(tmp_path)
    wrong = run(found, tmp_path, environment(PATH=path, **offline), seconds=_SECONDS)
    assert not wrong, "\n".join(wrong)
    left = {path.name for path in tmp_path.iterdir() if not path.name.startswith(".")}
    assert left <= {"nutch2py", "nutch", "crawldata"}
