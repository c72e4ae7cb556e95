#!/usr/bin/env python3
"""Rebuild the collection of docs/ranking.md and print its table: ranking.py FOLDER.

FOLDER holds (or gets) the unpacked Debian packages debian-reference-zh-cn, debian-handbook and linux-doc-6.1. Their
Chinese pages are served on loopback as three sites with a portal before them, crawled job by job, and indexed:
Chinese cut into single characters or into words, relevance by text alone, times PageRank, and times PageRank and OPIC.
Then the queries of bench/ranking/queries.txt are judged by bench/ranking/judgements.tsv.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("debian-reference-zh-cn", "debian-handbook", "linux-doc-6.1")
SITES = {
    "127.0.0.1": "usr/share/debian-reference",
    "127.0.0.2": "usr/share/doc/debian-handbook/html/zh-CN",
    "127.0.0.3": "usr/share/doc/linux-doc-6.1/html/translations/zh_CN",
}
PORT = 8765
STARTS = ("index.zh-cn.html", "index.html", "index.html")
VARIANTS = {
    f"{chinese}, {weights or 'text alone'}{f' ^ {power}' if weights else ''}": {
        "index.chinese": chinese,
        "index.weight.fields": weights,
        "index.weight.power": power,
    }
    for chinese in ("characters", "words")
    for weights, power in (
        ("boost", "1"),
        ("", "1"),
        ("pagerank", "0.25"),
        ("boost,pagerank", "0.25"),
        ("boost,pagerank", "1"),
    )
}


def unpack(folder: Path) -> Path:
    """Get the packages from Debian's archive unless they are there; return the folder they are unpacked in."""
    target = folder / "root"
    if not all((target / path).is_dir() for path in SITES.values()):
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(["apt-get", "download", "-q", *PACKAGES], cwd=folder, check=True)
        for package in folder.glob("*.deb"):
            subprocess.run(["dpkg", "-x", package, target], check=True)
    return target


@contextmanager
def served(root: Path, work: Path) -> Iterator[None]:
    """Serve the three sites and the portal."""
    portal = work / "portal"
    portal.mkdir(parents=True, exist_ok=True)
    links = "".join(
        f'<li><a href="http://{host}:{PORT}/{start}">{SITES[host].split("/")[-1]}</a>'
        for host, start in zip(SITES, STARTS, strict=True)
    )
    (portal / "index.html").write_text(f"<!doctype html><meta charset=utf-8><title>门户</title><ul>{links}</ul>")
    folders = {**{host: root / path for host, path in SITES.items()}, "127.0.0.4": portal}
    script = ROOT / "scripts" / "serve_folder"
    servers = [
        subprocess.Popen([sys.executable, script, folder, "--address", host, "--port", str(PORT)],
                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for host, folder in folders.items()
    ]  # fmt: skip
    try:
        time.sleep(1)
        yield
    finally:
        for server in servers:
            server.terminate()
            server.wait()


class Crawl:
    """Runs commands of nutch2py in a configuration and a folder of its own."""

    def __init__(self, work: Path) -> None:
        self.work, self.conf = work, work / "conf"
        self.conf.mkdir(parents=True, exist_ok=True)
        (self.conf / "regex-urlfilter.txt").write_text(
            f"+^http://127\\.0\\.0\\.4:{PORT}/\n+^http://127\\.0\\.0\\.1:{PORT}/[^/]*zh-cn\\.html\n"
            f"+^http://127\\.0\\.0\\.[23]:{PORT}/.*\\.html$\n"
        )
        self.properties = {
            "storage.data.store": f"embedded:{work / 'crawldata'}",
            "http.agent.name": "ranking-bench",
            "http.content.limit": "-1",
            "http.filter.ipaddress.exclude": "",
            "fetcher.server.delay": "0",
            "fetcher.threads.per.queue": "4",
            "fetcher.server.min.delay": "0",
            "db.max.outlinks.per.page": "-1",
            "indexingfilter.order": "index-basic",
            "plugin.includes": "protocol-http|urlfilter-regex|parse-(html|text)|index-(basic|anchor|more|pagerank)|"
            "indexer-embedded|urlnormalizer-(pass|regex|basic)|scoring-opic|language-identifier",
        }

    def run(self, *arguments: str, check: bool = True) -> str:
        """Run a command; return what it printed."""
        settings = [part for name, value in self.properties.items() for part in ("-D", f"{name}={value}")]
        command = [sys.executable, "-m", "nutch2py.cli", *arguments, *settings, "--conf", str(self.conf)]
        done = subprocess.run(command, capture_output=True, text=True, cwd=self.work, check=False)
        if check and done.returncode:
            raise SystemExit(f"{' '.join(arguments)} failed: {done.stdout}{done.stderr}")
        return done.stdout

    def rounds(self) -> None:
        """Crawl until nothing is due."""
        seeds = self.work / "seeds.txt"
        seeds.write_text(f"http://127.0.0.4:{PORT}/index.html\n")
        self.run("inject", str(seeds))
        for number in range(1, 12):
            batch = f"{number}"
            if "containing 0 URLs" in self.run("generate", "-batchId", batch, check=False):
                break
            for job in ("fetch", "parse", "updatedb"):
                self.run(job, batch)
        self.run("pagerank")


def main() -> int:
    """Crawl unless that was done, index once a variant, print its table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--pool", type=Path, help="also write the hits of all variants here, to be judged")
    options = parser.parse_args()
    folder = options.folder.resolve()
    work = folder / "work"
    crawl = Crawl(work)
    if not (work / "crawldata").is_dir():
        with served(unpack(folder), work):
            crawl.rounds()
    data = ROOT / "bench" / "ranking"
    pool: list[str] = []
    for name, settings in VARIANTS.items():
        crawl.properties |= settings
        crawl.properties["index.embedded.path"] = str(work / re.sub(r"\W+", "-", name))
        crawl.run("index", "-reindex")
        arguments = ["evaluate", str(data / "queries.txt"), "-judgements", str(data / "judgements.tsv")]
        if options.pool:
            arguments += ["-unjudged", str(options.pool)]
        pool.append(f"== {name}\n{crawl.run(*arguments)}")
    print("\n".join(pool))
    return 0


if __name__ == "__main__":
    sys.exit(main())
