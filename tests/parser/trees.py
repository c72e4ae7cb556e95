"""Real pages and office files in the checkout's cache, fetched from their archives when missing."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conftest import ROOT

CACHE = ROOT / ".cache" / "sites"
TREES = {
    "linux-doc-6.1": "usr/share/doc/linux-doc-6.1/html",
    "debian-handbook": "usr/share/doc/debian-handbook/html",
    "debian-reference-zh-cn": "usr/share/debian-reference",
    "debian-reference-zh-tw": "usr/share/debian-reference",
    "apache2-doc": "usr/share/doc/apache2-doc/manual",
    "python3.11-doc": "usr/share/doc/python3.11/html",
    "sqlite3-doc": "usr/share/doc/sqlite3",
}
"""Debian package -> where its pages are."""
TIKA_JAR = "tika-parsers-1.28.5-tests.jar"


def tree(package: str) -> Path:
    """Return the pages of a Debian package, or skip the test without access to them."""
    folder = CACHE / package
    if folder.is_dir():
        return folder
    if shutil.which("apt-get") is None or shutil.which("dpkg") is None:
        pytest.skip(f"{package} is not in .cache/sites, and there is no apt-get to download it with")
    part = CACHE / f"{package}.part"
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    command = ["apt-get", "download", "-qq", package]
    done = subprocess.run(command, cwd=part, capture_output=True, text=True, timeout=300, check=False)
    archives = list(part.glob("*.deb"))
    if not archives:
        shutil.rmtree(part)
        pytest.skip(f"{package} cannot be downloaded here: {done.stderr.strip()[-200:] or 'no archive came'}")
    subprocess.run(["dpkg", "-x", archives[0], part / "root"], check=True)
    (part / "root" / TREES[package]).rename(folder)
    shutil.rmtree(part)
    return folder


def pages(package: str) -> list[Path]:
    """Return the HTML files of a package without symbolic links."""
    found = tree(package).rglob("*.html*")
    return sorted(path for path in found if path.is_file() and not path.is_symlink() and path.suffix != ".gz")


def tika_jar() -> Path:
    """Return the jar of Apache Tika's test documents, or skip the test if Maven cannot download it."""
    folder = ROOT / ".cache" / "tika"
    jar = folder / TIKA_JAR
    if jar.is_file():
        return jar
    if shutil.which("mvn") is None:
        pytest.skip(f"{TIKA_JAR} is not in .cache/tika, and there is no mvn to download it with")
    command = ["mvn", "-q", "-B", "dependency:copy", "-Dartifact=org.apache.tika:tika-parsers:1.28.5:jar:tests"]
    command += [f"-DoutputDirectory={folder}", "-Dmdep.useBaseVersion=true"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    if not jar.is_file():
        pytest.skip(f"mvn did not bring {TIKA_JAR}: {done.stdout.strip()[-200:]}")
    return jar
