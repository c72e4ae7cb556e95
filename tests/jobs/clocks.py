"""Machines' clocks that are wrong: what a crawl must come through, on every store."""

from __future__ import annotations

from pathlib import Path

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.jobs.batches.batch_lists import BatchListStore
from nutch2py.jobs.generate.generate_job import generate
from nutch2py.jobs.inject.inject_job import inject
from nutch2py.jobs.updatedb.updatedb_job import updatedb
from nutch2py.mapreduce.lock_check import LOCKS_KEY, decode_lock_row
from nutch2py.records.webpage import DerivedRow, Mark, WebPage
from nutch2py.table import crawl_clock, open_store
from nutch2py.table.data_store import RowCells
from nutch2py.url.keys import reverse_url

HOUR = 3_600_000
URL = "http://a.example/"


class Machine:
    """This machine with a clock that can be set: every setting is the start of another process, too."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._patch, self._now = patch, crawl_clock.now_ms
        self.ahead = 0
        patch.setattr(crawl_clock, "now_ms", lambda: self._now() + self.ahead)

    def set_ahead(self, milliseconds: int) -> None:
        self.ahead = milliseconds
        self._patch.setattr(crawl_clock, "_clocks", {})


def told_clock(conf: Configuration) -> int:
    """Return the newest time in the table."""
    row = BatchListStore(conf).store.get(LOCKS_KEY, {DerivedRow.data})
    return decode_lock_row(row.data if row is not None else None).clock


def marks(conf: Configuration) -> dict[str, str]:
    page = open_store(conf, WebPage).get(reverse_url(URL), {WebPage.markers})
    assert page is not None
    return dict(page.markers)


def clock_goes_back(conf: Configuration, machine: Machine, folder: Path, runner: str = "inline") -> None:
    """Every job after a clock was set back by an hour still changes what the jobs before it wrote."""
    conf.set("mapreduce.runner", runner)
    (folder / "seeds").write_text(f"{URL}\n")
    machine.set_ahead(HOUR)
    inject(conf, str(folder / "seeds"))
    assert generate(conf, batch_id="ahead").urls == 1
    machine.set_ahead(0)
    updatedb(conf, "ahead")
    assert Mark.GENERATE not in marks(conf)
    first = told_clock(conf)
    machine.set_ahead(-HOUR)
    assert generate(conf, batch_id="back", add_days=60).urls == 1
    assert marks(conf)[Mark.GENERATE] == "back"
    machine.set_ahead(-2 * HOUR)
    updatedb(conf, "back")
    assert Mark.GENERATE not in marks(conf)
    assert first < told_clock(conf) < first + HOUR / 2  # it creeps on, and leaps no further


def foreign_cells_are_ahead(conf: Configuration, machine: Machine, folder: Path) -> None:
    """The marks that generate writes without reading go over cells that another program wrote with a time ahead."""
    (folder / "seeds").write_text(f"{URL}\n")
    inject(conf, str(folder / "seeds"))
    store = open_store(conf, WebPage)
    ((key, cells),) = store.scan_cells()
    ahead: RowCells = {
        family: {name: (value, time + HOUR) for name, (value, time) in columns.items()}
        for family, columns in cells.items()
    }
    ahead[b"mk"][Mark.GENERATE.encode()] = (b"1500000000-1", max(time for _, time in ahead[b"mk"].values()))
    with store.batch() as batch:
        batch.put_cells(key, ahead)
    for number, runner in enumerate(("inline", "local")):
        machine.set_ahead(0)
        conf.set("mapreduce.runner", runner)
        assert generate(conf, batch_id=f"b-{number}", add_days=60 * (1 + number)).urls == 1
        assert marks(conf)[Mark.GENERATE] == f"b-{number}"
        machine.set_ahead(0)
        updatedb(conf, f"b-{number}")
        assert Mark.GENERATE not in marks(conf)
