"""Progress of exports, imports and copies of tables, in rows."""

from __future__ import annotations

from collections.abc import Callable

ProgressCallback = Callable[[int], None]
"""Called with the number of rows done, at intervals and at the end."""
_PROGRESS_INTERVAL = 1_000


class ProgressCounter:
    """Count rows and call ``progress`` at intervals."""

    def __init__(self, progress: ProgressCallback | None) -> None:
        self._row_count, self._progress = 0, progress

    def add(self) -> None:
        """Count a row."""
        self._row_count += 1
        if self._row_count % _PROGRESS_INTERVAL == 0:
            self._report()

    def finish(self) -> int:
        """Report the final count and return it."""
        self._report()
        return self._row_count

    def _report(self) -> None:
        if self._progress:
            self._progress(self._row_count)
