"""Expensive searches run in a worker with the same results; what happens to it concerns only the search it runs."""

import os
import signal
import threading

import pytest

from nutch2py.errors import InputError, QueryError, SearchStoppedError
from nutch2py.indexer.writers.embedded_writer import EmbeddedIndexWriter
from nutch2py.search.query.query_plan import SearchOptions
from nutch2py.search.search_backends import open_search_backend, open_searcher_manager
from nutch2py.search.search_worker.search_metrics import SearchMetrics
from tests.indexer.delivery_suite import write
from tests.indexer.pages import doc
from tests.processes import wait_until
from tests.search.query_suite import QUERIES
from tests.search.test_query_suite import BEGINNINGS, embedded

__all__ = ["embedded"]
MANY_WORDS = " ".join(f"needle{number}" for number in range(90))
"""A query that is expensive on any index."""


def make_conf(conf, **properties):
    for name, value in properties.items():
        conf.set(f"search.worker.{name.replace('_', '.')}", str(value))
    write(conf, doc("org.a:http/", url="http://a.org/", host="a.org", title="Needle", content="a needle", lang="en"))
    return conf


@pytest.fixture
def open_manager(conf):
    """Return a function that opens searchers with ``search.worker.*``; every search is expensive."""
    opened = []

    def open_manager(**properties):
        made = make_conf(conf, **{"min_millis": 0, "cpu_seconds": 60, **properties})
        opened.append(open_searcher_manager(made, SearchMetrics()))
        return opened[0]

    yield open_manager
    for manager in opened:
        manager.close()


def search(manager, query="needle"):
    with manager.acquire() as searcher:
        return searcher.search(query).total


def start_search(manager):
    """Search in a thread; return it and the list that gets the result, once the worker is known."""
    results = []

    def run():
        try:
            results.append(search(manager))
        except SearchStoppedError as error:
            results.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, results


def test_results_of_worker_are_those_of_server(embedded):
    own = open_search_backend(embedded)
    conf = embedded.copy()
    conf.set("search.worker.min.millis", "0")
    conf.set("search.worker.cpu.seconds", "60")  # other tests may take all CPUs
    metrics = SearchMetrics()
    manager = open_searcher_manager(conf, metrics)
    options = SearchOptions.from_filters({"lang": "en"}, half_life_days=30.0)._replace(collapse_mode="near")
    try:
        for number, query in enumerate([*QUERIES][::4]):
            calls = [((0, 20), {"with_facets": True}), ((2, 5, options), {}), ((0, 3), {"cursor": "*"})]
            arguments, named = calls[number % len(calls)]
            with manager.acquire() as searcher:
                one = searcher.search(query, *arguments, **named)
            other = own.search(query, *arguments, **named)
            assert one._replace(millis=0) == other._replace(millis=0), query
        with manager.acquire() as searcher:
            key = own.search("crawler", 0, 1).hits[0].id
            for query in ("crawlr", "tutoriol python"):
                assert searcher.correct_query(query) == own.correct_query(query) != ""
            assert searcher.explain("crawler", key) == own.explain("crawler", key) != ""
            assert searcher.explain("museum", key) is None
            for typed in filter(str.isalpha, BEGINNINGS):
                assert searcher.suggest(typed) == own.suggest(typed), typed
            with pytest.raises(InputError, match="half-life"):
                searcher.search("crawler", options=SearchOptions(half_life_days=-1.0))
    finally:
        manager.close()
    assert metrics.counts().searches.keys() == {("worker", "ok"), ("worker", "error")}
    assert metrics.counts().starts == 1


def test_only_expensive_searches_run_in_worker(open_manager):
    manager = open_manager(min_millis=75)
    assert (search(manager), manager.worker_pids) == (1, [])
    with manager.acquire() as searcher:
        assert searcher.search(MANY_WORDS).total == 0
        assert len(manager.worker_pids) == 1
        assert searcher.correct_query("nedle") == "needle"  # of the same response
    counts = manager.metrics.counts()
    assert counts.searches == {("server", "ok"): 1, ("worker", "ok"): 2}
    assert counts.cpu_seconds > 0 == counts.waiting


def test_killed_worker_fails_its_search_only(open_manager):
    manager = open_manager()
    assert search(manager) == 1
    (first,) = manager.worker_pids
    assert os.getpriority(os.PRIO_PROCESS, first) > os.getpriority(os.PRIO_PROCESS, 0)
    os.kill(first, signal.SIGSTOP)
    thread, results = start_search(manager)
    wait_until(lambda: manager.metrics.counts().waiting)
    os.kill(first, signal.SIGKILL)
    thread.join()
    assert "SIGKILL" in str(results[0])
    assert results[0].public_message() == "The search ended unexpectedly. Try again."
    assert search(manager) == 1
    assert manager.worker_pids != [first]


def test_search_beyond_queue_is_rejected_at_once(open_manager):
    manager = open_manager(queue=1)
    assert search(manager) == 1
    (worker,) = manager.worker_pids
    os.kill(worker, signal.SIGSTOP)
    thread, results = start_search(manager)
    wait_until(lambda: manager.metrics.counts().waiting)
    with pytest.raises(SearchStoppedError, match=r"search\.worker\.queue") as error:
        search(manager)
    assert error.value.public_message().startswith("Too many expensive searches are running.")
    os.kill(worker, signal.SIGCONT)
    thread.join()
    assert (results, search(manager)) == ([1], 1)
    assert manager.metrics.counts().searches == {("worker", "ok"): 3, ("worker", "rejected"): 1}


def test_search_over_cpu_limit_is_rejected_as_query(open_manager):
    manager = open_manager(cpu_seconds=0.01)
    with pytest.raises(QueryError, match=r"search\.worker\.cpu\.seconds") as error:
        search(manager, MANY_WORDS)
    assert error.value.public_message() == "The search takes too long. Use fewer words."


def test_idle_worker_ends(open_manager):
    manager = open_manager(idle_seconds=0.01)
    assert search(manager) == 1
    wait_until(lambda: not manager.worker_pids)


def test_worker_of_closed_server_ends(open_manager):
    manager = open_manager(queue=2)
    assert search(manager) == 1
    (worker,) = manager.worker_pids
    os.kill(worker, signal.SIGSTOP)
    started = [start_search(manager) for _ in range(2)]
    wait_until(lambda: manager.metrics.counts().waiting == 2)
    manager.close()
    for thread, results in started:
        thread.join()
        assert isinstance(results[0], SearchStoppedError)
    wait_until(lambda: not manager.worker_pids)
    with pytest.raises(ProcessLookupError):
        os.kill(worker, 0)
    with pytest.raises(SearchStoppedError):
        search(manager)


def test_worker_sees_new_commits(open_manager, conf, monkeypatch):
    manager = open_manager()
    assert search(manager) == 1
    writer = EmbeddedIndexWriter(conf)
    writer.open(conf, {})
    writer.write(doc("org.b:http/", url="http://b.org/", host="b.org", title="Another needle", content="x", lang="en"))
    writer.commit()
    wait_until(lambda: search(manager) == 2)


def test_search_without_workers_runs_in_server(open_manager):
    with open_manager(processes=0).acquire() as searcher:
        assert searcher.search(MANY_WORDS).total == 0
        assert type(searcher) is type(open_search_backend(searcher.conf))
