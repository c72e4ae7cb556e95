"""PageRankJob: the PageRank of every page into its column ``s:pr``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from nutch2py.conf import Configuration
from nutch2py.errors import StoreError
from nutch2py.indexer.filters.index_pagerank import MEAN_ROW
from nutch2py.joblog.kept import keep_part
from nutch2py.joblog.ledger import note
from nutch2py.joblog.overview import Overview
from nutch2py.jobs.beginning import begin
from nutch2py.jobs.job_lines import JobLines
from nutch2py.jobs.pagerank_mapreduce import MapReduceRanks
from nutch2py.jobs.pagerank_memory import TooLargeError, read_graph, write_ranks
from nutch2py.jobs.spreads import BOUNDS, histogram
from nutch2py.jobs.works import PAGERANK, PAGERANK_SCORES
from nutch2py.mapreduce.driver import runner_name
from nutch2py.scoring.rank_model import Change, PageRankModel, choice
from nutch2py.scoring.rank_model import pagerank as compute
from nutch2py.table import open_store
from nutch2py.table.clock import now_ms
from nutch2py.webpage import BatchEntry, WebPage


class PageRankResult(NamedTuple):
    """What PageRank was computed of, and how.

    ``method``: memory or mapreduce; ``pages``, ``links``: the size of the graph; ``iterations``: how many were done;
    ``change``: what the last of them changed, ``mean`` and ``greatest``; ``written``: rows that got another rank;
    ``mean``: the mean rank.
    """

    method: str
    pages: int
    links: int
    iterations: int
    change: Change
    written: int
    mean: float


def pagerank(conf: Configuration) -> PageRankResult:
    """Compute PageRank for the whole table and write it.

    In memory (``pagerank.method`` memory; auto, when jobs run on this machine and the graph fits) or by MapReduce;
    both give the same ranks. Killed and run again it computes them anew: nothing but ``s:pr`` is changed.
    """
    log = JobLines("PageRankJob")
    work = PAGERANK_SCORES if conf.get_bool("pagerank.update.score") else PAGERANK
    with begin(conf, work) as tables:
        result = _computed(conf, log, tables.check)
    log.line(
        f"{result.iterations} iterations, last change of a rank {result.change.mean:.3g} in the mean and "
        f"{result.change.greatest:.3g} at most; mean rank {result.mean:.4f}; {result.written} rows written"
    )
    log.finished()
    return result


def _computed(conf: Configuration, log: JobLines, check: Callable[[], None]) -> PageRankResult:
    method = choice(conf, "pagerank.method", ("auto", "memory", "mapreduce"))
    result = None
    if method == "memory" or (method == "auto" and runner_name(conf) in ("inline", "local")):
        try:
            result = _in_memory(conf, log, check)
        except TooLargeError:
            if method == "memory":
                raise StoreError(
                    "the link graph does not fit into pagerank.memory.limit: raise it, or use pagerank.method mapreduce"
                ) from None
            log.line("the graph does not fit into pagerank.memory.limit: computing it by MapReduce")
    if result is None:
        result = _by_mapreduce(conf, log)
    _keep_mean(conf, result.mean)
    return result


def _in_memory(conf: Configuration, log: JobLines, check: Callable[[], None]) -> PageRankResult:
    store = open_store(conf, WebPage)
    known = read_graph(conf, store)
    graph = known.build()
    log.line(f"{graph.pages} pages, {graph.links} links, in memory")
    note(counters={"pagerank": {"pages": graph.pages, "links": graph.links}})  # as those of a job by MapReduce
    iterations, tolerance = _ends(conf)
    ranks, done, change = compute(graph, PageRankModel.of(conf), iterations, tolerance, _reporter(log))
    written = write_ranks(store, known, ranks, conf.get_bool("pagerank.update.score"), check)
    mean = float(ranks.mean()) if graph.pages else 0.0
    _keep_spread(conf, ranks)
    return PageRankResult("memory", graph.pages, graph.links, done, change, written, mean)


def _by_mapreduce(conf: Configuration, log: JobLines) -> PageRankResult:
    runs = MapReduceRanks(conf)
    runs.read(open_store(conf, WebPage))
    log.line(f"{runs.pages} pages, {runs.links} links, by MapReduce")
    last = Change(0.0, 0.0)
    report = _reporter(log)

    def note(iteration: int, change: Change) -> None:
        nonlocal last
        last = change
        report(iteration, change)

    done = runs.iterate(*_ends(conf), note)
    written = runs.write()
    runs.clear()
    return PageRankResult("mapreduce", runs.pages, runs.links, done, last, written, runs.mean)


def _keep_spread(conf: Configuration, ranks: Any) -> None:
    """Keep how the ranks spread for the overview."""
    import numpy as np

    bounds = BOUNDS["pagerank"]
    places = np.maximum(np.searchsorted(bounds, ranks, side="right") - 1, 0)
    counts = dict(enumerate(np.bincount(places, minlength=len(bounds)).tolist()))
    seen = Overview(now_ms(), histograms={"pagerank": histogram(bounds, counts)})
    keep_part(open_store(conf, BatchEntry), "ranks", seen)


def _keep_mean(conf: Configuration, mean: float) -> None:
    """Keep the mean rank for index-pagerank, which scales by it."""
    store = open_store(conf, BatchEntry)
    store.create()
    entry = BatchEntry()
    entry.data = repr(mean).encode()
    with store.batch() as batch:
        batch.put(MEAN_ROW, entry)


def _ends(conf: Configuration) -> tuple[int, float]:
    linkrank = conf.get_trimmed("pagerank.model") == "linkrank"
    name, default = ("link.analyze.num.iterations", 10) if linkrank else ("pagerank.iterations", 20)
    iterations = conf.get_int(name, default)
    return iterations, 0.0 if linkrank else conf.get_float("pagerank.tolerance", 0.0)


def _reporter(log: JobLines) -> Callable[[int, Change], None]:
    """Return what prints the first iterations, then every fifth: enough to see whether ranks converge."""

    def report(iteration: int, change: Change) -> None:
        if iteration <= 3 or iteration % 5 == 0:
            log.line(f"iteration {iteration}: mean change {change.mean:.3g}, greatest {change.greatest:.3g}")

    return report
