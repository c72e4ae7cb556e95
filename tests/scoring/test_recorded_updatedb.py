"""Scores and schedules of every row after each recorded updatedb, worked out from the table before it."""

from __future__ import annotations

import gzip
import json
from base64 import b64decode
from pathlib import Path

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.interfaces import ScoredLink
from nutch2py.records.record import Cells
from nutch2py.records.webpage import Mark, WebPage
from nutch2py.schedule.fetch_schedule import create_fetch_schedule
from nutch2py.schedule.fetch_transition import TransitionLimits, apply_fetch, initialize_page
from nutch2py.scoring.scoring_filters import ScoringFilters
from nutch2py.url.keys import reverse_url, unreverse_url
from tests.jobs import recorded

COMPARED = {
    b"s": [b"s"],
    b"f": [b"st", b"ts", b"pts", b"fi", b"rsf", b"mod", b"pmod"],
    b"mtdt": [b"_csh_"],
}


def read_table(path: Path) -> dict[str, Cells]:
    table: dict[str, Cells] = {}
    with gzip.open(path, "rt", encoding="utf-8") as dump:
        for line in dump:
            row = json.loads(line)
            cells = table[row["row"]] = {}
            for column, (value, _) in row["cells"].items():
                family, _, qualifier = column.partition(":")
                cells.setdefault(family.encode(), {})[qualifier.encode()] = b64decode(value)
    return table


def compared(page: WebPage) -> dict[bytes, bytes | None]:
    """Return the cells of a page after its changes."""
    mutation = page.mutation()
    found = {}
    for family, qualifiers in COMPARED.items():
        cells = {**page.cells.get(family, {}), **(mutation.puts.get(family, {}) if mutation else {})}
        found.update({family + b":" + qualifier: cells.get(qualifier) for qualifier in qualifiers})
    return found


def updatedb(table: dict[str, Cells], batch_id: str, conf: Configuration, now: int) -> dict[str, WebPage]:
    """Do in memory what the job does, as far as scores and schedules go; return the rows it changes."""
    scoring, schedule, limits = ScoringFilters(conf), create_fetch_schedule(conf), TransitionLimits.from_conf(conf)
    batch = {
        key: WebPage(cells)
        for key, cells in table.items()
        if cells.get(b"mk", {}).get(Mark.GENERATE.encode()) == batch_id.encode()
    }
    inlinks: dict[str, list[ScoredLink]] = {}
    for key, page in batch.items():
        url, outlinks = unreverse_url(key), page.outlinks.decoded_items()
        distance = int(page.markers[Mark.DISTANCE])
        links = [ScoredLink(to, anchor, 0.0, distance) for to, anchor in outlinks + page.sitemaps.decoded_items()]
        for to, anchor, score, distance in scoring.distribute(url, page, links, len(outlinks)):
            inlinks.setdefault(reverse_url(to), []).append(ScoredLink(url, anchor, score, distance))
    rows = dict(batch)
    for key in inlinks.keys() - batch.keys():
        rows[key] = WebPage(table.get(key))
        if key not in table:
            initialize_page(unreverse_url(key), rows[key], schedule, now)
            scoring.initial_score(unreverse_url(key), rows[key])
    for key, page in rows.items():
        url = unreverse_url(key)
        if key in batch:
            assert apply_fetch(url, page, schedule, limits), "every row of a recorded batch was fetched"
        received = sorted(inlinks.get(key, []), key=lambda link: link.score, reverse=True)
        scoring.update_score(url, page, received)
    return rows


@pytest.mark.parametrize("round_", [1, 2, 3, 4])
def test_recorded_updatedb_scores_and_schedule_are_reproduced(round_: int, recording: Path, tmp_path: Path) -> None:
    conf = Configuration({"plugin.includes": "scoring-opic"})
    dumps = [recording / "dumps" / f"round{round_}-{job}.jsonl.gz" for job in ("parse", "updatedb")]
    before, dump = read_table(dumps[0]), recorded.read(dumps[0])
    changes = recorded.keep_within(dump), recorded.modified_when_changed(dump)  # on purpose
    after = read_table(recorded.adjusted(dumps[1], tmp_path, *changes))
    now = 1
    changed = updatedb(before, f"160000000{round_}-100{round_}", conf, now)
    assert before.keys() | changed.keys() == after.keys()
    differing = []
    for key, cells in after.items():
        got = compared(changed[key] if key in changed else WebPage(before[key]))
        wanted = compared(WebPage(cells))
        if key not in before:  # the clock of the recorded job
            assert got[b"f:ts"] == now.to_bytes(8, "big")
            got[b"f:ts"] = wanted[b"f:ts"]
        if got != wanted:
            differing.append((key, {c: (got[c], wanted[c]) for c in got if got[c] != wanted[c]}))
    print(f"round {round_}: {len(after) - len(differing)}/{len(after)} rows equal, {len(changed)} of them changed")
    assert differing == []
    assert len(changed) > 50
