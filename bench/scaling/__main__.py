"""scripts/bench scale: modelled cost of each job on 1 to 100 nodes (docs/scale.md).

It only runs arithmetic and a seeded simulation of some seconds, unless ``--calibrate`` measures this machine.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.scaling.calibrating import calibrated
from bench.scaling.jobs import JOBS, fetched, regions
from bench.scaling.model import Cluster, Crawl, Outcome, outcome, stops_scaling
from bench.scaling.month import text
from bench.scaling.parameters import PARAMETERS, read_parameters, values
from nutch2py.errors import NutchError

NODES = (1, 3, 10, 30, 100)
ROWS = (10_000_000, 100_000_000, 1_000_000_000, 10_000_000_000)


def results(
    rows: Sequence[int], nodes: Sequence[int], parameters: Mapping[str, float], **options: Any
) -> dict[str, Any]:
    """Return the cost of each job by rows and nodes, in a form for JSON.

    ``options``: of :class:`~bench.scaling.model.Cluster`.
    """
    found: dict[str, Any] = {"parameters": dict(parameters), "crawls": []}
    for count in rows:
        crawl = Crawl(rows=count)
        clusters = [Cluster(nodes=number, **options) for number in nodes]
        jobs = {}
        for name, phases in JOBS.items():
            outcomes = {
                each.nodes: outcome(phases(crawl, each, parameters), each, parameters, crawl.seed) for each in clusters
            }
            seconds = {number: each.seconds for number, each in outcomes.items()}
            jobs[name] = {
                "nodes": {number: _told(each) for number, each in outcomes.items()},
                "stops_scaling": stops_scaling(seconds),
            }
        fetches = {each.nodes: fetched(crawl, each, parameters)._asdict() for each in clusters}
        table = {"regions": regions(crawl, clusters[0], parameters), "bytes": crawl.stored(parameters)}
        found["crawls"].append({"crawl": asdict(crawl), "table": table, "jobs": jobs, "fetching": fetches})
    found["cluster"] = asdict(Cluster(nodes=1, **options))
    return found


def _told(found: Outcome) -> dict[str, Any]:
    return {
        "seconds": found.seconds,
        "cpu": found.cpu,
        "largest_process": found.held,
        "binds": found.binds,
        "parts": dict(found.parts),
    }


def clock(seconds: float) -> str:
    """Return a time with about two digits: ``42 s``, ``3.5 min``, ``2.1 h``, ``1.4 d``."""
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"


def tables(found: Mapping[str, Any]) -> str:
    """Return the results as Markdown tables, one for each size of the crawl."""
    lines: list[str] = []
    for each in found["crawls"]:
        rows, table = each["crawl"]["rows"], each["table"]
        nodes = list(each["fetching"])
        batch = int(rows * each["crawl"]["batch"])
        lines += [
            f"{rows:,} rows, {table['bytes'] / 1e9:,.0f} GB in {table['regions']:,} regions, batches of {batch:,}:",
            "",
            "| job | " + " | ".join(f"{number} nodes" if number > 1 else "1 node" for number in nodes)
            + " | CPU | stops scaling at | for | largest process |",
            "|" + "---|" * (len(nodes) + 5),
        ]  # fmt: skip
        for name, job in each["jobs"].items():
            costs = job["nodes"]
            last, stop = costs[nodes[-1]], job["stops_scaling"]
            times = " | ".join(clock(costs[number]["seconds"]) for number in nodes)
            largest = max(cost["largest_process"] for cost in costs.values())
            words = "more than that" if stop == nodes[-1] else f"{stop}"
            size = f"{largest / 1e9:,.1f} GB" if largest >= 1e8 else ""
            lines.append(f"| {name} | {times} | {clock(costs[nodes[0]]['cpu'])} | {words} | {last['binds']} | {size} |")
        lines.append("")
    return "\n".join(lines)


def parameter_table(parameters: Mapping[str, float]) -> str:
    """Return the parameters with their sources, as a Markdown table."""
    lines = ["| parameter | value | from |", "|---|---|---|"]
    for name, parameter in PARAMETERS.items():
        value, unit = parameters[name], parameter.unit
        shown = f"{value * 1e6:,.3g} µs" if unit.startswith(("CPU s", "s ")) and value < 0.1 else f"{value:,.3g}"
        source = parameter.source if value == parameter.value else "given"
        lines.append(f"| {name} | {shown} {unit.removeprefix('CPU s ').removeprefix('s ')} | {source} |")
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    """Print the tables, or the parameters, and return 0; 2 for parameters that cannot be read."""
    parser = argparse.ArgumentParser(prog="bench scale", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("rows", nargs="*", type=int, metavar="ROWS", help=f"sizes of the table (default: {ROWS})")
    parser.add_argument("--nodes", type=int, nargs="+", default=NODES, metavar="N", help="numbers of nodes")
    parser.add_argument(
        "--gateways", type=int, default=0, metavar="N", help="Thrift gateways in all (default: one a node)"
    )
    parser.add_argument("--region-gb", type=float, default=10.0, metavar="GB", help="size at which a region splits")
    parser.add_argument(
        "--month", type=int, metavar="PAGES", help="print what a crawl of so many pages needs in a month, no more"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results there, too")
    parser.add_argument(
        "--parameters", action="store_true", help="print the parameters and where they come from, no more"
    )
    parser.add_argument("--with", dest="given", type=Path, metavar="FILE", help="take parameters from a JSON file")
    parser.add_argument(
        "--calibrate", type=Path, metavar="FILE", help="measure this machine (a minute), write its parameters, use them"
    )
    args = parser.parse_args(argv)
    try:
        parameters = values(read_parameters(args.given) if args.given else None)
        if args.calibrate:
            parameters = calibrated(parameters)
            args.calibrate.write_text(json.dumps(parameters, indent=1) + "\n", encoding="utf-8")
    except NutchError as error:
        print(error, file=sys.stderr)
        return 2
    if args.parameters:
        print(parameter_table(parameters))
        return 0
    if args.month:
        print(text(args.month, max(args.nodes), parameters))
        return 0
    options = {"gateways": args.gateways, "region_bytes": args.region_gb * 1e9}
    found = results(args.rows or ROWS, sorted(set(args.nodes)), parameters, **options)
    print(tables(found))
    if args.json:
        args.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
