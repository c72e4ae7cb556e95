"""The fetch schedule that the configuration names."""

from __future__ import annotations

from nutch2py.conf import Configuration
from nutch2py.contracts import FetchSchedule
from nutch2py.plugins import named


def fetch_schedule(conf: Configuration) -> FetchSchedule:
    """Return the schedule that ``db.fetch.schedule.class`` names (Java class, Python class or plug-in id)."""
    schedule: FetchSchedule = named(
        conf, "fetchschedule", conf.get_trimmed("db.fetch.schedule.class", "DefaultFetchSchedule")
    )
    return schedule
