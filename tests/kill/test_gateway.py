"""A schedule of the kill harness in which HBase's Thrift gateway is killed; the harness itself has more."""

from __future__ import annotations

from typing import Any

from tests.kill.faults import Options
from tests.kill.run import run
from tests.kill.schedule_choice import SEED, cheapest


def test_first_round_with_killed_gateway_recovers(hbase: Any) -> None:
    options, messages = Options("hbase"), list[str]()
    numbers = cheapest(options, {"gateway"}, {1})
    summary = run(SEED, options, numbers, say=messages.append, shared=1000, whole=0, started={"hbase": hbase})
    assert not summary.failed, "\n".join(messages)
    assert summary.hit["gateway"], "\n".join(messages)
