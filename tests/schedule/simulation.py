"""Years of rounds, row by row: when schedules fetch pages that change, stay, go, fail and move; no table, no HTTP.

The schedules and the transition of rows are the real ones. Next to them are the formulas of Nutch 2.4, implemented
again. ``python -m tests.schedule.simulation`` writes the table of docs/schedules.md; a test holds it to that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

from nutch2py.conf.configuration import Configuration
from nutch2py.records.webpage import CrawlStatus, Mark, WebPage
from nutch2py.schedule.abstract_fetch_schedule import FIXED_INTERVAL_KEY
from nutch2py.schedule.fetch_schedule import create_fetch_schedule
from nutch2py.schedule.fetch_transition import TransitionLimits, apply_fetch
from nutch2py.support.http_date import format_http_date
from tests.schedule.original import Original

URL = "http://a.example/"
DAY = 86400
DAY_MS = DAY * 1000
START = 1_600_000_000_000
YEARS = 3 * 365
"""Rounds of the table: three years, one a day."""
DOCS = Path(__file__).resolve().parents[2] / "docs" / "schedules.md"
TABLE_START, END = "<!-- Written by python -m tests.schedule.simulation. -->\n", "<!-- End of the table. -->\n"

GONE, FAILS, MOVED = "gone", "fails", "moved"


@dataclass(frozen=True)
class Scene:
    """Behaviour of a server. ``state``: what it serves on a day: a version, GONE, FAILS or MOVED.

    ``modified``: the Last-Modified (ms) of an answer on a day, of a state that began on another; None for none.
    ``conditional``: it responds 304 to a client with this version. ``interval``: that of the seed (s), for good when it
    is ``fixed``.
    """

    name: str
    state: Callable[[int], str]
    modified: Callable[[int, int], int] | None = None
    conditional: bool = False
    interval: int = 0
    fixed: bool = False


class Reply(NamedTuple):
    """Result of a fetch. ``version``: the parsed version, b"" for nothing; ``modified``: Last-Modified, ms, or None."""

    status: CrawlStatus
    version: bytes = b""
    modified: int | None = None


class Moment(NamedTuple):
    """A fetch and what it made of the row: the ``day``, ms of the next fetch, the interval in s, the status."""

    day: int
    next_fetch: int
    interval: int
    status: int


class Crawl(Protocol):
    """A row under a schedule. Times in ms."""

    def modified_time(self) -> int:
        """Return the time of the stored copy, which is sent to the server; 0 for none."""

    def due(self, now: int) -> bool:
        """Return whether generate takes the row."""

    def fetched(self, now: int, reply: Reply) -> None:
        """Let fetch, parse and updatedb pass over the row."""

    def row(self) -> tuple[int, int, int]:
        """Return next fetch, interval and status."""


class Ours:
    """A row, moved on by the schedule that the configuration names."""

    def __init__(self, properties: Mapping[str, str], scene: Scene) -> None:
        conf = Configuration(dict(properties))
        self._schedule, self._limits = create_fetch_schedule(conf), TransitionLimits.from_conf(conf)
        self._page = WebPage()
        self._page.fetch_time = START
        self._page.fetch_interval = scene.interval or conf.get_int("db.fetch.interval.default", 30 * DAY)
        if scene.fixed:
            self._page.metadata[FIXED_INTERVAL_KEY] = str(scene.interval).encode()

    def modified_time(self) -> int:
        return self._page.modified_time

    def due(self, now: int) -> bool:
        seen = WebPage()  # generate does not write what it changes
        for field in self._schedule.due_fields:
            setattr(seen, field.attribute, getattr(self._page, field.attribute))
        return self._schedule.should_fetch(URL, seen, now)

    def fetched(self, now: int, reply: Reply) -> None:
        page = self._page
        page.prev_fetch_time, page.fetch_time, page.status = page.fetch_time, now, reply.status
        page.markers[Mark.FETCH] = "b"
        if reply.status not in (CrawlStatus.RETRY, CrawlStatus.GONE):
            page.headers = {} if reply.modified is None else {"Last-Modified": format_http_date(reply.modified)}
        if reply.version:
            page.prev_signature, page.signature = page.signature, reply.version
            page.markers[Mark.PARSE] = "b"
        assert apply_fetch(URL, page, self._schedule, self._limits)
        for mark in (Mark.FETCH, Mark.PARSE):
            page.markers.pop(mark, None)

    def row(self) -> tuple[int, int, int]:
        return self._page.fetch_time, self._page.fetch_interval, self._page.status


class Life:
    """Events: ``moments``, and ``late``: for each change of the page, the days until it was seen."""

    def __init__(self, scene: Scene, crawl: Crawl, days: int = YEARS) -> None:
        self.moments: list[Moment] = []
        self.late: list[int] = []
        unseen: list[int] = []
        state, since = scene.state(0), 0
        for day in range(days):
            now, served = START + day * DAY_MS, scene.state(day)
            if served not in (state, FAILS):
                state, since = served, day
                unseen.append(day)
            if crawl.due(now):
                crawl.fetched(now, _reply(scene, served, day, since, crawl.modified_time()))
                self.moments.append(Moment(day, *crawl.row()))
                if served != FAILS:
                    self.late += [day - change for change in unseen]
                    unseen.clear()
        self.late += [days - change for change in unseen]

    def text(self) -> str:
        """Return the cells of the table: fetches, and the delay in days (mean, greatest)."""
        late = f"{sum(self.late) / len(self.late):.0f}, {max(self.late)}" if self.late else "–"
        return f"{len(self.moments):,} | {late}"


def _reply(scene: Scene, served: str, day: int, since: int, copy: int) -> Reply:
    if served == FAILS:
        return Reply(CrawlStatus.RETRY)
    if served == GONE:
        return Reply(CrawlStatus.GONE)
    if served == MOVED:
        return Reply(CrawlStatus.REDIR_PERM)
    modified = None if scene.modified is None else scene.modified(day, since)
    if scene.conditional and modified is not None and 0 < modified <= copy:
        return Reply(CrawlStatus.NOTMODIFIED, modified=modified)
    return Reply(CrawlStatus.FETCHED, served.encode(), modified)


def _always(state: str) -> Callable[[int], str]:
    return lambda day: state


def _when_changed(day: int, since: int) -> int:
    return START + since * DAY_MS if since else START - 365 * DAY_MS


STABLE = [
    Scene("never changes", _always("v")),
    Scene("… Last-Modified a year before", _always("v"), lambda day, since: START - 365 * DAY_MS),
    Scene("… Last-Modified ten years ahead", _always("v"), lambda day, since: START + 3650 * DAY_MS),
    Scene("… Last-Modified is always now", _always("v"), lambda day, since: START + day * DAY_MS),
    Scene("… answers 304", _always("v"), _when_changed, conditional=True),
    Scene("… its seed asks for three years", _always("v"), interval=3 * 365 * DAY),
    Scene("… its seed fixes three years", _always("v"), interval=3 * 365 * DAY, fixed=True),
    Scene("… its seed fixes a week", _always("v"), interval=7 * DAY, fixed=True),
    Scene("always redirects", _always(MOVED)),
    Scene("is always gone", _always(GONE)),
    Scene("always fails", _always(FAILS)),
]
MOVING = [
    Scene("changes daily", lambda day: f"v{day}"),
    Scene("changes weekly", lambda day: f"v{day // 7}"),
    Scene("… Last-Modified, answers 304", lambda day: f"v{day // 7}", _when_changed, conditional=True),
    Scene("… until the end of the first year", lambda day: f"v{min(day, 365) // 7}"),
    Scene("is gone after a year", lambda day: "v" if day < 365 else GONE),
    Scene("is gone for days 100 to 200", lambda day: GONE if 100 <= day < 200 else "v"),
    Scene("changes weekly, fails on days 60 to 66", lambda day: FAILS if 60 <= day < 67 else f"v{day // 7}"),
    Scene("redirects from the second year", lambda day: "v" if day < 365 else MOVED),
]
NAMES = ("DefaultFetchSchedule", "AdaptiveFetchSchedule")


def table() -> str:
    """Return the table of the documentation."""
    lines = [
        "| a page that | default: fetched | late | Nutch 2.4 | late | adaptive: fetched | late | Nutch 2.4 | late |",
        "|---" * 9 + "|",
    ]
    for scene in STABLE + MOVING:
        cells = [scene.name]
        for name in NAMES:
            cells.append(Life(scene, Ours({"db.fetch.schedule.class": name}, scene)).text())
            cells.append(Life(scene, Original(name, scene, START)).text())
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write the table into the page."""
    text = DOCS.read_text(encoding="utf-8")
    before, after = text.split(TABLE_START)[0], text.split(END)[1]
    DOCS.write_text(f"{before}{TABLE_START}\n{table()}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
