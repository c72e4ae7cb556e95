"""The fetch schedule that the configuration names."""

from __future__ import annotations

from nutch2py.conf import Configuration
from nutch2py.contracts import FetchSchedule
from nutch2py.plugins import named
from nutch2py.reporting import warn
from nutch2py.schedule.intervals import FetchIntervals


def fetch_schedule(conf: Configuration) -> FetchSchedule:
    """Return the schedule that ``db.fetch.schedule.class`` names (Java class, Python class or plug-in id)."""
    schedule: FetchSchedule = named(
        conf, "fetchschedule", conf.get_trimmed("db.fetch.schedule.class", "DefaultFetchSchedule")
    )
    return schedule


def check_schedule(conf: Configuration) -> None:
    """Refuse or warn of properties that contradict each other: once, before a job that goes by the schedule begins.

    Raises ConfigurationError for what has no meaning. What has one, though hardly the one that is meant, is warned of.
    """
    fetch_schedule(conf)
    default, greatest = FetchIntervals.of(conf)
    if default > greatest:
        warn(
            f"db.fetch.interval.default {default} is above db.fetch.interval.max {greatest}: pages are fetched again "
            "within the latter, and count as unfetched until then"
        )
