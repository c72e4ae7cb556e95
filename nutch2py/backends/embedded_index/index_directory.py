"""IndexDirectory: the directory of the embedded index, its schema, version and lock.

``index.json`` records the version that created the index; the other files are tantivy's. An index of another version is
rejected, because its terms may differ from those of a query.

:class:`ReadOnlyIndexView` lets tantivy open an index that this user may only read. tantivy's readers hold a lock, too,
and must write its file. The view is a temporary directory with links to the files of the index: only ``meta.json`` is
copied, and the index is not changed.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import finalize

from nutch2py.backends.analysis.analyzer import ANALYSIS_VERSION, Analyzer
from nutch2py.backends.index_fields import FACET_NAMES, FACET_PREFIX, TEXT_FIELDS
from nutch2py.backends.index_lock import exclusive_lock
from nutch2py.backends.vectors.vector_store import VECTORS_FILE, VectorStore
from nutch2py.conf.configuration import Configuration
from nutch2py.errors import IndexingError
from nutch2py.support.disk_errors import disk_error_message
from nutch2py.support.reporting import warn
from nutch2py.support.temp_dirs import TempDir
from nutch2py.table.store_factory import store_location
from nutch2py.version import __version__

if TYPE_CHECKING:
    import tantivy


META_FILE = "meta.json"


class ReadOnlyIndexView:
    """Links to the files of one commit; the directory ``path`` is removed with this object."""

    def __init__(self, index_path: Path) -> None:
        scratch = TempDir("index")
        self._index_path, self.path = index_path.resolve(), scratch.path
        finalize(self, scratch.remove)
        self.refresh()

    def refresh(self) -> None:
        """Show the last commit; a concurrent writer may have deleted files of it.

        Until the writer makes a commit readable for others (:meth:`IndexDirectory.lock`), the previous one is shown.
        """
        try:
            meta = (self._index_path / META_FILE).read_bytes()
        except PermissionError:
            if (self.path / META_FILE).exists():
                return
            raise
        for link in self.path.iterdir():
            if link.is_symlink() and not link.exists():
                link.unlink()
        for file in self._index_path.iterdir():
            link = self.path / file.name
            if not file.name.startswith(".") and file.name != META_FILE and not link.is_symlink():
                link.symlink_to(file)
        new = self.path / f"{META_FILE}.new"
        new.write_bytes(meta)
        new.replace(self.path / META_FILE)


SCHEMA_VERSION = 6
"""Current layout of an index; ``index -reindex`` rebuilds an index of another layout from the table.

Older layouts are still read and written, with the text analysis that they were made with: 1 with English rules only, 2
without columns for filters, 3, whose scores change only with their documents, 4, without the terms of analysis 3, and
5, without those of analysis 4.
"""
_ANALYSIS_VERSIONS = {1: 1, 2: 2, 3: 2, 4: 2, 5: 3}
"""Layout -> version of the text analysis; the current one for other layouts."""
_OLDEST_SCHEMA_VERSION = 1
SCORE_COLUMNS_LAYOUT = 4
"""First layout whose scores can be replaced alone: ``pagerank`` is a column, and weights have room in their buckets."""
VERSION_FILE = "index.json"
_MAX_OPEN_ATTEMPTS = 3  # of a commit whose files a writer may delete meanwhile
_READERS_LOCK, _WRITERS_LOCK = ".tantivy-meta.lock", ".tantivy-writer.lock"
SCORES_TEMP_DIR = "scores.new"
"""Subdirectory of the index in which new columns are built; see
:mod:`nutch2py.backends.embedded_index.score_columns`.
"""
OTHER_DIR_ADVICE = "name another folder in index.embedded.path and run index -all"


def index_path(conf: Configuration) -> Path:
    """Return the directory of the index.

    The default of ``index.embedded.path`` is ``index`` in the directory of the embedded table, or
    ``<crawl id>_index`` for a crawl with an id. With a table elsewhere it is ``index`` in the working directory.
    """
    given = conf.get_trimmed("index.embedded.path")
    if given:
        return conf.absolute(given)
    store = store_location(conf)
    crawl_id = conf.get_trimmed("storage.crawl.id")
    name = f"{crawl_id}_index" if crawl_id else "index"
    return Path(store.removeprefix("embedded:")) / name if store.startswith("embedded:") else conf.absolute(name)


def make_schema(layout: int = SCHEMA_VERSION) -> tantivy.Schema:
    """Return tantivy's schema.

    ``exact`` holds ``field=value``; ``other`` holds the terms ``field=word`` of all other fields. ``document`` holds
    all fields as sent, as JSON. ``weight``, and ``weight=bucket`` in ``exact``, multiply relevance; see
    :mod:`nutch2py.backends.embedded_index.weight_buckets`. ``date`` (from layout 2 on) is in seconds since 1970. From
    layout 3 on ``facet_*`` are columns with the values of :data:`FACET_NAMES`. From layout 4 on ``pagerank`` is a
    column, which takes precedence over the value in ``document``.
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
        for name in FACET_NAMES:
            builder.add_text_field(f"{FACET_PREFIX}{name}", tokenizer_name="raw", index_option="basic", fast=True)
    if layout >= SCORE_COLUMNS_LAYOUT:
        builder.add_float_field("pagerank", fast=True)
    return builder.build()


class IndexDirectory:
    """The index on disk.

    Attributes:
        lock_timeout: Seconds to wait for other writers (``index.lock.timeout``).
        layout: Layout of the existing index, or of the one to create.
        analyzer: Analyzer for that layout.

    """

    def __init__(self, path: Path, conf: Configuration) -> None:
        self.path, self.lock_timeout = path, conf.get_float("index.lock.timeout", 300.0)
        self._conf = conf
        self._readonly_view: ReadOnlyIndexView | None = None
        found = self._read_version_file() if self.exists else None
        layout = found.get("schema") if isinstance(found, dict) else None
        readable = range(_OLDEST_SCHEMA_VERSION, SCHEMA_VERSION + 1)
        self.layout = layout if isinstance(layout, int) and layout in readable else SCHEMA_VERSION
        self.analyzer = Analyzer.from_conf(conf, rules_version=_ANALYSIS_VERSIONS.get(self.layout, ANALYSIS_VERSION))

    @classmethod
    def from_conf(cls, conf: Configuration) -> IndexDirectory:
        """Return the directory that a configuration names."""
        return cls(index_path(conf), conf)

    @property
    def vectors(self) -> VectorStore:
        """The vectors of the documents, which a rebuild of the index uses again."""
        return VectorStore(self.path / VECTORS_FILE, self.lock_timeout)

    @property
    def version_record(self) -> dict[str, str | int]:
        """Content of ``index.json`` for this version."""
        return {"schema": self.layout, "analysis": self.analyzer.version}

    def _read_version_file(self) -> object:
        """Return the content of ``index.json``; None when it cannot be read."""
        try:
            return json.loads((self.path / VERSION_FILE).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None

    @property
    def exists(self) -> bool:
        """Whether an index of any version exists."""
        return (self.path / META_FILE).is_file()

    def current_commit(self) -> object:
        """Return a value that identifies the last commit: each commit replaces the file."""
        stat = (self.path / META_FILE).stat()
        return stat.st_ino, stat.st_mtime_ns, stat.st_size, stat.st_mode

    def check_version(self) -> None:
        """Raise :class:`IndexingError` when the index was created by an incompatible version."""
        path = self.path / VERSION_FILE
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            found = None
        except (OSError, ValueError) as error:
            raise IndexingError(f"cannot read {path}: {error}: delete {self.path} and run index -reindex") from error
        if found == self.version_record:
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
        elif layout < _OLDEST_SCHEMA_VERSION:
            ours = f"this one ({__version__}) has {SCHEMA_VERSION}"
            reason = f"has layout {layout}, that of an earlier version of nutch2py; {ours}"
        else:
            reason = "was made with another text analysis or another index.userdict.file"
        raise IndexingError(f"the index {self.path} {reason}: rebuild it with index -reindex")

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the writer lock within the block; then make the commit readable for users who may read the version file.

        tantivy creates the file of each commit for its own user only.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            problem = disk_error_message(error, f"the index {self.path}", OTHER_DIR_ADVICE)
            raise IndexingError(
                problem or f"cannot make the index {self.path}: {error.strerror}: check the folder"
            ) from error
        with exclusive_lock(self.path / "writer.lock", self.lock_timeout, f"the index {self.path}"):
            try:
                yield
            finally:
                with suppress(OSError):  # no commit was made, or the file is another user's
                    (self.path / META_FILE).chmod((self.path / VERSION_FILE).stat().st_mode)

    def open(self) -> tantivy.Index:
        """Open the index for searching; raise IndexingError with advice when it does not exist."""
        if not self.exists:
            raise IndexingError(f"no index found in {self.path}: run nutch2py crawl or index first")
        self.check_version()
        return self._open()

    def open_readonly(self) -> tantivy.Index:
        """Open the index like :meth:`open`, also for a user without write permission; no writer can be opened on it."""
        lock = self.path / _READERS_LOCK
        if not self.exists or os.access(lock if lock.exists() else self.path, os.W_OK):
            return self.open()
        self.check_version()
        for attempt in range(_MAX_OPEN_ATTEMPTS):
            try:
                if self._readonly_view is None:
                    self._readonly_view = ReadOnlyIndexView(self.path)
                else:
                    self._readonly_view.refresh()
                return self._open(self._readonly_view.path)
            except OSError as error:
                raise IndexingError(f"cannot open the index {self.path}: {error}: {self._repair_advice()}") from error
            except IndexingError:
                if attempt == _MAX_OPEN_ATTEMPTS - 1:
                    raise
        raise AssertionError

    def refresh_view(self) -> None:
        """Show the last commit to an index opened by :meth:`open_readonly`, before its reload."""
        if self._readonly_view is not None:
            self._readonly_view.refresh()

    def open_or_create(self) -> tantivy.Index:
        """Open the index for writing, or create it; the caller must hold the lock."""
        import tantivy

        if self.exists:
            self.check_version()
            return self._open()
        # The version comes first: a directory with meta.json and without version would be rejected forever.
        new = self.path / f"{VERSION_FILE}.new"
        try:
            new.write_text(json.dumps(self.version_record), encoding="utf-8")
            new.replace(self.path / VERSION_FILE)
            return tantivy.Index(make_schema(self.layout), str(self.path))
        except (ValueError, OSError) as error:
            raise self.write_error(error) from error

    def remove_uncommitted_deletes(self) -> None:
        """Remove the lists of deleted documents of a commit that did not finish; the caller must hold the lock.

        tantivy names them by the number of the commit. The next commit has the same number, and would fail for ever
        because the file exists. No reader uses them.
        """
        committed = json.loads((self.path / META_FILE).read_text(encoding="utf-8"))["opstamp"]
        for file in self.path.glob("*.*.del"):
            number = file.name.split(".")[1]
            if number.isdecimal() and int(number) > committed:
                file.unlink(missing_ok=True)

    def write_error(self, error: Exception) -> IndexingError:
        """Return the error for an index that cannot be written; the next run sends uncommitted documents again."""
        problem = disk_error_message(error, f"the index {self.path}", OTHER_DIR_ADVICE)
        repair = self._missing_permission(for_writing=True) or "free some space or mend the disk"
        return IndexingError(problem or f"cannot write the index {self.path}: {error}: {repair}; run it again")

    def _missing_permission(self, for_writing: bool = False) -> str:
        """Return advice on the first missing permission, "" when none is missing.

        tantivy's readers hold a lock, too, so that reading requires writing a lock file. ``for_writing``: check for
        changes of the index.
        """
        for file in sorted(self.path.iterdir()) if os.access(self.path, os.R_OK | os.X_OK) else [self.path]:
            # Hidden files concern writers only.
            if not (os.access(file, os.R_OK) or (file.name.startswith(".") and not for_writing)):
                return f"give this user the right to read {file}"
        locks = [self.path / name for name in (_READERS_LOCK, *([_WRITERS_LOCK] if for_writing else ()))]
        for file in [*locks, *([self.path] if for_writing else ())]:
            if not os.access(file if file.exists() else self.path, os.W_OK):
                return f"give this user the right to write {file}"
        return ""

    def _open(self, path: Path | None = None) -> tantivy.Index:
        import tantivy

        try:
            return tantivy.Index.open(str(path or self.path))
        except (ValueError, OSError) as error:
            raise IndexingError(f"cannot open the index {self.path}: {error}: {self._repair_advice()}") from error

    def _repair_advice(self) -> str:
        return self._missing_permission() or "delete it and run index -reindex"

    def delete_outdated(self) -> bool:
        """Delete an index that this version cannot read, so that it is rebuilt; return whether one was deleted."""
        if not self.exists:
            return False
        with self.lock():
            try:
                self.check_version()
                self._open()
                if self.layout == SCHEMA_VERSION:
                    return False
            except IndexingError as error:
                warn(f"{error}: rebuilding it")
            self._delete_files()
            self.layout, self.analyzer = SCHEMA_VERSION, Analyzer.from_conf(self._conf)
            return True

    def _delete_files(self) -> None:
        try:
            (self.path / META_FILE).unlink(missing_ok=True)  # first: without it the directory holds no index
            shutil.rmtree(self.path / SCORES_TEMP_DIR, ignore_errors=True)
            for file in self.path.iterdir():
                if file.is_file() and file.name not in ("writer.lock", VECTORS_FILE):
                    file.unlink()
        except OSError as error:
            raise self.write_error(error) from error
