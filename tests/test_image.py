"""The Dockerfile, as far as it goes without an engine: what it copies and runs, in a root of the test's own."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import urllib.request
from fnmatch import fnmatch
from pathlib import Path

import pytest
import yaml

from tests.conftest import ROOT

DOCKERFILE = re.sub(r"\\\n\s*", "", (ROOT / "Dockerfile").read_text(encoding="utf-8"))
STEPS = [line.split(maxsplit=1) for line in DOCKERFILE.splitlines() if line and not line.startswith("#")]


def step(word: str, number: int = 0) -> str:
    return [text for name, text in STEPS if name == word][number]


def context(target: Path) -> None:
    """Copy what the engine is sent: the files of the repository, but for those that .dockerignore names."""
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    for name in listed.stdout.splitlines():
        if not any(name == each or fnmatch(name, f"{each}/*") for each in ignored) and (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The root that the steps leave, at a place of its own."""
    root = tmp_path_factory.mktemp("image")
    assert step("COPY") == ". /src"
    context(root / "src")
    words = [str(root) + word if word.startswith("/") else word for word in shlex.split(step("RUN"))]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd="/")
    assert done.returncode == 0, done.stderr
    shutil.rmtree(root / "src")  # the second stage has the folder alone
    (root / "data").mkdir()
    return root


def environment(root: Path) -> dict[str, str]:
    path = re.search(r"PATH=(\S+):\$PATH", step("ENV"))
    assert path is not None
    return {"PATH": f"{root}{path[1]}:{os.defpath}", "HOME": str(root / "data"), "LANG": "C.UTF-8"}


def run(root: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*json.loads(step("ENTRYPOINT")), *words],
        cwd=root / "data", env=environment(root), capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_image_contains_program_without_build_tools(image: Path) -> None:
    done = run(image, "version", "-json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["nutch2py"]
    packages = {path.name for path in (image / "opt" / "nutch2py").glob("lib/python*/site-packages/*")}
    assert not {"pip", "hatchling", "editables"} & packages
    assert (image / "opt" / "nutch2py" / "share" / "man" / "man1" / "nutch2py.1").is_file()


@pytest.mark.parametrize("words", [["showproperties"], ["readdb", "-stats"]])
def test_image_reads_conf_folder_of_volume(image: Path, words: list[str]) -> None:
    """And works without one: a volume of the host has none at first."""
    folder = image / "data" / "conf"
    assert run(image, "showproperties").returncode == 0
    folder.mkdir()
    setting = "<property><name>storage.crawl.id</name><value>fromconf</value></property>"
    (folder / "nutch-site.xml").write_text(f"<configuration>{setting}</configuration>")
    try:
        done = run(image, *words)
        assert "fromconf" in done.stdout + done.stderr
        other = subprocess.run(
            [*json.loads(step("ENTRYPOINT")), *words],
            cwd=image / "data", env=environment(image) | {"NUTCH_CONF_DIR": str(image / "none")}, capture_output=True,
            text=True, check=False,
        )  # fmt: skip
        assert "fromconf" not in other.stdout + other.stderr
    finally:
        shutil.rmtree(folder)


def test_image_creates_table_in_volume_and_serves_it(image: Path) -> None:
    (image / "data" / "seeds.txt").write_text("http://www.example.org/\n", encoding="utf-8")
    assert run(image, "inject", "seeds.txt").returncode == 0
    assert (image / "data" / "crawldata").is_dir()
    words = [*json.loads(step("ENTRYPOINT")), *json.loads(step("CMD")), "-host", "127.0.0.1", "-port", "0"]
    with subprocess.Popen(
        words, cwd=image / "data", env=environment(image), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        try:
            url = server.stdout.readline().split()[-1]
            code = json.loads(re.sub(r".* CMD ", "", step("HEALTHCHECK")))[-1]
            assert "http://127.0.0.1:8080/health" in code
            with urllib.request.urlopen(f"{url}health", timeout=60) as answer:
                assert answer.status == 200
        finally:
            server.send_signal(signal.SIGTERM)
        server.communicate(timeout=60)


def test_compose_file_builds_image_and_binds_loopback() -> None:
    service = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))["services"]["nutch2py"]
    assert service["build"] == "."
    assert service["volumes"] == ["crawl-data:/data"]
    assert service["ports"] == ["127.0.0.1:8080:8080"]
