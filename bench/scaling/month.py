"""Needs of a crawl that fetches each page once a month: cores, disks, bandwidth."""

from __future__ import annotations

from collections.abc import Mapping

from bench.scaling.jobs import JOBS
from bench.scaling.model import Cluster, Crawl, outcome, work

DAYS = 30
_TIMES = {"generate": 30, "fetch": 30, "parse": 30, "updatedb": 30, "index": 30, "dedup": 4, "pagerank": 1}
"""Runs per month: a batch a day."""
_COPIES, _FULL, _BUSY = 3, 0.6, 0.5
_TRANSFER = 30_000  # bytes of a page in transfer, assumed


def month(pages: int, nodes: int, parameters: Mapping[str, float]) -> list[tuple[str, float, float]]:
    """Return (job, busy cores over the month, hours of wall time of its runs on ``nodes``)."""
    crawl, cluster = crawl_of(pages), Cluster(nodes=nodes)
    found = []
    for job, times in _TIMES.items():
        phases = JOBS[job](crawl, cluster, parameters)
        seconds = outcome(phases, cluster, parameters, crawl.seed).seconds * times
        found.append((job, work(phases, parameters) * times / (DAYS * 86_400), seconds / 3_600))
    return found


def crawl_of(pages: int) -> Crawl:
    """Return a crawl with a number of fetched pages and five times as many known ones, each fetched once a month."""
    rows = 5 * pages
    return Crawl(rows=rows, batch=pages / DAYS / rows)


def text(pages: int, nodes: int, parameters: Mapping[str, float]) -> str:
    """Return the month as a Markdown table, with a line for disks and bandwidth."""
    crawl, found = crawl_of(pages), month(pages, nodes, parameters)
    solr = pages * parameters["index.solr"] / (DAYS * 86_400)
    cores = sum(cores for _, cores, _ in found)
    lines = ["| job | times | cores busy all month | hours |", "|---|---|---|---|"]
    lines += [f"| {job} | {_TIMES[job]} | {busy:.1f} | {hours:,.0f} |" for job, busy, hours in found]
    lines += [f"| together | | {cores:.1f}, and Solr's {solr:.1f} | {sum(hours for *_, hours in found):,.0f} |", ""]
    stored = crawl.stored(parameters)
    rate = pages * _TRANSFER * 8 / (DAYS * 86_400)
    lines.append(
        f"{pages:,} pages, {crawl.rows:,} rows, on {nodes} nodes: {stored / 1e12:.0f} TB, on disks of "
        f"{stored * _COPIES / _FULL / 1e12:.0f} TB ({_COPIES} copies, {_FULL:.0%} full); {cores / _BUSY:.0f} cores and "
        f"{solr / _BUSY:.0f} of Solr's at {_BUSY:.0%}; {pages / (DAYS * 86_400):,.0f} pages and "
        f"{rate / 1e6:,.0f} Mbit/s all month."
    )
    return "\n".join(lines)
