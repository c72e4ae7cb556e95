"""VectorStore: the file ``vectors.sqlite`` of the index directory, with the vectors of pages by document id.

A vector is stored as whole numbers of 8 bits and a factor. With it are the model, a digest of the encoded text, by
which a page with the same text is not encoded again, and the signature of the page (``digest``), by which a search
ignores the vector of another version of a page. The file holds nothing that cannot be made again: a damaged one is
replaced.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from nutch2py.errors import IndexingError
from nutch2py.support.disk_errors import disk_error_message
from nutch2py.support.reporting import warn

if TYPE_CHECKING:
    import sqlite3

    import numpy as np
    from numpy.typing import NDArray

VECTORS_FILE = "vectors.sqlite"
_IDS_PER_QUERY = 500
_SCHEMA = (
    "create table if not exists vectors "
    "(id text primary key, model text, text_digest blob, signature text, factor real, vector blob)"
)


class VectorKey(NamedTuple):
    """Origin of a vector: model, digest of the text, and signature of the page."""

    model: str
    text_digest: bytes
    signature: str


class StoredVector(NamedTuple):
    """A vector of whole numbers from -127 to 127, to be multiplied by ``factor``."""

    key: VectorKey
    factor: float
    values: bytes

    @classmethod
    def from_array(cls, key: VectorKey, vector: NDArray[np.float32]) -> StoredVector:
        """Return a vector with its values rounded to 8 bits."""
        import numpy as np

        factor = float(np.abs(vector).max(initial=0.0)) / 127 or 1.0
        return cls(key, factor, np.rint(vector / factor).astype(np.int8).tobytes())

    def to_array(self) -> NDArray[np.float32]:
        """Return the vector as floats."""
        import numpy as np

        return np.frombuffer(self.values, np.int8).astype(np.float32) * np.float32(self.factor)


class VectorStore:
    """The vectors of an index.

    Writers hold the lock of the index. Readers need none: each read sees one state of the file.
    """

    def __init__(self, path: Path, lock_timeout: float = 300.0) -> None:
        self.path, self._timeout = path, lock_timeout

    @property
    def exists(self) -> bool:
        """Whether the file exists."""
        return self.path.is_file()

    def version(self) -> object:
        """Return a value that changes with each write; None without a file."""
        try:
            stat = self.path.stat()
        except FileNotFoundError:
            return None
        return stat.st_ino, stat.st_mtime_ns, stat.st_size

    def read_keys(self, ids: Sequence[str]) -> dict[str, VectorKey]:
        """Return the keys of the vectors that documents have; an unreadable file has none."""
        return {row[0]: VectorKey(*row[1:]) for row in self._read_rows("id, model, text_digest, signature", ids)}

    def read(self, ids: Sequence[str]) -> dict[str, StoredVector]:
        """Return the vectors that documents have; an unreadable file has none."""
        rows = self._read_rows("id, model, text_digest, signature, factor, vector", ids)
        return {row[0]: StoredVector(VectorKey(*row[1:4]), *row[4:]) for row in rows}

    def _read_rows(self, columns: str, ids: Sequence[str]) -> list[Any]:
        rows: list[Any] = []
        if not self.exists:
            return rows
        import sqlite3

        try:
            with self._connection() as database:
                for start in range(0, len(ids), _IDS_PER_QUERY):
                    part = ids[start : start + _IDS_PER_QUERY]
                    marks = ",".join("?" * len(part))
                    rows += database.execute(f"select {columns} from vectors where id in ({marks})", part)  # noqa: S608
        except sqlite3.DatabaseError:  # the next write reports and replaces it
            return []
        return rows

    def count(self) -> int:
        """Return the number of vectors."""
        if not self.exists:
            return 0
        with self._reading() as database:
            return int(database.execute("select count(*) from vectors").fetchone()[0])

    def ids(self) -> list[str]:
        """Return the ids of all documents with a vector."""
        if not self.exists:
            return []
        with self._reading() as database:
            return [row[0] for row in database.execute("select id from vectors")]

    def iter_model(self, model: str) -> Iterator[tuple[str, str, float, bytes]]:
        """Yield id, signature, factor and values of each vector of a model."""
        if not self.exists:
            return
        with self._reading() as database:
            query = "select id, signature, factor, vector from vectors where model = ?"
            yield from database.execute(query, (model,))

    def write(self, vectors: Mapping[str, StoredVector], keys: Mapping[str, VectorKey]) -> None:
        """Add or replace vectors, and set the keys of others, in one transaction."""
        if not (vectors or keys):
            return
        import sqlite3

        try:
            self._write(vectors, keys)
        except sqlite3.OperationalError as error:
            raise self._write_error(error) from error
        except sqlite3.DatabaseError as error:
            warn(f"{self.path} is damaged ({error}): creating a new one; run index -reindex to encode all pages")
            self.path.unlink(missing_ok=True)
            try:
                self._write(vectors, keys)
            except sqlite3.DatabaseError as second:
                raise self._write_error(second) from second

    def _write(self, vectors: Mapping[str, StoredVector], keys: Mapping[str, VectorKey]) -> None:
        with self._connection() as database, database:
            database.execute(_SCHEMA)
            database.executemany(
                "insert or replace into vectors values (?, ?, ?, ?, ?, ?)",
                ((name, *each.key, each.factor, each.values) for name, each in vectors.items()),
            )
            database.executemany(
                "update vectors set model = ?, text_digest = ?, signature = ? where id = ?",
                ((*key, name) for name, key in keys.items()),
            )

    def delete(self, ids: Iterable[str]) -> None:
        """Delete the vectors of documents."""
        if not self.exists:
            return
        import sqlite3

        try:
            with self._connection() as database, database:
                database.execute(_SCHEMA)
                database.executemany("delete from vectors where id = ?", ((each,) for each in ids))
        except sqlite3.OperationalError as error:
            raise self._write_error(error) from error
        except sqlite3.DatabaseError:
            self.path.unlink(missing_ok=True)

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        import sqlite3  # a search without vectors does without it

        with closing(sqlite3.connect(self.path, timeout=self._timeout)) as database:
            yield database

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        """Open the file without the right to write it; raise IndexingError when it cannot be read."""
        import sqlite3

        address = f"{self.path.resolve().as_uri()}?mode=ro"
        try:
            with closing(sqlite3.connect(address, uri=True, timeout=self._timeout)) as database:
                yield database
        except sqlite3.DatabaseError as error:
            raise IndexingError(f"cannot read {self.path}: {error}: run index -reindex") from error

    def _write_error(self, error: Exception) -> IndexingError:
        problem = disk_error_message(error, self.path)
        return IndexingError(
            problem or f"cannot write {self.path}: {error}: free some space, or correct the folder's permissions"
        )
