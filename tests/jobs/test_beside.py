"""Jobs started at the same time as processes, on the embedded table."""

from __future__ import annotations

from nutch2py.conf import Configuration
from tests.jobs.beside import beside_a_fetch, generates_at_once, slow_site, updates_at_once


def test_processes_beside_a_fetch_that_is_killed_at_last(conf: Configuration) -> None:
    with slow_site() as site:
        beside_a_fetch(conf, site)


def test_generates_at_once(conf: Configuration) -> None:
    generates_at_once(conf)


def test_updates_at_once(conf: Configuration) -> None:
    updates_at_once(conf)
