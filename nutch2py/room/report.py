"""``nutch2py report``: the state of a crawl in one file that needs nothing else, or as JSON."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from nutch2py.disk import new_file
from nutch2py.joblog.entry import JobEntry
from nutch2py.joblog.figures import Figures, Spread
from nutch2py.joblog.overview import Overview
from nutch2py.jobs.left_out import LeftOut, left_out, recent
from nutch2py.pictures.picture import Picture, style
from nutch2py.pictures.words import moment
from nutch2py.room import drawings
from nutch2py.room.rounds import Round, rounds_of
from nutch2py.room.sentences import at_a_glance
from nutch2py.room.templates import render, sheet

if TYPE_CHECKING:
    from nutch2py.crawl_reader import CrawlReader

ENTRIES = 2000
"""Newest entries of the job log that pictures are drawn from."""


@dataclass
class State:
    """What is known of a crawl without looking at its rows. ``entries``: the newest first; ``left_out``: of a day."""

    name: str
    made: int
    figures: Figures | None
    overview: Overview | None
    entries: list[JobEntry]
    left_out: list[LeftOut] = field(default_factory=list)

    @classmethod
    def of(cls, crawl: CrawlReader, entries: int = ENTRIES) -> State:
        """Read it, with so many of the newest entries of the log."""
        name = crawl.conf.get_trimmed("storage.crawl.id")
        made = int(time.time() * 1000)
        log = crawl.jobs(entries)
        lost = [*left_out(recent(log), crawl.conf)]
        return cls(name, made, crawl.figures(), crawl.overview(), log, lost)

    @cached_property
    def rounds(self) -> list[Round]:
        """The rounds, the oldest first."""
        return rounds_of(self.entries)

    def pictures(self) -> Iterator[Picture]:
        """Yield what both the control room and the report show first."""
        yield drawings.pages_over_time(self.entries, self.figures)
        yield drawings.outcomes(self.rounds)
        yield drawings.errors(self.entries)
        yield from drawings.answers(self.entries)


def html(state: State) -> str:
    """Return the report as a whole document."""
    rounds = state.rounds
    return render(
        "report.html",
        crawl=state.name,
        made=moment(state.made),
        style=style() + sheet("room.css"),
        sentences=[*at_a_glance(state.figures, state.overview, rounds, state.entries)],
        pictures=[*state.pictures(), drawings.hosts(state.overview), *drawings.spreads(state.overview)],
        wide=[drawings.work(state.entries), drawings.links(state.overview)],
        rounds=rounds[-30:][::-1],
        left_out=state.left_out,
        looked=None if state.overview is None else moment(state.overview.made),
    )


def as_json(state: State) -> dict[str, Any]:
    """Return the same as values: sentences, figures, overview, rounds and jobs."""
    return {
        "crawl": state.name,
        "made": state.made,
        "sentences": [*at_a_glance(state.figures, state.overview, state.rounds, state.entries)],
        "figures": state.figures,
        "overview": state.overview,
        "left_out": [_lost(each) for each in state.left_out],
        "rounds": [_round(each) for each in state.rounds],
        "jobs": state.entries,
    }


def _round(each: Round) -> dict[str, Any]:
    tally = each.tally
    links, new = tally.links
    return {
        "number": each.number,
        "batch": each.batch_id,
        "begun": each.begun,
        "ended": each.ended,
        "running": each.running,
        "generated": each.generated,
        "fetched": tally.good,
        "redirected": tally.moved,
        "gone": tally.gone,
        "failed": tally.failed,
        "bytes": tally.bytes,
        "links": links,
        "new": new,
    }


def _lost(each: LeftOut) -> dict[str, Any]:
    what, decides, _ = each.reason
    return {"number": each.number, "what": what, "decides": decides, "hosts": dict(each.hosts)}


def json_text(state: State) -> str:
    """Return :func:`as_json` as one line."""
    return orjson.dumps(as_json(state), default=_plain).decode()


def _plain(value: object) -> object:
    if isinstance(value, Spread):
        return value._asdict()
    raise TypeError(f"{type(value).__name__} is not JSON")


def write(state: State, path: Path) -> None:
    """Write the report; a file that is there is replaced when the new one is whole."""
    text = html(state).encode()
    with new_file(path) as out:
        out.write(text)
