"""Creates and checks the configured fetch schedule."""

from __future__ import annotations

from nutch2py.conf.configuration import Configuration
from nutch2py.interfaces import FetchSchedule
from nutch2py.plugins.loading import create_named_plugin
from nutch2py.schedule.fetch_intervals import FetchIntervals
from nutch2py.support.reporting import warn


def create_fetch_schedule(conf: Configuration) -> FetchSchedule:
    """Return the schedule named in ``db.fetch.schedule.class`` (Java class, Python class or plug-in id)."""
    schedule: FetchSchedule = create_named_plugin(
        conf, "fetchschedule", conf.get_trimmed("db.fetch.schedule.class", "DefaultFetchSchedule")
    )
    return schedule


def check_fetch_schedule(conf: Configuration) -> None:
    """Check the interval properties once, before a job that uses the schedule starts.

    Raises:
        ConfigurationError: The properties contradict each other. Valid but probably unintended values only log a
            warning.
    """
    create_fetch_schedule(conf)
    default, greatest = FetchIntervals.from_conf(conf)
    if default > greatest:
        warn(
            f"db.fetch.interval.default {default} is above db.fetch.interval.max {greatest}: pages are fetched again "
            "within the latter, and count as unfetched until then"
        )
