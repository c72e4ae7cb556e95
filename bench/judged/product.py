"""The product: documents as pages of a local site, crawled with the defaults, asked through the Python interface."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Mapping
from functools import partial
from html import escape
from pathlib import Path
from urllib.parse import quote, unquote

from bench.judged.collection import Document, JudgedCollection
from bench.ranking.crawl import served
from nutch2py import REINDEX, Crawl

_COMPLETE, _ENCODED = "crawled", "encoded"
ENCODER = {"index.encoder": "encoder-onnx"}
"""Properties of hybrid search."""


class CrawledCollection:
    """A collection that was crawled into a folder, by default settings; a complete crawl is used again."""

    def __init__(self, collection: JudgedCollection, folder: Path, properties: Mapping[str, str]) -> None:
        self.collection, self.folder = collection, folder / collection.name
        self.site = f"http://{collection.name}.example/"
        self.properties = {"http.agent.name": "judged-bench", **properties}

    def crawl(self) -> None:
        """Crawl the site of the documents, unless that is done."""
        complete = self.folder / _COMPLETE
        if complete.exists():
            return
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        started = time.monotonic()
        pages = {
            self._url(key): partial(render_page, document, self.collection.language)
            for key, document in self.collection.documents.items()
        }
        with served(pages) as port:
            # one site on this machine: no address filter, no delays
            access = {
                "http.proxy.host": "127.0.0.1",
                "http.proxy.port": str(port),
                "http.filter.ipaddress.exclude": "",
                "fetcher.server.delay": "0",
                "fetcher.server.min.delay": "0",
                "fetcher.threads.per.queue": "8",
            }
            with Crawl(self._store(), {**self.properties, **access}) as crawl:
                crawl.inject(pages)
                batch = crawl.generate()
                fetched = crawl.fetch(batch.batch_id).count("FetcherStatus", "SUCCESS")
                crawl.parse(batch.batch_id)
                crawl.updatedb(batch.batch_id)
                crawl.index(batch.batch_id)
        if fetched != len(pages):
            raise SystemExit(f"{self.collection.name}: {fetched} of {len(pages)} pages were fetched")
        complete.touch()
        print(f"{self.collection.name}: crawled in {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)

    def reindex(self) -> None:
        """Index the crawled pages again, into a new index."""
        with Crawl(self._store(), self.properties) as crawl:
            shutil.rmtree(self.folder / "crawldata" / "index", ignore_errors=True)
            (self.folder / _ENCODED).unlink(missing_ok=True)
            crawl.index(REINDEX)

    def encode(self) -> None:
        """Give the indexed pages vectors, unless that is done; the index of words stays the same."""
        complete = self.folder / _ENCODED
        if complete.exists():
            return
        started, before = time.monotonic(), time.process_time()
        with Crawl(self._store(), {**self.properties, **ENCODER}) as crawl:
            crawl.index(REINDEX)
        complete.touch()
        seconds = time.monotonic() - started
        cpu = (time.process_time() - before) * 1000 / len(self.collection.documents)
        print(f"{self.collection.name}: encoded in {seconds:.0f} s, {cpu:.0f} ms of CPU a page", file=sys.stderr)

    def rankings(self, queries: Mapping[str, str], rows: int, is_hybrid: bool = False) -> dict[str, list[str]]:
        """Return the ids of the best documents of each query."""
        found = {}
        with Crawl(self._store(), {**self.properties, **(ENCODER if is_hybrid else {})}) as crawl:
            for key, query in queries.items():
                found[key] = [self._document_id(hit.url) for hit in crawl.search(query, rows=rows).hits]
        return found

    def _store(self) -> str:
        return f"embedded:{self.folder / 'crawldata'}"

    def _url(self, key: str) -> str:
        return f"{self.site}{quote(key, safe='')}"

    def _document_id(self, url: str) -> str:
        return unquote(url.removeprefix(self.site))


def render_page(document: Document, language: str) -> str:
    """Return the page of a document: its title as title and heading, its text in paragraphs."""
    title = escape(document.title)
    head = f"<title>{title}</title>" if title else ""
    heading = f"<h1>{title}</h1>" if title else ""
    paragraphs = "".join(f"<p>{escape(part)}</p>" for part in document.text.split("\n") if part.strip())
    return (
        f'<!doctype html><html lang="{language}"><head><meta charset="utf-8">{head}</head>'
        f"<body>{heading}{paragraphs}</body></html>"
    )
