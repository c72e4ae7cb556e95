"""Parameters of the model: measured or assumed costs, with their sources."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from nutch2py.errors import InputError

PERFORMANCE = "docs/measurements/2026-11-24-jobs.md"
_HBASE = "docs/measurements/2026-11-28-hbase.md"
_SIDE = "measured side by side with Nutch, 22 November 2026, HBase 2.6"
_CLEARING = "a list of 150,500 entries on HBase 2.6, one process, keys read and rows deleted, 23 November 2026"
_GATEWAY = "raw happybase on HBase 2.6, one process, 22 November 2026"
_YARN = "an empty job of 7 tasks on YARN, and the same in one container"
_PARTS = "; gateway and region server split as for raw happybase in the same page"


@dataclass(frozen=True)
class ModelParameter:
    """One number, in CPU seconds unless ``unit`` is set. ``source``: measurement or reason."""

    value: float
    unit: str
    source: str


def _micro(value: float, source: str, unit: str = "CPU s a row") -> ModelParameter:
    return ModelParameter(value * 1e-6, unit, source)


PARAMETERS: Mapping[str, ModelParameter] = {
    # Fixed costs of every job.
    "start.driver": ModelParameter(0.3, "CPU s a job", f"{PERFORMANCE}: an empty job"),
    "start.job": ModelParameter(12.0, "s a Hadoop job", f"{_YARN}: 13 to 15 s in one container"),
    "start.task": ModelParameter(2.5, "CPU s a task", f"{_YARN}: 21 to 27 CPU s against 7 to 8"),
    "shuffle.record": _micro(7.4, "1,000,000 records through mrjob: 5 µs its machinery, 2.4 µs the sort"),
    # Costs of a row by job: task, region server, Thrift gateway.
    "inject.task": _micro(38.8, f"{_HBASE}: 500,000 rows less 100,000"),
    "inject.region": _micro(81.0, f"{_HBASE}: 101.8 µs of servers{_PARTS}"),
    "inject.gateway": _micro(20.8, f"{_HBASE}: 101.8 µs of servers{_PARTS}"),
    "generate.task": _micro(29.2, f"{_HBASE}: 500,000 rows less 100,000"),
    "generate.region": _micro(10.4, f"{_HBASE}: 16 µs of servers{_PARTS}"),
    "generate.gateway": _micro(5.6, f"{_HBASE}: 16 µs of servers{_PARTS}"),
    "chosen.task": _micro(56.0, f"{_HBASE}: 10,000 chosen of 100,000 less 1,000", "CPU s a URL chosen"),
    "chosen.region": _micro(88.0, f"{_HBASE}: 111 µs of servers{_PARTS}", "CPU s a URL chosen"),
    "chosen.gateway": _micro(23.0, f"{_HBASE}: 111 µs of servers{_PARTS}", "CPU s a URL chosen"),
    "select.chosen": _micro(9.5, "200,000 entries through the reducer alone, all chosen", "CPU s an entry"),
    "select.passed": _micro(0.5, "200,000 entries through the reducer alone, 1,000 chosen", "CPU s an entry"),
    "fetch.task": _micro(620, f"{_SIDE}: 10,000 pages, 6.7 CPU s", "CPU s a page"),
    "fetch.region": _micro(450, f"{_SIDE}: 5.7 CPU s of servers{_PARTS}", "CPU s a page"),
    "fetch.gateway": _micro(120, f"{_SIDE}: 5.7 CPU s of servers{_PARTS}", "CPU s a page"),
    "parse.task": _micro(1110, f"{_SIDE}: 10,000 pages, 11.5 CPU s", "CPU s a page"),
    "parse.region": _micro(780, f"{_SIDE}: 9.9 CPU s of servers{_PARTS}", "CPU s a page"),
    "parse.gateway": _micro(210, f"{_SIDE}: 9.9 CPU s of servers{_PARTS}", "CPU s a page"),
    "updatedb.task": _micro(480, f"{_HBASE}: 10,000 pages of 20 links", "CPU s a page"),
    "updatedb.region": _micro(510, f"{_HBASE}: 6.5 CPU s of servers{_PARTS}", "CPU s a page"),
    "updatedb.gateway": _micro(130, f"{_HBASE}: 6.5 CPU s of servers{_PARTS}", "CPU s a page"),
    "index.task": _micro(700, f"{_SIDE}, less what {PERFORMANCE} has won since, with Solr's sender", "CPU s a page"),
    "index.region": _micro(270, f"{_SIDE}: 3.4 CPU s of servers{_PARTS}", "CPU s a page"),
    "index.gateway": _micro(70, f"{_SIDE}: 3.4 CPU s of servers{_PARTS}", "CPU s a page"),
    "index.solr": _micro(14_300, f"{_SIDE}: Solr 9.10, 142.9 CPU s for 10,000 pages", "CPU s a page"),
    "stats.task": _micro(15.0, f"{_SIDE}: 100,000 rows, 1.8 CPU s"),
    "stats.region": _micro(17.0, f"{_SIDE}: 2.6 CPU s of servers{_PARTS}"),
    "stats.gateway": _micro(9.0, f"{_SIDE}: 2.6 CPU s of servers{_PARTS}"),
    "dedup.task": _micro(30.0, "assumed: readdb -stats, and as much for the pair that it gives"),
    "pagerank.page": _micro(32.0, f"{PERFORMANCE}, pagerank: a million pages read and written in memory"),
    "pagerank.link": _micro(
        0.073, f"{PERFORMANCE}, pagerank by MapReduce: 20 iterations over 10 links a page", "CPU s a link and iteration"
    ),
    # Costs in the driver process.
    "sample.row": _micro(
        14.0, f"{_GATEWAY}: a scan with a filter that matches nothing, 71,000 rows a second", "s a row"
    ),
    "seek.row": _micro(850, f"{_GATEWAY}: rows one by one, 1,170 a second", "s a row"),
    "delete.row": _micro(26.0, f"{_CLEARING}: 3.9 s, in calls of 1,000 rows; 6.8 s in calls of 10,000", "s a row"),
    "delete.task": _micro(8.6, f"{_CLEARING}: 1.3 CPU s"),
    "delete.region": _micro(14.5, f"{_CLEARING}: 2.2 CPU s of HBase"),
    "delete.gateway": _micro(8.0, f"{_CLEARING}: 1.2 CPU s of the gateway"),
    "seed.byte": ModelParameter(
        1.2e-8, "s a byte", "assumed: a seed file is read, made JSON and written again at 80 MB a second"
    ),
    # Sizes.
    "row.bytes": ModelParameter(400, "bytes", "assumed: a row that was never fetched, compressed, with HBase's own"),
    "page.bytes": ModelParameter(
        8_000, "bytes", "assumed: a fetched page of 10 KB with text, links, inlinks, compressed"
    ),
    "entry.memory": ModelParameter(390, "bytes", f"{PERFORMANCE}, generate: 81 MB for 100,000 chosen, 46 for 10,000"),
    "entry.bytes": ModelParameter(75, "bytes", "a line of generate's shuffle: 16 digits of the score, a URL"),
}


def values(changed: Mapping[str, float] | None = None) -> dict[str, float]:
    """Return every parameter by name, with the values in ``changed``."""
    changed = changed or {}
    if unknown := sorted(set(changed) - set(PARAMETERS)):
        raise InputError(f"the model has no parameter {', '.join(unknown)}: bench scale --parameters lists them")
    return {name: changed.get(name, parameter.value) for name, parameter in PARAMETERS.items()}


def read_parameters(path: Path) -> dict[str, float]:
    """Return the parameters of a JSON file, such as one written by ``bench scale --calibrate FILE``."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return {str(name): float(value) for name, value in found.items()}
    except (OSError, ValueError, AttributeError, TypeError) as error:
        raise InputError(f"{path} has no parameters: {error}: write names and numbers as one JSON object") from error
