"""A Solr with two cores of the configset schema/solr: as it is, and with Chinese cut into single characters."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

ROOT = Path(__file__).resolve().parents[2]


@contextmanager
def cores(folder: Path) -> Iterator[dict[str, str]]:
    """Start a Solr with its data below ``folder``; yield the addresses of its cores; stop and remove it."""
    services = [str(ROOT / "scripts" / "services")]
    where = ["solr", "--instance", "ranking"]
    started = [*services, "start", *where, "--data", str(folder / "solr")]
    try:
        done = subprocess.run(started, check=True, capture_output=True, text=True)
        address = done.stdout.strip().splitlines()[-1]
        yield {"characters": _characters(address, folder / "solr" / "solr"), "words": address}
    finally:
        subprocess.run([*services, "remove", *where], check=False, capture_output=True)


def _characters(address: str, home: Path) -> str:
    """Add a core whose text is cut by Unicode's rules, which make every Chinese character a word."""
    source, target = home / "configsets" / "nutch" / "conf", home / "configsets" / "characters" / "conf"
    target.mkdir(parents=True, exist_ok=True)
    for file in source.iterdir():
        (target / file.name).write_bytes(file.read_bytes())
    schema = target / "schema.xml"
    schema.write_text(schema.read_text().replace('<tokenizer name="hmmChinese"/>', '<tokenizer name="standard"/>'))
    server = address.removesuffix("nutch")
    if not (home / "characters").exists():
        with urlopen(f"{server}admin/cores?action=CREATE&name=characters&configSet=characters") as answer:
            answer.read()
    return f"{server}characters"
