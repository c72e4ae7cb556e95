"""Write the crawl that this version is remembered by: ``python -m tests.upgrade.make``, once for each release.

A site on loopback is crawled in three rounds, of which the last one ends after the fetch. The tables and the index go
to ``VERSION.tar.xz``, and what every job answers for a copy of them to ``VERSION.json``. A version that was released is
not written again, unless ``--again`` is given. ``--answers`` writes the JSON files alone, after a change of what a job
does that is meant; the values of ``before``, ``cells`` and ``searches`` stay unchanged.
"""

from __future__ import annotations

import json
import sys
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory

from nutch2py import Crawl
from nutch2py.version import __version__
from tests.jobs.crawl import changing_site
from tests.upgrade.kept import HERE, SETTINGS, URL, WAITING, answers, unpack, versions

PORT = int(URL.rstrip("/").rpartition(":")[2])


def write(tables: Path) -> None:
    """Crawl the site into ``tables``."""
    with changing_site(PORT), Crawl(f"embedded:{tables}", SETTINGS) as crawl:
        crawl.inject([f"{URL}{number}" for number in range(0, 60, 3)])
        for batch in ("kept-1", "kept-2", WAITING):
            crawl.generate(top_n=12, batch_id=batch)
            crawl.fetch(batch)
            if batch == WAITING:
                break
            crawl.parse(batch)
            crawl.updatedb(batch)
            crawl.index(batch)
        crawl.updatehostdb()


def main() -> None:
    """Write the files of this version, or only the expected results again."""
    packed = HERE / f"{__version__}.tar.xz"
    if "--answers" not in sys.argv:
        if packed.exists() and "--again" not in sys.argv:
            raise SystemExit(f"{packed} exists: files of released versions are not overwritten (--again)")
        with TemporaryDirectory() as folder:
            tables = Path(folder, "crawldata")
            write(tables)
            with tarfile.open(packed, "w:xz", preset=9) as archive:
                for path in sorted(tables.rglob("*")):
                    if path.is_file() and not path.name.endswith("lock.mdb"):
                        archive.add(path, path.relative_to(folder))
    for version in versions():
        with TemporaryDirectory() as folder:
            text = json.dumps(answers(unpack(version, Path(folder))), indent=1, sort_keys=True, ensure_ascii=False)
        (HERE / f"{version}.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
