"""Queries as people type them, in seventeen languages, each with the page that must come first.

The folder ``human_queries`` has a file for each language: short pages as ``name = [title, content]``, among them near
misses, and queries with the name of the best page. All languages are in one index.
"""

import tomllib
from pathlib import Path

from tests.indexer.pages import doc

_FOLDER = Path(__file__).with_name("human_queries")
SUITES = {path.stem: tomllib.loads(path.read_text(encoding="utf-8")) for path in sorted(_FOLDER.glob("*.toml"))}
"""Language -> ``pages`` and ``queries``."""

QUERIES = {query: f"{lang}/{name}" for lang, suite in SUITES.items() for query, name in suite["queries"].items()}
"""Query -> language and name of the page that must come first."""


def documents():
    """Yield the pages as documents that differ in texts and addresses only."""
    for lang, suite in SUITES.items():
        for number, (name, (title, content)) in enumerate(suite["pages"].items()):
            host = f"{lang.lower()}.example.com"
            yield doc(
                f"com.example.{lang.lower()}:http/{lang}/{name}",
                url=f"http://{host}/{number}",
                host=host,
                title=title,
                content=content,
                lang=lang.partition("-")[0],
                type="text/html",
                tstamp="2024-01-01T00:00:00Z",
            )


def wrong(found_by):
    """Return the queries whose first page is another one. ``found_by``: query -> ids of hits, the best first."""
    errors = []
    for query, expected in QUERIES.items():
        found = ["/".join(each.split("/")[-2:]) for each in found_by(query)[:3]]
        if found[:1] != [expected]:
            errors.append(f"{query}: {found}, not {expected}")
    return errors
