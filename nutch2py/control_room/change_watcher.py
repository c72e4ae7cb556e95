"""Fingerprint of a crawl for the live updates of the control room."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from nutch2py.crawl_reader import CrawlReader
from nutch2py.errors import NutchError

_JOBS_CHECKED = 20


def crawl_fingerprint(open_reader: Callable[[], CrawlReader]) -> str:
    """Return a fingerprint of the newest jobs and their progress; a different fingerprint means a change."""
    try:
        with open_reader() as crawl:
            entries = crawl.jobs(_JOBS_CHECKED)
    except NutchError as error:  # no crawl yet, or its store is unavailable: the page reports it
        return f"none {type(error).__name__}"
    state = repr([(each.id, each.state, each.rows, each.expected, each.notes, each.finish_time) for each in entries])
    return hashlib.blake2b(state.encode(), digest_size=9).hexdigest()
