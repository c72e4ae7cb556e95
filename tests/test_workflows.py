"""Workflows and templates of the repository fit the schemas of their platform."""

from __future__ import annotations

import subprocess
import sys

import pytest
import yaml

from tests.conftest import ROOT


@pytest.mark.parametrize(
    ("schema", "files"),
    [
        ("vendor.github-workflows", ".github/workflows"),
        ("vendor.dependabot", ".github/dependabot.yml"),
        ("vendor.github-issue-forms", ".github/ISSUE_TEMPLATE"),
    ],
)
def test_repository_files_fit_their_schema(schema: str, files: str) -> None:
    path = ROOT / files
    found = [path] if path.is_file() else sorted(each for each in path.glob("*.yml") if each.name != "config.yml")
    assert found
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, *map(str, found)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_workflows_call_existing_scripts() -> None:
    for path in sorted((ROOT / ".github" / "workflows").glob("*.yml")):
        jobs = yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"]
        for job in jobs.values():
            for step in job["steps"]:
                if "run" in step:
                    assert (ROOT / step["run"].split()[0]).is_file(), step["run"]
