"""PageRankJob: computes the PageRank of every page and writes it to column ``s:pr``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import StoreError
from nutch2py.indexer.filters.index_pagerank import MEAN_RANK_ROW
from nutch2py.joblog.crawl_overview import Overview
from nutch2py.joblog.job_recorder import annotate_job
from nutch2py.joblog.stored_overview import store_overview_part
from nutch2py.jobs.job_context import open_job
from nutch2py.jobs.locking.lock_scopes import PAGERANK, PAGERANK_SCORES
from nutch2py.jobs.nutch_log_lines import JobLogger
from nutch2py.jobs.pagerank.pagerank_mapreduce import MapReducePageRank
from nutch2py.jobs.pagerank.pagerank_memory import GraphTooLargeError, read_graph, write_ranks
from nutch2py.jobs.stats.page_histograms import HISTOGRAM_BOUNDS
from nutch2py.mapreduce.driver import runner_name
from nutch2py.records.webpage import DerivedRow, WebPage
from nutch2py.scoring.pagerank_model import PageRankModel, RankChange, get_choice
from nutch2py.scoring.pagerank_model import compute_pagerank as compute
from nutch2py.support.clock import now_ms
from nutch2py.support.histogram import histogram_of_counts
from nutch2py.table import open_store


class PageRankResult(NamedTuple):
    """Result of the job.

    Attributes:
        method: memory or mapreduce.
        pages: Pages of the graph.
        links: Links of the graph.
        iterations: Number of iterations.
        change: Mean and greatest change of a rank in the last iteration.
        written: Rows with a changed rank.
        mean: Mean rank.
    """

    method: str
    pages: int
    links: int
    iterations: int
    change: RankChange
    written: int
    mean: float


def pagerank(conf: Configuration) -> PageRankResult:
    """Compute PageRank for the whole table and write it.

    Runs in memory (``pagerank.method`` memory, or auto if jobs run locally and the graph fits) or by MapReduce, with
    the same ranks. Only ``s:pr`` changes, so a killed run can be repeated.
    """
    log = JobLogger("PageRankJob")
    lock_scope = PAGERANK_SCORES if conf.get_bool("pagerank.update.score") else PAGERANK
    with open_job(conf, lock_scope) as tables:
        result = _compute_ranks(conf, log, tables.check_lock)
    log.log(
        f"{result.iterations} iterations, last change of a rank {result.change.mean:.3g} in the mean and "
        f"{result.change.greatest:.3g} at most; mean rank {result.mean:.4f}; {result.written} rows written"
    )
    log.log_finished()
    return result


def _compute_ranks(conf: Configuration, logger: JobLogger, check_lock: Callable[[], None]) -> PageRankResult:
    method = get_choice(conf, "pagerank.method", ("auto", "memory", "mapreduce"))
    result = None
    if method == "memory" or (method == "auto" and runner_name(conf) in ("inline", "local")):
        try:
            result = _compute_in_memory(conf, logger, check_lock)
        except GraphTooLargeError:
            if method == "memory":
                raise StoreError(
                    "the link graph does not fit into pagerank.memory.limit: raise it, or use pagerank.method mapreduce"
                ) from None
            logger.log("the graph does not fit into pagerank.memory.limit: computing it by MapReduce")
    if result is None:
        result = _compute_by_mapreduce(conf, logger)
    _save_mean(conf, result.mean)
    return result


def _compute_in_memory(conf: Configuration, logger: JobLogger, check_lock: Callable[[], None]) -> PageRankResult:
    store = open_store(conf, WebPage)
    memory_graph = read_graph(conf, store)
    graph = memory_graph.build()
    logger.log(f"{graph.page_count} pages, {graph.link_count} links, in memory")
    # the same counters as the MapReduce job
    annotate_job(counters={"pagerank": {"pages": graph.page_count, "links": graph.link_count}})
    iterations, tolerance = _read_stop_conditions(conf)
    ranks, iteration_count, change = compute(
        graph, PageRankModel.from_conf(conf), iterations, tolerance, _make_iteration_logger(logger)
    )
    written = write_ranks(store, memory_graph, ranks, conf.get_bool("pagerank.update.score"), check_lock)
    mean = float(ranks.mean()) if graph.page_count else 0.0
    _save_histogram(conf, ranks)
    return PageRankResult("memory", graph.page_count, graph.link_count, iteration_count, change, written, mean)


def _compute_by_mapreduce(conf: Configuration, logger: JobLogger) -> PageRankResult:
    ranker = MapReducePageRank(conf)
    ranker.build_blocks(open_store(conf, WebPage))
    logger.log(f"{ranker.pages} pages, {ranker.links} links, by MapReduce")
    last = RankChange(0.0, 0.0)
    report = _make_iteration_logger(logger)

    def on_iteration(iteration: int, change: RankChange) -> None:
        nonlocal last
        last = change
        report(iteration, change)

    iteration_count = ranker.run_iterations(*_read_stop_conditions(conf), on_iteration)
    written = ranker.write_ranks()
    ranker.delete_blocks()
    return PageRankResult("mapreduce", ranker.pages, ranker.links, iteration_count, last, written, ranker.mean)


def _save_histogram(conf: Configuration, ranks: Any) -> None:
    """Store the histogram of the ranks for the overview."""
    import numpy as np

    bounds = HISTOGRAM_BOUNDS["pagerank"]
    buckets = np.maximum(np.searchsorted(bounds, ranks, side="right") - 1, 0)
    counts = dict(enumerate(np.bincount(buckets, minlength=len(bounds)).tolist()))
    overview = Overview(now_ms(), histograms={"pagerank": histogram_of_counts(bounds, counts).trimmed()})
    store_overview_part(open_store(conf, DerivedRow), "ranks", overview)


def _save_mean(conf: Configuration, mean: float) -> None:
    """Store the mean rank, by which index-pagerank scales."""
    store = open_store(conf, DerivedRow)
    store.create()
    entry = DerivedRow()
    entry.data = repr(mean).encode()
    with store.batch() as batch:
        batch.put(MEAN_RANK_ROW, entry)


def _read_stop_conditions(conf: Configuration) -> tuple[int, float]:
    linkrank = conf.get_trimmed("pagerank.model") == "linkrank"
    name, default = ("link.analyze.num.iterations", 10) if linkrank else ("pagerank.iterations", 20)
    iterations = conf.get_int(name, default)
    return iterations, 0.0 if linkrank else conf.get_float("pagerank.tolerance", 0.0)


def _make_iteration_logger(logger: JobLogger) -> Callable[[int, RankChange], None]:
    """Return a callback that logs the first iterations and then every fifth."""

    def report(iteration: int, change: RankChange) -> None:
        if iteration <= 3 or iteration % 5 == 0:
            logger.log(f"iteration {iteration}: mean change {change.mean:.3g}, greatest {change.greatest:.3g}")

    return report
