"""What writers to a server share: requests that outlast its absence, batches, and documents that it refuses."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeVar

from nutch2py.conf import warn
from nutch2py.errors import IndexingError
from nutch2py.indexer.document import NutchDocument

T = TypeVar("T")

_FIRST_WAIT, _LONGEST_WAIT = 0.25, 15.0
_SERVER_ERRORS = 3  # a fourth 500 in a row is taken for an objection to what was sent
_ALL_REFUSED = 50
"""So many documents refused and none taken: it is not the documents."""
_LONG_NAMES = 200  # refused documents that are named; the others are counted
_NUMBERS = ("boost", "pagerank")


class Refusal(Exception):
    """The server answered, and does not take what was sent: ``status`` is HTTP's, ``str(error)`` its own words."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Attempts:
    """The addresses of one server, and requests to the one in use, which serves until it fails.

    A failure without a whole answer, and the answers 429, 500, 502, 503, 504 and those of ``stopping`` (after a first
    success), are tried again, at the next address when there are several, with waits that double from ``first_wait`` to
    15 s, until ``patience`` seconds have passed without success or 429 came more than ``overloads`` times; then
    :class:`IndexingError`. Other answers, the fourth 500 in a row and the first that says ``hopeless`` are a
    :class:`Refusal`.

    ``server`` and ``setting``: its name and the property of its address, for messages.
    """

    def __init__(
        self,
        urls: Sequence[str],
        server: str,
        setting: str,
        patience: float,
        *,
        first_wait: float = _FIRST_WAIT,
        overloads: float = math.inf,
        stopping: Collection[int] = (),
        hopeless: str = "",
        refusal: type[Refusal] = Refusal,
    ) -> None:
        self.urls, self.server, self.setting, self.patience = [*urls], server, setting, patience
        self.first_wait, self.overloads, self.stopping, self.refusal = first_wait, overloads, stopping, refusal
        self.hopeless = hopeless
        self._at = 0
        self._answered = False

    @property
    def url(self) -> str:
        """The address in use."""
        return self.urls[self._at]

    def make(
        self,
        call: Callable[[int], T],
        failures: tuple[type[Exception], ...],
        reason: Callable[[Exception], tuple[int, str]],
    ) -> T:
        """Return what ``call`` returns, given the number of the address; see the class.

        ``failures``: what it raises when there is no success; ``reason`` makes of it HTTP's status, 0 when there was no
        whole answer, and what went wrong in one line.
        """
        began: float | None = None
        wait, tries, server_errors, overloads = self.first_wait, 0, 0, 0
        while True:
            try:
                result = call(self._at)
            except failures as error:
                status, message = reason(error)
            else:
                self._answered = True
                return result
            if status == 500:
                hopeless = bool(self.hopeless) and self.hopeless in message
                server_errors += _SERVER_ERRORS + 1 if hopeless else 1
            overloads += status == 429
            if status and not self._passing(status, server_errors):
                raise self.refusal(status, message)
            now = time.monotonic()
            if began is None:
                began = now
            if overloads > self.overloads:
                raise IndexingError(f"{self.server} at {self.url} is overloaded ({message}): run the job again later")
            if now - began >= self.patience:
                raise IndexingError(
                    f"{self.server} does not answer at {', '.join(self.urls)} ({message}): start it or correct "
                    f"{self.setting}, and run the job again"
                )
            tries += 1
            self._at = (self._at + 1) % len(self.urls)
            if tries % len(self.urls) == 0:
                if wait == self.first_wait:
                    warn(f"{self.server} does not answer at {self.url} ({message}): trying for {self.patience:g} s")
                time.sleep(min(wait * (0.75 + random.random() / 2), max(0.0, began + self.patience - now)))
                wait = min(wait * 2, _LONGEST_WAIT)

    def _passing(self, status: int, server_errors: int) -> bool:
        """Tell whether a failure may pass."""
        return (
            status in (429, 502, 503, 504)
            or (status == 500 and server_errors <= _SERVER_ERRORS)
            or (status in self.stopping and self._answered)
        )


class Batch:
    """Documents and deletes on their way to a server: the last word on each id, full at a number or a length of text.

    ``documents``: how many ids; ``characters``: how much text.
    """

    def __init__(self, documents: int, characters: int) -> None:
        self.documents, self.characters = max(1, documents), max(1, characters)
        self._pending: dict[str, dict[str, Any] | None] = {}  # None: to be deleted
        self._size = 0

    def add(self, document_id: str, fields: dict[str, Any]) -> bool:
        """Put a document in; return whether the batch is full."""
        self._pending[document_id] = fields
        self._size += sum(sum(map(len, v)) if isinstance(v, list) else len(v) for v in fields.values())
        return self.full

    def delete(self, document_id: str) -> bool:
        """Put a delete in; return whether the batch is full."""
        self._pending[document_id] = None
        return self.full

    @property
    def full(self) -> bool:
        """Whether it is time to send it."""
        return len(self._pending) >= self.documents or self._size >= self.characters

    def take(self) -> tuple[dict[str, dict[str, Any]], list[str]]:
        """Return documents by id and ids to delete, and be empty: after a failure they must not be sent again."""
        pending, self._pending, self._size = self._pending, {}, 0
        added = {document_id: fields for document_id, fields in pending.items() if fields is not None}
        return added, [document_id for document_id, fields in pending.items() if fields is None]


class Tally:
    """How many documents a server took, and which it refused: ``accepted``, ``refused``. ``server``: its name."""

    def __init__(self, server: str) -> None:
        self.server = server
        self.accepted = self.refused = 0

    def refuse(self, url: str, document_id: str, reason: str) -> None:
        """Name a refused document; IndexingError when nothing but refusals have come."""
        self.refused += 1
        if self.refused <= _LONG_NAMES:
            warn(f"{self.server} refuses the document {document_id}: {reason}")
        if self.refused >= _ALL_REFUSED and not self.accepted:
            raise IndexingError(f"{self.server} at {url} refuses every document: {reason}")

    def close(self) -> None:
        """Say how many were refused, if any."""
        if self.refused:
            warn(f"{self.server} refused {self.refused} of {self.refused + self.accepted} documents")


def send_halving(
    items: Sequence[T], send: Callable[[Sequence[T]], None], refused: Callable[[T, Refusal], None]
) -> None:
    """Send ``items`` at once, in halves when they are refused, until those are found that the server objects to."""
    try:
        send(items)
    except Refusal as refusal:
        if len(items) == 1:
            refused(items[0], refusal)
            return
        half = len(items) // 2
        send_halving(items[:half], send, refused)
        send_halving(items[half:], send, refused)


def json_fields(document: NutchDocument) -> dict[str, Any]:
    """Return a document's fields as JSON types, without factors of the score that are no finite number.

    A NaN would be the score of the page in every search.
    """
    fields = document.to_json()
    for name in _NUMBERS:
        if name in fields and not _is_finite(fields[name]):
            del fields[name]
    return fields


def _is_finite(value: Any) -> bool:
    try:
        return math.isfinite(float(value))
    except (TypeError, ValueError):
        return True  # for the server to say
