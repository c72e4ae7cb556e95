"""generate by the due index: the same rows as by a full scan, at a cost in proportion to their number."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nutch2py.conf.configuration import Configuration
from nutch2py.jobs.generate.generate_job import generate
from nutch2py.records.webpage import Mark, WebPage
from nutch2py.schedule.default_fetch_schedule import DefaultFetchSchedule
from nutch2py.table import TableQuery, open_store
from nutch2py.table.embedded.embedded_store import EmbeddedStore
from tests.conftest import MAP_SIZE
from tests.jobs.rows import fetchlist, put

DAY = 86_400_000
NOW = 1_700_000_000_000
LONGEST = 7_776_000_000  # ms of db.fetch.interval.max
BY_INDEX, BY_SCAN = "1", "0"

Rows = dict[str, dict[str, Any]]
HOSTS = ("a.example", "www.a.example", "b.example", "c.example:8080", "127.0.0.1")
PATHS = ("", "/", "/x/../1", "/1", "/2?PHPSESSID=0123456789abcdef0123456789abcdef", "/no.gif", "/" + "l" * 490, "/é")
URLS = st.builds("{}://{}{}".format, st.sampled_from(["http", "https"]), st.sampled_from(HOSTS), st.sampled_from(PATHS))
SCORES = st.sampled_from([-2.0, 0.0, 1e-30, 2e-30, 0.5, 1.0, 1.5, float("inf"), float("nan")])
TIMES = st.sampled_from([0, NOW - DAY, NOW - 1, NOW, NOW + 1, NOW + 2 * DAY, NOW + LONGEST + 1, NOW + 20 * LONGEST])
MARKS = st.dictionaries(
    st.sampled_from([Mark.GENERATE, Mark.DISTANCE, Mark.INJECT]), st.sampled_from(["1", "y", "s"]), max_size=2
).filter(lambda marks: marks.get(Mark.DISTANCE, "1") == "1")
ROWS = st.dictionaries(
    URLS,
    st.fixed_dictionaries(
        {"fetch_time": TIMES, "score": SCORES},
        optional={"marks": MARKS, "fetch_interval": st.sampled_from([10, 100 * 86400])},
    ),
    min_size=1,
)
PROPERTIES = st.fixed_dictionaries(
    {},
    optional={
        "generate.max.count": st.sampled_from(["1", "3"]),
        "generate.count.mode": st.just("domain"),
        "generate.max.distance": st.just("0"),
        "generate.min.score": st.sampled_from(["0.25", "-5"]),
        "plugin.includes": st.just("urlfilter-validator|urlnormalizer-(pass|basic)|scoring-(opic|depth)"),
        "mapreduce.job.maps": st.just("3"),
    },
)
OPTIONS = st.fixed_dictionaries(
    {"top_n": st.sampled_from([None, 0, 1, 2, 5, 9, 30])},
    optional={
        "add_days": st.sampled_from([1, 3]),
        "filter_urls": st.just(False),
        "normalize": st.just(False),
        "sitemap": st.just(True),
    },
)


def opened(folder: Path, properties: Mapping[str, str], share: str) -> Configuration:
    conf = Configuration()
    conf.set("storage.data.store", f"embedded:{folder}")
    conf.set("storage.embedded.map.size", str(MAP_SIZE))
    conf.set("generate.due.share", share)
    for name, value in properties.items():
        conf.set(name, value)
    return conf


@pytest.mark.parametrize("examples", [10, 200])
def test_due_index_chooses_same_rows_as_full_scan(
    examples: int, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the same order, of random tables; a batch takes its rows from the next, which is not updated between them."""
    monkeypatch.setattr("nutch2py.jobs.generate.due_scan.MAX_READ_ENTRIES", 3)

    @settings(max_examples=examples, deadline=None)
    @given(ROWS, PROPERTIES, st.lists(OPTIONS, min_size=1, max_size=3))
    def check(rows: Rows, properties: dict[str, str], batches: list[dict[str, Any]]) -> None:
        by_index, by_scan = (
            batches_of(opened(tmp_path_factory.mktemp("due"), properties, share), rows, batches)
            for share in (BY_INDEX, BY_SCAN)
        )
        assert by_index == by_scan

    check()


def batches_of(conf: Configuration, rows: Rows, batches: list[dict[str, Any]]) -> tuple[list[Any], dict[str, Any]]:
    """Make batches of a table; return their lists, and all marks."""
    put(conf, rows)
    for number, options in enumerate(batches):
        generate(conf, batch_id=f"b{number}", now=NOW, **options)
    marks = {
        key: dict(page.markers)
        for key, page in open_store(conf, WebPage).scan(TableQuery.for_fields({WebPage.markers}))
    }
    return [fetchlist(conf, f"b{number}") for number in range(len(batches))], marks


@pytest.fixture
def table(conf: Configuration) -> Configuration:
    """A table with 300 rows of which 200 are due, of few scores."""
    rows = {f"http://h{number % 7}.example/{number:03d}": {"score": float(number % 3)} for number in range(200)}
    rows = {url: {**row, "fetch_time": NOW - index * 3_600_000} for index, (url, row) in enumerate(rows.items())}
    rows |= {f"http://later.example/{number}": {"score": 9.0, "fetch_time": NOW + DAY} for number in range(100)}
    put(conf, rows)
    return conf


class TestHowManyRowsAreLookedAt:
    @pytest.fixture(autouse=True)
    def small_parts(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("nutch2py.jobs.generate.due_scan.MIN_READ_ENTRIES", 1)

    def test_reads_no_more_rows_than_top_n(self, table: Configuration) -> None:
        table.set("generate.due.share", BY_INDEX)
        result = generate(table, now=NOW, top_n=5, batch_id="one")
        assert result.urls == 5
        assert result.count("generator", "rows") < 5 + 5 // 8 + 65
        result = generate(table, now=NOW, top_n=5, batch_id="two")  # after those that are in open batches
        assert result.count("generator", "rows") < 2 * (5 + 5 // 8 + 65)
        assert generate(table, now=NOW, batch_id="three").count("generator", "rows") == 200

    def test_rows_below_least_score_are_not_read(self, table: Configuration) -> None:
        table.set("generate.due.share", BY_INDEX)
        table.set("generate.min.score", "4")
        assert generate(table, now=NOW, top_n=100).count("generator", "rows") <= 66 + 100 + 100 // 8 + 64

    def test_all_due_rows_are_read_when_sort_value_differs_from_score(self, table: Configuration) -> None:
        table.set("generate.due.share", BY_INDEX)
        table.set("plugin.includes", "scoring-(opic|depth)")
        assert generate(table, now=NOW, top_n=5).count("generator", "rows") == 200


class TestWhatIsSaid:
    def logged_selection(
        self, conf: Configuration, capsys: pytest.CaptureFixture[str], **options: Any
    ) -> tuple[str, int]:
        """Return the log line about the rows, and the number of rows read."""
        result = generate(conf, now=NOW, **options)
        lines = capsys.readouterr().out.splitlines()
        (line,) = (line for line in lines if "full table scan" in line or "due index" in line)
        return line.partition(": ")[2], result.count("generator", "rows")

    def test_use_of_index_is_logged(self, table: Configuration, capsys: pytest.CaptureFixture[str]) -> None:
        by_index = "reading the rows that the due index lists"
        assert self.logged_selection(table, capsys, top_n=75) == (by_index, 200)

    def test_too_many_due_rows_are_logged(self, table: Configuration, capsys: pytest.CaptureFixture[str]) -> None:
        assert self.logged_selection(table, capsys, top_n=76) == (
            "full table scan: more than generate.due.share of the rows are due",
            300,
        )
        assert self.logged_selection(table, capsys)[1] == 300

    def test_missing_index_is_logged(self, table: Configuration, capsys: pytest.CaptureFixture[str]) -> None:
        open_store(table, WebPage).due_index().drop()
        line, rows = self.logged_selection(table, capsys, top_n=5)
        assert line == (
            "full table scan, as the due index is not available: the table has none (run dueindex to rebuild it)"
        )
        assert rows == 300

    def test_other_schedule_is_logged(
        self, table: Configuration, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """A schedule with its own ``should_fetch`` is called for every row, even if it inherits the rest."""
        monkeypatch.setattr(DefaultFetchSchedule, "should_fetch", lambda *_: True, raising=False)
        line, rows = self.logged_selection(table, capsys, top_n=250)
        assert line.startswith("full table scan: schedule ")
        assert rows == 300


def test_rows_changed_concurrently_are_used_as_found(table: Configuration, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the reading of the index and that of the rows another job may have written them."""
    table.set("generate.due.share", BY_INDEX)
    get_many, changed = EmbeddedStore.get_many, []

    def after_a_change(store: EmbeddedStore[WebPage], keys: Any, fields: Any = None) -> Any:
        if store.record_class is WebPage and not changed:
            changed.append(keys[0])
            with store.batch() as batch:
                page = WebPage({}, frozenset())
                page.fetch_time = NOW + DAY
                batch.put(keys[0], page)
                batch.delete(keys[1])
        return get_many(store, keys, fields)

    monkeypatch.setattr(EmbeddedStore, "get_many", after_a_change)
    assert generate(table, now=NOW, top_n=20).urls == 20
    page = open_store(table, WebPage).get(changed[0], {WebPage.markers})
    assert page is None or page.markers.get(Mark.GENERATE) is None
