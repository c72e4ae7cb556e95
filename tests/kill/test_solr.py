"""A schedule of the kill harness in which Solr is killed; the harness itself has more."""

from __future__ import annotations

from typing import Any

from tests.kill.faults import Options
from tests.kill.run import run
from tests.kill.schedule_choice import SEED, cheapest


def test_first_round_with_killed_solr_recovers(solr_server: Any) -> None:
    solr_server.start()
    options, messages = Options(index="solr"), list[str]()
    numbers = cheapest(options, {"solr"}, {1})
    summary = run(SEED, options, numbers, say=messages.append, shared=1000, whole=0, started={"solr": solr_server})
    assert not summary.failed, "\n".join(messages)
    assert summary.hit["solr"], "\n".join(messages)
