"""The recorded crawl: its dumps as tables, and what of it this project changes on purpose."""

from __future__ import annotations

import base64
import gzip
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import orjson

from nutch2py.conf.configuration import Configuration
from nutch2py.jobs.batches.batch_lists import BatchListStore, BatchState, put_list_entry
from nutch2py.records.cells import decode_int, decode_long, encode_long
from nutch2py.records.webpage import Mark, WebPage
from nutch2py.table import MarkCondition, TableQuery, open_store
from nutch2py.table.table_export import export_table
from nutch2py.table.table_import import import_table
from tests.parser.test_recording import left_out

Row = dict[str, list[object]]
Dump = dict[str, Row]


def batch_id(round_number: int) -> str:
    """Return the batch id of a recorded round."""
    return f"160000000{round_number}-100{round_number}"


def dump_before(recording: Path, round_number: int, job: str) -> Path:
    """Return the dump of the table as it was before a job of a round."""
    before = {"generate": "updatedb", "fetch": "generate", "parse": "fetch", "updatedb": "parse"}[job]
    name = f"round{round_number}-{before}"
    if job == "generate":
        name = "round1-inject" if round_number == 1 else f"round{round_number - 1}-updatedb"
    return recording / "dumps" / f"{name}.jsonl.gz"


def recorded_start(recording: Path, words: str) -> int:
    """Return the start time of a recorded job (ms). ``words`` start its line in times.txt, as in "r1 generate"."""
    for line in (recording / "dumps" / "times.txt").read_text().splitlines():
        seconds, _, rest = line.partition(" start ")
        if rest.startswith(words):
            return int(float(seconds) * 1000)
    raise LookupError(words)


def read(path: Path) -> Dump:
    """Return a dump by row key."""
    with gzip.open(path) as lines:
        return {row["row"]: row["cells"] for row in map(orjson.loads, lines)}


def write(dump: Dump, path: Path) -> Path:
    """Write a dump in the export form."""
    with gzip.open(path, "wb", compresslevel=1) as file:
        for key in sorted(dump):
            file.write(orjson.dumps({"row": key, "cells": dump[key]}) + b"\n")
    return path


def differences(
    recording: Path, expected: Path, conf: Configuration, folder: Path, change: Callable[[Dump], None] | None = None
) -> str:
    """Export the table and compare it with the recording's own tool; return what it prints when they differ.

    ``change`` removes cells from the exported table that are not compared. That the tool has compared every cell of
    the expected table is checked here; test_recorded_changes counts the cells that changes remove.
    """
    exported = folder / "exported.jsonl.gz"
    export_table(open_store(conf, WebPage), exported)
    if change is not None:
        exported = adjusted(exported, folder, change)
    tool = recording / "tools" / "compare.py"
    done = subprocess.run(
        [sys.executable, str(tool), str(expected), str(exported), "--cells"],
        capture_output=True, text=True, check=False, env={"PYTHONIOENCODING": "utf-8"},
    )  # fmt: skip
    assert done.returncode in (0, 1), done.stderr
    if done.returncode:
        return done.stdout
    counts = re.search(r"equal cells (\d+), time cells (\d+),", done.stdout)
    assert counts is not None, done.stdout
    assert int(counts[1]) + int(counts[2]) == sum(map(len, read(expected).values())) > 0
    return ""


def load(conf: Configuration, path: Path) -> None:
    """Make the crawl's table from a dump."""
    store = open_store(conf, WebPage)
    store.create()
    import_table(store, path)


def adjusted(expected: Path, folder: Path, *changes: Callable[[Dump], None]) -> Path:
    """Write a recorded dump with deliberate differences applied."""
    dump = read(expected)
    for change in changes:
        change(dump)
    return write(dump, folder / f"adjusted-{expected.name}")


def keep_inlinks(before: Dump) -> Callable[[Dump], None]:
    """Updatedb keeps the inlinks of earlier batches; Nutch 2 clears them on every row that it writes (NUTCH-1672)."""

    def change(after: Dump) -> None:
        for key, cells in before.items():
            for column, cell in cells.items():
                if column.startswith("il:"):
                    after[key].setdefault(column, cell)

    return change


FAR_OFF = "test.interop.i:http/bigint.html"
"""A page with an interval of three years, set by its seed."""


def keep_within(before: Dump) -> Callable[[Dump], None]:
    """Updatedb uses the interval limited by db.fetch.interval.max for the fetch time; Nutch 2 keeps the old time."""

    def change(after: Dump) -> None:
        cells = before[FAR_OFF]
        if "mk:_ftcmrk_" in cells:
            fetched = decode_long(base64.b64decode(str(cells["f:ts"][0])))
            interval = decode_int(base64.b64decode(str(after[FAR_OFF]["f:fi"][0])))
            cell = base64.b64encode(encode_long(fetched + interval * 1000)).decode()
            after[FAR_OFF]["f:ts"] = [cell, *after[FAR_OFF]["f:ts"][1:]]

    return change


def modified_when_changed(before: Dump) -> Callable[[Dump], None]:
    """A page that has changed, without a Last-Modified, was modified when it was fetched; Nutch 2 keeps the old."""

    def change(after: Dump) -> None:
        for key, cells in before.items():
            parsed = "mk:_ftcmrk_" in cells and "mk:__prsmrk__" in cells and "p:sig" in cells and "p:psig" in cells
            if parsed and cells["p:sig"][0] != cells["p:psig"][0] and "h:Last-Modified" not in cells:
                for column, old in (("f:mod", "f:ts"), ("f:pmod", "f:mod")):
                    after[key][column] = [cells[old][0], *after[key][column][1:]]

    return change


def force_refetch(round_number: int) -> Callable[[Dump], None]:
    """A page that is due later than db.fetch.interval.max from now is due now; Nutch 2 promises so and never does."""

    def change(after: Dump) -> None:
        if round_number > 1:
            cell: list[object] = [base64.b64encode(batch_id(round_number).encode()).decode(), 0]
            after[FAR_OFF] |= {"f:bid": cell, "mk:_gnmrk_": cell}

    return change


NOT_INDEXED = {
    "test.interop.c:http/empty.html": "no title and no text: what Nutch's parser leaves of a noindex page",
    "test.interop.g:http/both.html": "noindex, nofollow",
    "test.interop.g:http/noindex.html": "noindex",
    "test.interop.g:http/none.html": "robots none",
    "test.interop.i:http/toempty.html": "no title and no text",
    "test.interop.i:http/togone.html": "was parsed, now gone",
    "test.interop.i:http/toredir.html": "was parsed, now redirects",
}
"""Rows that Nutch 2 indexes although their pages are gone, redirected or noindex."""


def leave_out(after: Dump) -> None:
    """Take the index mark from the rows that are not indexed here."""
    for key in NOT_INDEXED:
        del after[key]["mk:_idxmrk_"]


def not_of_tika(round_number: int) -> Callable[[Dump], None]:
    """Skip the cells that Tika produced for types other than HTML, and NekoHTML's errors: each is listed."""

    def change(dump: Dump) -> None:
        for key, cells in dump.items():
            for column in left_out(round_number, key, cells):
                del cells[column]

    return change


def make_list(conf: Configuration, batch: str) -> None:
    """Make the batch list that a GeneratorJob of this project would have made."""
    lists = BatchListStore(conf)
    lists.set_state(batch, BatchState.GENERATING)
    marked = TableQuery(frozenset({WebPage.markers}), mark=MarkCondition(Mark.GENERATE, batch))
    keys = [key for key, _ in open_store(conf, WebPage).scan(marked)]
    with lists.store.batch() as writes:
        for order, key in enumerate(keys):
            put_list_entry(writes, batch, "00000", order, key)
    lists.set_state(batch, BatchState.GENERATED, len(keys))
