"""Every look, in the order in which parts rest on each other."""

from __future__ import annotations

from collections.abc import Iterator

from nutch2py.conf import Configuration
from nutch2py.doctor import configuration, machine, services, work
from nutch2py.doctor.finding import Finding, Look, State, findings_of

LOOKS: dict[str, Look] = {
    "version": machine.python,
    "configuration": configuration.files,
    "properties": configuration.properties,
    "agent name": configuration.agent,
    "plug-ins": configuration.plugins,
    "disk": machine.disks,
    "memory": machine.memory,
    "open files": machine.files,
    "DNS": machine.names,
    "clock": work.clock,
    "table": services.tables,
    "index": services.index,
    "runner": services.runner,
    "jobs": work.last_job,
    "left out": work.lost,
}
_WAIT = "5"


def examine(conf: Configuration) -> Iterator[Finding]:
    """Yield what each look finds. Services that are away are tried for some seconds only."""
    conf = conf.copy()
    conf.set("service.wait.seconds", _WAIT)
    for part, look in LOOKS.items():
        yield from findings_of(part, look, conf)


def worst(findings: list[Finding]) -> State:
    """Return the worst state among findings."""
    states = {finding.state for finding in findings}
    return State.BAD if State.BAD in states else State.DOUBTFUL if State.DOUBTFUL in states else State.GOOD
