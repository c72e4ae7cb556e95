"""Where table and index of a crawl lie, and all that can be read of them."""

from __future__ import annotations

import json
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import urlopen

from nutch2py.backends.embedded_index.index_directory import IndexDirectory
from nutch2py.conf.configuration import Configuration
from nutch2py.joblog.job_log_store import KEY_PREFIX
from nutch2py.jobs.batches.batch_lists import BatchListStore
from nutch2py.jobs.fetch.address_recheck import ADDRESS_FILTER_PREFIX
from nutch2py.mapreduce.lock_check import LOCKS_KEY, decode_holders
from nutch2py.records.webpage import DerivedRow, Host, WebPage
from nutch2py.search.engines.embedded_searcher import EmbeddedSearcher
from nutch2py.table import DataStore, TableQuery, open_store
from tests.jobs.crawl import CLOCK, SETTINGS
from tests.kill.site import Plan

CLOCKS = (
    *(f"{family.decode()}:{name.decode()}" for family, names in CLOCK.items() for name in sorted(names)),
    "f:mod",
    "f:pmod",
)
"""Cells of which only existence is compared, and of times whether they are above zero.

They are the times of fetches (``f:ts``, ``f:pts``), of the fetch that saw a page changed (``f:mod``, ``f:pmod``), and
how long an answer took (``mtdt:_rs_``)."""
CLOCK_FIELDS = ("tstamp", "date", "lastModified", "terms_date", "_version_")
"""Fields of documents that are not compared: times of fetches and changes, and Solr's own number of a version."""
Cells = dict[str, tuple[bytes, int]]


@dataclass
class Seen:
    """All that a crawl has at one moment.

    ``rows``: row key -> column -> (value, cell timestamp); ``documents``: id -> fields; ``notes``: ``batch row`` ->
    links that the page has lost; ``batches``: id -> (state, count, since); ``listed``: id -> row keys; ``others``: keys
    of the derived table that are none of these; ``held``: jobs that hold the lock; ``underived``: where what the
    store derives from the rows is not what they give.
    """

    rows: dict[str, Cells] = field(default_factory=dict)
    documents: dict[str, dict[str, Any]] = field(default_factory=dict)
    notes: dict[str, list[str]] = field(default_factory=dict)
    batches: dict[str, tuple[str, int, int]] = field(default_factory=dict)
    listed: dict[str, set[str]] = field(default_factory=dict)
    others: list[str] = field(default_factory=list)
    held: list[str] = field(default_factory=list)
    underived: list[str] = field(default_factory=list)

    def comparable(self) -> dict[str, Any]:
        """Everything without clocks, flat, for a comparison that names what differs."""
        flat: dict[str, Any] = {}
        for key, cells in self.rows.items():
            for column, (value, _) in cells.items():
                flat[f"{key} {column}"] = _clock(column, value) if column in CLOCKS else value
        for key, document in self.documents.items():
            flat.update({f"document {key} {k}": v for k, v in document.items() if k not in CLOCK_FIELDS})
        flat.update({f"note {key}": sorted(urls) for key, urls in self.notes.items()})
        flat.update({f"batch {name}": (state, count) for name, (state, count, _) in self.batches.items()})
        flat.update({f"list {name}": sorted(keys) for name, keys in self.listed.items()})
        flat["others"] = self.others
        return flat


def differences(found: Seen, expected: Seen) -> list[str]:
    """Return what differs, one line each, outside of clocks."""
    mine, theirs = found.comparable(), expected.comparable()
    return [
        f"{name}: {_short(mine.get(name))}, undisturbed {_short(theirs.get(name))}"
        for name in sorted(mine.keys() | theirs.keys())
        if mine.get(name) != theirs.get(name)
    ]


def _clock(column: str, value: bytes) -> str:
    return "a clock" if any(value) or not column.startswith("f:") else "0"


def _short(value: object) -> str:
    text = "nothing" if value is None else repr(value)
    return text if len(text) < 200 else f"{text[:200]}…"


class Ground(ABC):
    """Table and index of one crawl. ``settings``: the properties that lead there."""

    def __init__(self, plan: Plan) -> None:
        self.settings = {
            **SETTINGS,
            "fetcher.threads.fetch": "4",
            "gora.buffer.write.limit": str(plan.rows),
            "storage.buffer.write.bytes": str(plan.bytes),
            "hbase.thrift.write.rows": str(plan.rows),
            "hbase.thrift.write.bytes": str(plan.bytes),
            "hbase.thrift.scan.rows": "5",
            "hbase.due.index": "true",
            "hbase.due.exact.share": "1",
            "generate.due.share": "1",  # by the index, also in so small a table
            "index.embedded.batch": "10",  # more than the table's buffer holds: no mark comes first by chance
            "solr.commit.size": "10",
        }

    @property
    def conf(self) -> Configuration:
        """The configuration that commands get."""
        return Configuration.load(overrides=self.settings)

    def seen(self) -> Seen:
        """Read everything."""
        conf, seen = self.conf, Seen()
        pages, lists = open_store(conf, WebPage), BatchListStore(conf)
        try:
            if pages.exists():
                for key, families in pages.scan_cells():
                    cells = seen.rows[key] = {}
                    for family, columns in families.items():
                        for qualifier, cell in columns.items():
                            cells[f"{family.decode()}:{qualifier.decode()}"] = cell
                index = pages.due_index()
                if trouble := index.unavailable_reason:
                    seen.underived.append(trouble)
                else:
                    index.check(seen.underived.append)
            if lists.store.exists():
                self._read_lists(lists, seen)
        finally:
            pages.close()
            lists.store.close()
        seen.documents = self.documents([*seen.rows])
        return seen

    @staticmethod
    def _read_lists(lists: BatchListStore, seen: Seen) -> None:
        for key, entry in lists.store.scan(TableQuery(None)):
            kind, _, rest = key.partition("/")
            batch, _, name = rest.partition("/")
            if key == LOCKS_KEY:
                seen.held = [holder.job for holder in decode_holders(entry.data)]
            elif kind == "s":
                seen.batches[batch] = entry.state or "", entry.count, entry.time
            elif kind == "l":
                seen.listed.setdefault(batch, set()).add(entry.key or "")
            elif kind == "u" and entry.data:
                seen.notes[f"{batch} {name}"] = json.loads(entry.data)
            elif not key.startswith((KEY_PREFIX, ADDRESS_FILTER_PREFIX)):
                seen.others.append(key)

    @abstractmethod
    def documents(self, keys: list[str]) -> dict[str, dict[str, Any]]:
        """Return the documents of the index by their ids."""

    @abstractmethod
    def remove(self) -> None:
        """Delete the crawl."""

    def store(self) -> DataStore[WebPage]:
        """Open the table of pages."""
        return open_store(self.conf, WebPage)


class EmbeddedGround(Ground):
    """Table and index in a folder."""

    def __init__(self, plan: Plan, folder: Path) -> None:
        super().__init__(plan)
        self.folder = folder
        folder.mkdir(exist_ok=True)
        self.settings["storage.data.store"] = f"embedded:{folder}"

    def documents(self, keys: list[str]) -> dict[str, dict[str, Any]]:
        conf = self.conf
        if not IndexDirectory.from_conf(conf).exists:
            return {}
        searcher = EmbeddedSearcher(conf)
        found = {key: document for key in keys if (document := searcher.get_document(key)) is not None}
        assert searcher.count() == len(found), "the index has documents of which the table has no row"
        return found

    def copy(self, folder: Path) -> None:
        """Copy the crawl to a folder that does not exist yet."""
        shutil.copytree(self.folder, folder)

    def remove(self) -> None:
        shutil.rmtree(self.folder)


class ServerGround(Ground):
    """The table in HBase or in a folder, the index in Solr or next to the table.

    ``hbase``: an address, "" for a folder; ``solr``: the address of a core, "" for a folder.
    """

    def __init__(self, plan: Plan, folder: Path, name: str, hbase: str, solr: str) -> None:
        super().__init__(plan)
        self.folder, self.solr = folder, solr
        folder.mkdir(exist_ok=True)
        self.settings["storage.data.store"] = hbase or f"embedded:{folder}"
        self.settings["storage.crawl.id"] = name
        self.settings["index.embedded.path"] = str(folder / "index")
        if solr:
            self.settings["solr.server.url"] = solr
            self.ask_solr("update", commit="true", **{"stream.body": "<delete><query>*:*</query></delete>"})

    def ask_solr(self, path: str, **parameters: str) -> dict[str, Any]:
        data = None
        body = parameters.pop("stream.body", None)
        headers = {}
        if body is not None:
            data, headers = body.encode(), {"Content-Type": "text/xml"}
        from urllib.request import Request

        with urlopen(Request(f"{self.solr}/{path}?{urlencode({**parameters, 'wt': 'json'})}", data, headers)) as answer:
            found: dict[str, Any] = json.load(answer)
        return found

    def documents(self, keys: list[str]) -> dict[str, dict[str, Any]]:
        if not self.solr:
            return EmbeddedGround.documents(self, keys)  # type: ignore[arg-type]
        found = self.ask_solr("select", q="*:*", rows="10000")["response"]["docs"]
        return {document["id"]: document for document in found}

    def remove(self) -> None:
        conf = self.conf
        for record in (WebPage, DerivedRow, Host):
            store: Any = open_store(conf, record)
            store.drop()
            store.close()
        shutil.rmtree(self.folder)


MakeGround = Callable[[Plan, Path], Ground]
