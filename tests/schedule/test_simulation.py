from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nutch2py.errors import ConfigurationError
from nutch2py.records.webpage import CrawlStatus
from tests.schedule.original import Original
from tests.schedule.simulation import (
    DAY,
    DAY_MS,
    DOCS,
    END,
    MOVING,
    NAMES,
    STABLE,
    START,
    TABLE_START,
    Life,
    Ours,
    Scene,
    table,
)

ADAPTIVE = "db.fetch.schedule.adaptive."
SCENES = {scene.name: scene for scene in STABLE + MOVING}
ANSWERED = (CrawlStatus.FETCHED, CrawlStatus.NOTMODIFIED, CrawlStatus.REDIR_PERM)


def days(name: str, schedule: str) -> list[int]:
    return [
        moment.day for moment in Life(SCENES[name], Ours({"db.fetch.schedule.class": schedule}, SCENES[name])).moments
    ]


def test_schedule_page_matches_simulation() -> None:
    text = Path(DOCS).read_text(encoding="utf-8")
    assert text.split(TABLE_START)[1].split(END)[0].strip() == table().strip()


def test_never_changing_page_waits_longer_each_time() -> None:
    assert days("never changes", "AdaptiveFetchSchedule")[:7] == [0, 30, 63, 108, 171, 234, 297]
    assert len(days("never changes", "DefaultFetchSchedule")) == 1 + 1094 // 30


@pytest.mark.parametrize("schedule", NAMES)
def test_always_failing_page_is_scheduled_as_gone(schedule: str) -> None:
    assert days("always fails", schedule)[:5] == [0, 1, 2, 2 + 45, 2 + 45 + 45]


def test_week_of_failures_costs_one_interval() -> None:
    """Days 60 to 62 fail, so the page waits 45 days; then it goes by its interval again."""
    assert days("changes weekly, fails on days 60 to 66", "DefaultFetchSchedule")[:7] == [0, 30, 60, 61, 62, 107, 137]


@pytest.mark.parametrize("name", [scene.name for scene in STABLE if scene.interval == 0])
def test_default_schedule_matches_nutch_except_failures(name: str) -> None:
    original = [
        moment.day for moment in Life(SCENES[name], Original("DefaultFetchSchedule", SCENES[name], START)).moments
    ]
    if name == "always fails":
        assert original == list(range(len(original)))
    else:
        assert days(name, "DefaultFetchSchedule") == original


hours = st.integers(1, 200 * 24).map(lambda hours: hours * 3600)
rates = st.floats(0, 1)


@given(
    schedule=st.sampled_from(NAMES),
    default=hours,
    greatest=hours,
    shortest=hours,
    longest=hours,
    inc=st.floats(0, 3),
    dec=rates,
    sync=st.booleans(),
    sync_rate=rates,
    retries=st.integers(0, 5),
    scene=st.sampled_from(STABLE),
)
@settings(max_examples=150, deadline=None)
def test_stable_page_is_not_fetched_more_often_than_interval(
    schedule: str,
    default: int,
    greatest: int,
    shortest: int,
    longest: int,
    inc: float,
    dec: float,
    sync: bool,
    sync_rate: float,
    retries: int,
    scene: Scene,
) -> None:
    adaptive = schedule == "AdaptiveFetchSchedule"
    properties = {
        "db.fetch.schedule.class": schedule,
        "db.fetch.retry.max": str(retries),
        "db.fetch.interval.default": str(default),
        "db.fetch.interval.max": str(greatest),
        f"{ADAPTIVE}min_interval": str(shortest),
        f"{ADAPTIVE}max_interval": str(longest),
        f"{ADAPTIVE}inc_rate": repr(inc),
        f"{ADAPTIVE}dec_rate": repr(dec),
        f"{ADAPTIVE}sync_delta": str(sync).lower(),
        f"{ADAPTIVE}sync_delta_rate": repr(sync_rate),
    }
    if adaptive and shortest > min(longest, greatest):
        with pytest.raises(ConfigurationError, match="min_interval"):
            Ours(properties, scene)
        return
    span = 400
    moments = Life(scene, Ours(properties, scene), span).moments
    assert moments[0].day == 0
    shifted = sync_rate if adaptive and sync and not scene.fixed else 0.0
    for moment, after in zip(moments, [*moments[1:], None], strict=True):
        wait = moment.next_fetch - (START + moment.day * DAY_MS)
        assert 0 < wait <= greatest * 1000
        if moment.status in ANSWERED:
            least = moment.interval * (1 - shifted)
            assert wait >= max(least, shortest if shifted else 0) * 1000 - 1
        elif moment.status == CrawlStatus.GONE:
            assert wait >= min(moment.interval, 0.9 * greatest) * 1000 - 1000
        due = -(-(moment.next_fetch - START) // DAY_MS)  # the first round at that time or later
        assert due >= span if after is None else after.day == due
    waits = [moment.interval for moment in moments if moment.status in ANSWERED]
    assert waits == sorted(waits)  # of a page that stays, the interval never shrinks
    if not adaptive and not scene.interval and waits and default <= greatest:
        assert set(waits) == {default}
    assert len(moments) <= 1 + span * DAY / max(
        DAY, min(moment.next_fetch - START - moment.day * DAY_MS for moment in moments) / 1000
    )
