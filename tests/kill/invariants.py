"""Invariants of a crawl at any time, whatever was killed, and at its end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from nutch2py.conf.configuration import Configuration
from nutch2py.indexer.document_builder import is_gone, is_noindex, should_index
from nutch2py.jobs.batches.batch_lists import BatchState
from nutch2py.parser.robots_directives import agent_names
from nutch2py.records.cells import ParseStatus, decode_float
from nutch2py.records.webpage import CrawlStatus, Mark, MetadataKey, WebPage
from nutch2py.table import TableQuery, open_store
from nutch2py.url.keys import reverse_url, unreverse_url
from tests.kill import points
from tests.kill.workspace import Ground, Seen
from tests.processes import alive

_MARKS = "mk:"
INVARIANTS = {
    "exit": "a command that nothing strikes ends with exit code 0",
    "ending": "a struck command ends as the fault says: by the signal, or with a line that names the cause",
    "conflicts": "commands that conflict with a held one are rejected, the others succeed",
    "derived": "the due index and the statistics of the table are those that its rows give",
    "listed": "the rows that are marked for a batch are in its list",
    "links": "each inlink has its outlink, or a note that it is gone",
    "indexed": "a row with the index mark is in the index as it is in that batch",
    "timestamps": "what updatedb writes again carries the time of its commit",
    "requests": "a page is requested once by each fetch of its batch",
    "equal": "table, index, batches and notes are those of the undisturbed crawl",
    "finished": "after a round no batch is open, and nothing of one is left",
    "found": "the index has the pages that are to be found, and no others",
    "sums": "cash and scores add up to those of the undisturbed crawl",
    "files": "no temporary file is left",
    "processes": "no process outlives its driver",
}
"""The invariants by name, of which each violation names one; a mutation names those that it violates."""


class Violation(str):
    """A line that says what was wrong, and which of :data:`INVARIANTS` it violates."""

    __slots__ = ("invariant",)
    invariant: str

    def __new__(cls, invariant: str, text: str) -> Self:
        made = super().__new__(cls, text)
        made.invariant = invariant
        return made


def mark(cells: dict[str, tuple[bytes, int]], name: Mark) -> str:
    """Return a mark of a row, "" for none."""
    value, _ = cells.get(f"{_MARKS}{name.value}", (b"", 0))
    return value.decode()


def _family(cells: dict[str, tuple[bytes, int]], family: str) -> list[str]:
    return [column[len(family) + 1 :] for column in cells if column.startswith(f"{family}:")]


# at any time


def at_any_time(seen: Seen) -> Iterator[Violation]:
    """Violations of the invariants that hold right after any end of a job."""
    yield from (Violation("derived", line) for line in seen.underived)
    noted = {(key.partition(" ")[2], url) for key, urls in seen.notes.items() for url in urls}
    outlinks = {key: set(_family(cells, "ol")) for key, cells in seen.rows.items()}
    for key, cells in seen.rows.items():
        batch = mark(cells, Mark.GENERATE)
        state = seen.batches.get(batch, ("", 0, 0))[0]
        if (
            batch
            and state in (BatchState.GENERATING, BatchState.GENERATED)
            and key not in seen.listed.get(batch, set())
        ):
            yield Violation("listed", f"{key} is marked for {batch}, but its list does not name it")
        for source in _family(cells, "il"):
            page = reverse_url(source)
            if unreverse_url(key) not in outlinks.get(page, set()) and (page, unreverse_url(key)) not in noted:
                yield Violation(
                    "links",
                    f"{key} has an inlink from {source}, which has no such link, and no note says that it is gone",
                )


def marked_is_indexed(seen: Seen, batch: str) -> Iterator[Violation]:
    """Rows with the index mark of the current batch are in the index: the mark is never written before."""
    for key, cells in seen.rows.items():
        if mark(cells, Mark.INDEX) == batch and seen.documents.get(key, {}).get("batchId") not in (batch, [batch]):
            yield Violation(
                "indexed", f"{key} has the index mark of {batch}, and the index does not have it as it is in that batch"
            )


def stamped(seen: Seen, keys: set[str], batch: str, committed: int) -> Iterator[Violation]:
    """Cells that updatedb writes have the time of its commit, whichever process wrote them, and however often."""
    for key in keys:
        cells = seen.rows.get(key, {})
        if mark(cells, Mark.UPDATEDB) != batch or mark(cells, Mark.GENERATE):
            continue
        for column in (f"{_MARKS}{Mark.UPDATEDB.value}", "f:ts"):
            time = cells[column][1] if column in cells else committed - 1
            if time != committed - 1:
                yield Violation(
                    "timestamps", f"{key} {column} is stamped {time - committed + 1} ms after the commit of {batch}"
                )


# at the end of a round


def after_a_round(ground: Ground, seen: Seen) -> Iterator[Violation]:
    """All that must hold when the last batch is in the index."""
    yield from links_agree(seen)
    yield from all_is_finished(seen)
    yield from index_is_the_table(ground, seen)


def links_agree(seen: Seen) -> Iterator[Violation]:
    """Each inlink has its outlink, and each outlink of a page of a finished batch its inlink."""
    for key, cells in seen.rows.items():
        url = unreverse_url(key)
        for source in _family(cells, "il"):
            if f"ol:{url}" not in seen.rows.get(reverse_url(source), {}):
                yield Violation("links", f"{key} has an inlink from {source}, which has no such link")
        for target in _family(cells, "ol"):
            if f"il:{url}" not in seen.rows.get(reverse_url(target), {}):
                yield Violation("links", f"{key} links to {target}, which has no such inlink")


def all_is_finished(seen: Seen) -> Iterator[Violation]:
    """No batch is open: neither marks nor states, lists, notes, journals or locks are left."""
    for key, cells in seen.rows.items():
        yield from (
            Violation("finished", f"{key} carries {name.name} {mark(cells, name)}")
            for name in (Mark.GENERATE, Mark.FETCH, Mark.PARSE)
            if mark(cells, name)
        )
    for what in ("batches", "listed", "notes", "others", "held"):
        found = getattr(seen, what)
        if found:
            yield Violation("finished", f"{what} left: {found}")


def index_is_the_table(ground: Ground, seen: Seen) -> Iterator[Violation]:
    """The index has what was indexed, is parsed, and neither gone, nor a redirect, nor noindex; and nothing else."""
    conf = ground.conf
    store = open_store(conf, WebPage)
    expected = {key for key, page in store.scan(TableQuery(None)) if _is_to_be_found(page, conf)}
    store.close()
    yield from (Violation("found", f"{key} is not in the index") for key in expected - seen.documents.keys())
    unexpected = seen.documents.keys() - expected
    yield from (Violation("found", f"{key} is in the index, and should not be") for key in unexpected)


def _is_to_be_found(page: WebPage, conf: Configuration) -> bool:
    status: ParseStatus | None = page.parse_status
    if status is None or page.markers.get(Mark.INDEX) is None or page.status == CrawlStatus.GONE:
        return False
    return should_index(page) and not is_gone(page) and not is_noindex(page, agent_names(conf))


def sums(seen: Seen) -> tuple[float, float]:
    """Return the sum of the OPIC cash of all rows, and that of their scores."""
    cash, scores = f"mtdt:{MetadataKey.CASH.value}", "s:s"
    found = [
        sum(decode_float(cells[name][0]) for cells in seen.rows.values() if name in cells) for name in (cash, scores)
    ]
    return found[0], found[1]


# next to the table


def fetched_too_often(asked: Counter[str], allowed: Counter[str]) -> Iterator[Violation]:
    """A page is requested once by each fetch of its batch that ran; by ``-resume`` only if it was not stored."""
    yield from (
        Violation("requests", f"{url} was requested {n} times, {allowed[url]} may be")
        for url, n in asked.items()
        if n > allowed[url]
    )


def left_over(temporary: Path) -> Iterator[Violation]:
    """Files in the folder for temporary use."""
    if temporary.exists():
        left = temporary.iterdir()
        yield from (Violation("files", f"left in the folder for temporary use: {path.name}") for path in left)


def processes_of(folder: Path) -> list[int]:
    """Return the processes that commands of this folder have started and that have not ended."""
    sign = f"{points.FOLDER}={folder}/".encode()
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if sign in path.read_bytes() and alive(int(path.parent.name)):
                found.append(int(path.parent.name))
        except OSError:  # it has just ended, or is another user's
            continue
    return found
