"""Jobs started at the same time as processes, on the embedded table."""

from __future__ import annotations

from nutch2py.conf.configuration import Configuration
from tests.jobs.concurrent_commands import beside_a_fetch, generates_at_once, slow_site, updates_at_once


def test_concurrent_jobs_with_killed_fetch_keep_table_consistent(conf: Configuration) -> None:
    with slow_site() as site:
        beside_a_fetch(conf, site)


def test_concurrent_generates_choose_disjoint_rows(conf: Configuration) -> None:
    generates_at_once(conf)


def test_concurrent_updates_keep_all_changes(conf: Configuration) -> None:
    updates_at_once(conf)
