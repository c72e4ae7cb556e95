"""The folder of the embedded index: where it is, what is in it, and whether this program can read it.

``index.json`` says which version made the index; the rest is tantivy's. A folder that another version made is refused,
for its words may be cut otherwise than a query's.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from nutch2py.backends.analysis import ANALYSIS_VERSION, Analyzer
from nutch2py.backends.index_lock import exclusive
from nutch2py.backends.index_view import META, IndexView
from nutch2py.conf import Configuration
from nutch2py.disk import disk_trouble
from nutch2py.errors import IndexingError
from nutch2py.reporting import warn
from nutch2py.table.opening import store_location
from nutch2py.version import __version__

if TYPE_CHECKING:
    import tantivy

SCHEMA_VERSION = 4
"""The layout of an index; ``index -reindex`` makes one of another layout anew of the table.

The first, 1, is read and written still, with the words of then, and so are 2, which has no columns to narrow by,
and 3, whose scores change with their documents only.
"""
_OLDEST = 1
SCORES_LAYOUT = 4
"""The first whose scores can be replaced alone: ``pagerank`` is a column, and factors have room in their buckets."""
VERSION_FILE = "index.json"
_TRIES = 3  # to open a commit whose files a writer may delete meanwhile
_READERS_LOCK, _WRITERS_LOCK = ".tantivy-meta.lock", ".tantivy-writer.lock"
SCRATCH = "scores.new"
"""A folder within that of the index in which columns are made; see :mod:`nutch2py.backends.index_columns`."""
INSTEAD = "name another folder in index.embedded.path and run index -all"

TEXT_FIELDS = ("title", "content", "anchor", "url", "host")
"""Fields whose words are searched when a query names no field."""

TERMS = "terms_"
"""What the fields begin with that hold the same in Solr and in OpenSearch: ``terms_title`` … ``terms_exact``."""

FACETS = ("host", "path", "type", "lang", "date")
"""What results are narrowed by. ``path``: ``host/folder/`` and those within it; ``date``: year, and ``year-month``."""
FACET = "facet_"
"""What the fields begin with that hold the values of facets."""

NEAR = f"{TERMS}{FACET}near"
"""What holds the sketch of a text (:mod:`nutch2py.backends.sketch`); ``near=SKETCH`` among whole values has it, too."""

EXACT_FIELDS = frozenset(
    {"site", "type", "lang", "digest", "batchId", "domain", "cache", "cc", "tld", "subcollection", "tag", "feed"}
)
"""Fields that match as a whole, in any case: ``type:text/html``. ``site`` is the host and every domain above it."""


def index_path(conf: Configuration) -> Path:
    """Return the folder of the index.

    ``index.embedded.path``, or else the folder ``index`` within that of the embedded table (``<crawl id>_index`` for
    a crawl with an id, as its table has a name of its own); with a table elsewhere, ``index`` in the working
    folder.
    """
    given = conf.get_trimmed("index.embedded.path")
    if given:
        return conf.absolute(given)
    store = store_location(conf)
    crawl_id = conf.get_trimmed("storage.crawl.id")
    name = f"{crawl_id}_index" if crawl_id else "index"
    return Path(store.removeprefix("embedded:")) / name if store.startswith("embedded:") else conf.absolute(name)


MIN_WEIGHT, MAX_WEIGHT = 1e-4, 1e4
WEIGHT_BUCKETS = range(-2, 3)
_LARGEST = 126.0  # log2 of the largest float of four bytes, about


def unit_of(bucket: int, layout: int = SCHEMA_VERSION) -> float:
    """Return what documents of a bucket are multiplied by beside their field: the least weight of the bucket.

    From layout 4 on a bucket is around a power of 100 and not above it: weights are mostly near 1, and may change there
    without another bucket.
    """
    return 100.0**bucket * (0.1 if layout >= SCORES_LAYOUT else 1.0)


def field_of_weight(weight: float, bucket: int, layout: int = SCHEMA_VERSION) -> float | None:
    """Return the field by which a document of a bucket has a weight, None where the bucket has no such weights."""
    share = min(max(weight, MIN_WEIGHT), MAX_WEIGHT) / unit_of(bucket, layout)
    return 2.0**share - 2.0 if 1.0 <= share <= _LARGEST else None


def split_weight(weight: float, layout: int = SCHEMA_VERSION) -> tuple[int, float]:
    """Return bucket and field of a weight: what multiplies relevance exactly, whatever the weight.

    tantivy (0.27) can multiply a score by log2(2 + field), in floats of four bytes and not by less than 1: good for
    factors from 1 to 100. The rest is the unit of a bucket, by which the query is boosted for its documents.

    >>> split_weight(1.0), split_weight(20.0)
    ((0, 1022.0), (1, 2.0))
    >>> split_weight(1.0, 3), split_weight(0.02, 3), split_weight(300.0, 3), split_weight(0.0, 3)
    ((0, 0.0), (-1, 2.0), (1, 6.0), (-2, 0.0))
    """
    weight = min(max(weight, MIN_WEIGHT), MAX_WEIGHT)
    bucket = max(b for b in WEIGHT_BUCKETS if weight >= unit_of(b, layout))
    return bucket, 2.0 ** (weight / unit_of(bucket, layout)) - 2.0


def make_schema(layout: int = SCHEMA_VERSION) -> tantivy.Schema:
    """Return tantivy's schema. ``exact`` holds ``field=value``, ``other`` the words ``field=word`` of any other field.

    All fields as they were sent are in ``document``, as JSON; ``weight`` and ``weight=bucket`` among ``exact`` are what
    relevance is multiplied by (:func:`split_weight`); ``date`` (from layout 2 on) is in seconds since 1970. From 3 on
    ``facet_*`` are columns with the values of :data:`FACETS`, from 4 on ``pagerank`` is one: what stands there goes
    before what ``document`` says.
    """
    import tantivy

    builder = tantivy.SchemaBuilder()
    builder.add_text_field("id", tokenizer_name="raw", index_option="basic")
    for name in (*TEXT_FIELDS, "other"):
        builder.add_text_field(name, tokenizer_name="whitespace", index_option="position")
    builder.add_text_field("exact", tokenizer_name="raw", index_option="basic")
    builder.add_float_field("weight", fast=True)
    builder.add_bytes_field("document", stored=True)
    if layout > 1:
        builder.add_integer_field("date", fast=True)
    if layout > 2:
        for name in FACETS:
            builder.add_text_field(f"{FACET}{name}", tokenizer_name="raw", index_option="basic", fast=True)
    if layout >= SCORES_LAYOUT:
        builder.add_float_field("pagerank", fast=True)
    return builder.build()


class IndexFolder:
    """The index on disk. ``timeout``: seconds to wait for other writers (``index.lock.timeout``).

    ``layout``: of the index that is there, or that would be made; ``analyzer`` makes the words of that one.
    """

    def __init__(self, path: Path, conf: Configuration) -> None:
        self.path, self.timeout = path, conf.get_float("index.lock.timeout", 300.0)
        self._conf = conf
        self._view: IndexView | None = None
        found = self._found() if self.exists else None
        layout = found.get("schema") if isinstance(found, dict) else None
        readable = range(_OLDEST, SCHEMA_VERSION + 1)
        self.layout = layout if isinstance(layout, int) and layout in readable else SCHEMA_VERSION
        self.analyzer = Analyzer.of(conf, rules=min(self.layout, ANALYSIS_VERSION))

    @classmethod
    def of(cls, conf: Configuration) -> IndexFolder:
        """Return the folder that a configuration names."""
        return cls(index_path(conf), conf)

    @property
    def version(self) -> dict[str, str | int]:
        """What this program writes into ``index.json``."""
        return {"schema": self.layout, "analysis": self.analyzer.version}

    def _found(self) -> object:
        """Return what ``index.json`` says, None when it says nothing that can be read."""
        try:
            return json.loads((self.path / VERSION_FILE).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None

    @property
    def exists(self) -> bool:
        """Whether there is an index, of whatever version."""
        return (self.path / META).is_file()

    def commit(self) -> object:
        """Return what tells one commit from another: each puts a new file in the place of the one that was there."""
        found = (self.path / META).stat()
        return found.st_ino, found.st_mtime_ns, found.st_size, found.st_mode

    def check_version(self) -> None:
        """Raise :class:`IndexingError` when another version made the index."""
        path = self.path / VERSION_FILE
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            found = None
        except (OSError, ValueError) as error:
            raise IndexingError(f"cannot read {path}: {error}: delete {self.path} and run index -reindex") from error
        if found == self.version:
            return
        layout = found.get("schema") if isinstance(found, dict) else None
        if not isinstance(layout, int):
            reason = "was not made by nutch2py"
        elif layout > SCHEMA_VERSION:
            raise IndexingError(
                f"the index {self.path} has layout {layout}, which a later version of nutch2py made; this one "
                f"({__version__}) has {SCHEMA_VERSION}: install the later version, name another folder in "
                "index.embedded.path, or rebuild it with index -reindex"
            )
        elif layout < _OLDEST:
            ours = f"this one ({__version__}) has {SCHEMA_VERSION}"
            reason = f"has layout {layout}, that of an earlier version of nutch2py; {ours}"
        else:
            reason = "was made with another text analysis or another index.userdict.file"
        raise IndexingError(f"the index {self.path} {reason}: rebuild it with index -reindex")

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the lock of who changes the index within the block; who may read other files of it may read its commit.

        tantivy makes the file of each commit for its own user alone.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            trouble = disk_trouble(error, f"the index {self.path}", INSTEAD)
            raise IndexingError(
                trouble or f"cannot make the index {self.path}: {error.strerror}: check the folder"
            ) from error
        with exclusive(self.path / "writer.lock", self.timeout, f"the index {self.path}"):
            try:
                yield
            finally:
                with suppress(OSError):  # none was made, or it is another user's
                    (self.path / META).chmod((self.path / VERSION_FILE).stat().st_mode)

    def open(self) -> tantivy.Index:
        """Open the index for searching; IndexingError when there is none, with what to do."""
        if not self.exists:
            raise IndexingError(f"there is no index in {self.path}: run nutch2py index first")
        self.check_version()
        return self._open()

    def open_to_read(self) -> tantivy.Index:
        """Open the index as :meth:`open` does, also for a user who may not write in it; it takes no writer then."""
        lock = self.path / _READERS_LOCK
        if not self.exists or os.access(lock if lock.exists() else self.path, os.W_OK):
            return self.open()
        self.check_version()
        for attempt in range(_TRIES):
            try:
                if self._view is None:
                    self._view = IndexView(self.path)
                else:
                    self._view.renew()
                return self._open(self._view.path)
            except OSError as error:
                raise IndexingError(f"cannot open the index {self.path}: {error}: {self._lacks()}") from error
            except IndexingError:
                if attempt == _TRIES - 1:
                    raise
        raise AssertionError

    def renew(self) -> None:
        """Show the last commit to an index that was opened by :meth:`open_to_read`, before its reload."""
        if self._view is not None:
            self._view.renew()

    def open_or_create(self) -> tantivy.Index:
        """Open the index for writing, made when there is none; to be called while the lock is held."""
        import tantivy

        if self.exists:
            self.check_version()
            return self._open()
        # the version comes first: a folder with meta.json and without version would be refused for ever
        new = self.path / f"{VERSION_FILE}.new"
        try:
            new.write_text(json.dumps(self.version), encoding="utf-8")
            new.replace(self.path / VERSION_FILE)
            return tantivy.Index(make_schema(self.layout), str(self.path))
        except (ValueError, OSError) as error:
            raise self.unwritable(error) from error

    def unwritable(self, error: Exception) -> IndexingError:
        """Return what it means that the index cannot be written: what was not committed is sent again."""
        trouble = disk_trouble(error, f"the index {self.path}", INSTEAD)
        repair = self._right_that_lacks(writes=True) or "free some space or mend the disk"
        return IndexingError(trouble or f"cannot write the index {self.path}: {error}: {repair}; run it again")

    def _right_that_lacks(self, writes: bool = False) -> str:
        """Return which right this user is to be given, "" when none is lacking; ``writes``: to change the index.

        tantivy's readers hold a lock, too, for which a file has to be written.
        """
        for file in sorted(self.path.iterdir()) if os.access(self.path, os.R_OK | os.X_OK) else [self.path]:
            if not (os.access(file, os.R_OK) or (file.name.startswith(".") and not writes)):  # that are writers' alone
                return f"give this user the right to read {file}"
        locks = [self.path / name for name in (_READERS_LOCK, *([_WRITERS_LOCK] if writes else ()))]
        for file in [*locks, *([self.path] if writes else ())]:
            if not os.access(file if file.exists() else self.path, os.W_OK):
                return f"give this user the right to write {file}"
        return ""

    def _open(self, path: Path | None = None) -> tantivy.Index:
        import tantivy

        try:
            return tantivy.Index.open(str(path or self.path))
        except (ValueError, OSError) as error:
            raise IndexingError(f"cannot open the index {self.path}: {error}: {self._lacks()}") from error

    def _lacks(self) -> str:
        return self._right_that_lacks() or "delete it and run index -reindex"

    def discard_outdated(self) -> bool:
        """Delete an index that this version cannot read, to be made anew; tell whether there was one."""
        if not self.exists:
            return False
        with self.lock():
            try:
                self.check_version()
                self._open()
                if self.layout == SCHEMA_VERSION:
                    return False
            except IndexingError as error:
                warn(f"{error}: it is made anew now")
            self._clear()
            self.layout, self.analyzer = SCHEMA_VERSION, Analyzer.of(self._conf)
            return True

    def _clear(self) -> None:
        try:
            (self.path / META).unlink(missing_ok=True)  # first: without it there is no index
            shutil.rmtree(self.path / SCRATCH, ignore_errors=True)
            for file in self.path.iterdir():
                if file.is_file() and file.name != "writer.lock":
                    file.unlink()
        except OSError as error:
            raise self.unwritable(error) from error
