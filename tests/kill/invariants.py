"""Invariants of a crawl at any time, whatever was killed, and at its end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from nutch2py.conf.configuration import Configuration
from nutch2py.indexer.document_builder import is_gone, is_noindex, should_index
from nutch2py.jobs.batches.batch_lists import BatchState
from nutch2py.records.cells import ParseStatus, decode_float
from nutch2py.records.webpage import CrawlStatus, Mark, MetadataKey, WebPage
from nutch2py.table import TableQuery, open_store
from nutch2py.url.keys import reverse_url, unreverse_url
from tests.kill import points
from tests.kill.workspace import Ground, Seen
from tests.processes import alive

_MARKS = "mk:"


def mark(cells: dict[str, tuple[bytes, int]], name: Mark) -> str:
    """Return a mark of a row, "" for none."""
    value, _ = cells.get(f"{_MARKS}{name.value}", (b"", 0))
    return value.decode()


def _family(cells: dict[str, tuple[bytes, int]], family: str) -> list[str]:
    return [column[len(family) + 1 :] for column in cells if column.startswith(f"{family}:")]


# at any time


def at_any_time(seen: Seen) -> Iterator[str]:
    """Violations of the invariants that hold right after any end of a job."""
    yield from seen.underived
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
            yield f"{key} is marked for {batch}, but its list does not name it"
        for source in _family(cells, "il"):
            page = reverse_url(source)
            if unreverse_url(key) not in outlinks.get(page, set()) and (page, unreverse_url(key)) not in noted:
                yield f"{key} has an inlink from {source}, which has no such link, and no note says that it is gone"


def marked_is_indexed(seen: Seen, batch: str) -> Iterator[str]:
    """Rows with the index mark of the current batch are in the index: the mark is never written before."""
    for key, cells in seen.rows.items():
        if mark(cells, Mark.INDEX) == batch and seen.documents.get(key, {}).get("batchId") not in (batch, [batch]):
            yield f"{key} has the index mark of {batch}, and the index does not have it as it is in that batch"


def stamped(seen: Seen, keys: set[str], batch: str, committed: int) -> Iterator[str]:
    """Cells that updatedb writes have the time of its commit, whichever process wrote them, and however often."""
    for key in keys:
        cells = seen.rows.get(key, {})
        if mark(cells, Mark.UPDATEDB) != batch or mark(cells, Mark.GENERATE):
            continue
        for column in (f"{_MARKS}{Mark.UPDATEDB.value}", "f:ts"):
            time = cells[column][1] if column in cells else committed - 1
            if time != committed - 1:
                yield f"{key} {column} is stamped {time - committed + 1} ms after the commit of {batch}"


# at the end of a round


def after_a_round(ground: Ground, seen: Seen) -> Iterator[str]:
    """All that must hold when the last batch is in the index."""
    yield from links_agree(seen)
    yield from all_is_finished(seen)
    yield from index_is_the_table(ground, seen)


def links_agree(seen: Seen) -> Iterator[str]:
    """Each inlink has its outlink, and each outlink of a page of a finished batch its inlink."""
    for key, cells in seen.rows.items():
        url = unreverse_url(key)
        for source in _family(cells, "il"):
            if f"ol:{url}" not in seen.rows.get(reverse_url(source), {}):
                yield f"{key} has an inlink from {source}, which has no such link"
        for target in _family(cells, "ol"):
            if f"il:{url}" not in seen.rows.get(reverse_url(target), {}):
                yield f"{key} links to {target}, which has no such inlink"


def all_is_finished(seen: Seen) -> Iterator[str]:
    """No batch is open: neither marks nor states, lists, notes, journals or locks are left."""
    for key, cells in seen.rows.items():
        yield from (
            f"{key} carries {name.name} {mark(cells, name)}"
            for name in (Mark.GENERATE, Mark.FETCH, Mark.PARSE)
            if mark(cells, name)
        )
    for what in ("batches", "listed", "notes", "others", "held"):
        found = getattr(seen, what)
        if found:
            yield f"{what} left: {found}"


def index_is_the_table(ground: Ground, seen: Seen) -> Iterator[str]:
    """The index has what was indexed, is parsed, and neither gone, nor a redirect, nor noindex; and nothing else."""
    conf = ground.conf
    store = open_store(conf, WebPage)
    expected = {key for key, page in store.scan(TableQuery(None)) if _is_to_be_found(page, conf)}
    store.close()
    yield from (f"{key} is not in the index" for key in expected - seen.documents.keys())
    yield from (f"{key} is in the index, and should not be" for key in seen.documents.keys() - expected)


def _is_to_be_found(page: WebPage, conf: Configuration) -> bool:
    status: ParseStatus | None = page.parse_status
    if status is None or page.markers.get(Mark.INDEX) is None or page.status == CrawlStatus.GONE:
        return False
    return should_index(page) and not is_gone(page) and not is_noindex(page, conf.get_trimmed("http.agent.name"))


def sums(seen: Seen) -> tuple[float, float]:
    """Return the sum of the OPIC cash of all rows, and that of their scores."""
    cash, scores = f"mtdt:{MetadataKey.CASH.value}", "s:s"
    found = [
        sum(decode_float(cells[name][0]) for cells in seen.rows.values() if name in cells) for name in (cash, scores)
    ]
    return found[0], found[1]


# next to the table


def fetched_too_often(asked: Counter[str], allowed: Counter[str]) -> Iterator[str]:
    """A page is requested once by each fetch of its batch that ran; by ``-resume`` only if it was not stored."""
    yield from (f"{url} was requested {n} times, {allowed[url]} may be" for url, n in asked.items() if n > allowed[url])


def left_over(temporary: Path) -> Iterator[str]:
    """Files in the folder for temporary use."""
    if temporary.exists():
        yield from (f"left in the folder for temporary use: {path.name}" for path in temporary.iterdir())


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
