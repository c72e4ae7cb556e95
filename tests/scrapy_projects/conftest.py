from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from nutch2py.crawl import Crawl
from nutch2py.records.webpage import WebPage
from nutch2py.table import TableQuery, open_store
from nutch2py.url.keys import unreverse_url
from tests.site.server import ScriptedSite

_PROJECT = Path(__file__).parent / "tutorial"
_FIELDS = frozenset(
    {
        WebPage.status,
        WebPage.protocol_status,
        WebPage.markers,
        WebPage.metadata,
        WebPage.outlinks,
        WebPage.title,
        WebPage.content,
        WebPage.score,
    }
)


class Project:
    """A copy of the tutorial project, with its own crawl."""

    def __init__(self, folder: Path, site: ScriptedSite) -> None:
        self.crawl = Crawl(
            f"embedded:{folder}",
            properties={
                "http.agent.name": "tutorial",
                "index.db.md": "author,tags",
                "index.metadata.separator": "\t",
                "index.metadata.multivalued.fields": "author,tags",
                "indexer.embedded.path": str(folder / "index"),
                "plugin.includes": "protocol-http|urlfilter-validator|parse-(html|text)|index-(basic|metadata)"
                "|scoring-opic|urlnormalizer-(pass|regex|basic)|indexer-embedded",
            },
        )
        self.site, self.folder, self.place = site, folder, folder.parent / "project"
        shutil.copytree(_PROJECT, self.place)

    def write(self, settings: str = "", spiders: str = "") -> None:
        """Add lines to the project's settings, and a module of spiders."""
        with (self.place / "tutorial" / "settings.py").open("a", encoding="utf-8") as file:
            file.write("\n" + textwrap.dedent(settings))
        (self.place / "tutorial" / "spiders" / "more.py").write_text(textwrap.dedent(spiders), encoding="utf-8")

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-P", "-m", "scrapy", "crawl", *words]

    @property
    def environment(self) -> dict[str, str]:
        root = str(Path(__file__).resolve().parents[2])
        return {**os.environ, "SITE": self.site.url(""), "CRAWL": f"embedded:{self.folder}", "PYTHONPATH": root}

    def process(self, *words: str) -> subprocess.Popen[str]:
        """Start a spider with a readable log."""
        return subprocess.Popen(
            self.command(*words), cwd=self.place, env=self.environment, stderr=subprocess.PIPE, text=True
        )

    def run(self, *words: str, quiet: bool = True) -> tuple[str, str]:
        """Run a spider; return its batch and its log, which contains no exception unless ``quiet`` is false."""
        done = subprocess.run(
            self.command(*words),
            cwd=self.place,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert not (quiet and "Traceback" in done.stderr), done.stderr
        found = re.search(r"'nutch2py/batch': '([^']+)'", done.stderr)
        assert found is not None, done.stderr
        return found[1], done.stderr

    def run_rejected(self, *words: str) -> str:
        """Run a spider that must not start, and return its log."""
        done = subprocess.run(
            self.command(*words), cwd=self.place, env=self.environment,
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        return done.stderr

    def script(self, name: str) -> str:
        """Run a program of the project, and return its log."""
        done = subprocess.run(
            [sys.executable, name], cwd=self.place, env=self.environment,
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stderr

    def rows(self) -> dict[str, WebPage]:
        store = open_store(self.crawl.conf, WebPage)
        return {
            unreverse_url(key).removeprefix(self.site.url("")): page for key, page in store.scan(TableQuery(_FIELDS))
        }


@pytest.fixture
def project(tmp_path: Path, site: ScriptedSite) -> Iterator[Project]:
    made = Project(tmp_path / "crawl", site)
    with made.crawl:
        yield made
