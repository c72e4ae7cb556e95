"""IndexView: an index that this user may read and not write, as tantivy can open it.

tantivy's readers hold a lock, too, and want to write its file. So they are given a folder of this process with links to
the files of the index, where they may: nothing is copied but ``meta.json``, and nothing in the index is changed.
"""

from __future__ import annotations

from pathlib import Path
from weakref import finalize

from nutch2py.scratch import Scratch

META = "meta.json"


class IndexView:
    """Links to the files of one commit; the folder ``path`` goes with this object."""

    def __init__(self, index: Path) -> None:
        scratch = Scratch("index")
        self._index, self.path = index.resolve(), scratch.path
        finalize(self, scratch.remove)
        self.renew()

    def renew(self) -> None:
        """Show the last commit. A writer that ends another one meanwhile may have deleted files of it.

        Until the writer has let others read a commit (:meth:`IndexFolder.lock`) the one before is shown.
        """
        try:
            meta = (self._index / META).read_bytes()
        except PermissionError:
            if (self.path / META).exists():
                return
            raise
        for link in self.path.iterdir():
            if link.is_symlink() and not link.exists():
                link.unlink()
        for file in self._index.iterdir():
            link = self.path / file.name
            if not file.name.startswith(".") and file.name != META and not link.is_symlink():
                link.symlink_to(file)
        new = self.path / f"{META}.new"
        new.write_bytes(meta)
        new.replace(self.path / META)
