"""``index -scores``: what pagerank says now into the index; nothing else changes, and all as -reindex would have it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from nutch2py import SCORES, Crawl
from nutch2py.cli import main
from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError, IndexingError, LockedError
from nutch2py.indexer.filters.index_pagerank import MEAN_RANK_ROW
from nutch2py.indexer.index_writers import IndexWriters
from nutch2py.jobs.batches.batch_lists import BatchListStore
from nutch2py.jobs.index.index_job import index
from nutch2py.jobs.locking.job_lock import hold_job_lock
from nutch2py.jobs.locking.lock_scopes import PAGERANK
from nutch2py.mapreduce.job_parameters import REINDEX
from nutch2py.records.webpage import CrawlStatus, DerivedRow, Mark, WebPage
from nutch2py.search.engines.embedded_searcher import EmbeddedSearcher
from nutch2py.search.search_log.click_model import store_click_factors
from nutch2py.table import open_store
from tests.indexer.pages import page

PAGES = 12


def key(number: int) -> str:
    return f"org.example:http/{number}"


@pytest.fixture
def conf(conf: Configuration) -> Configuration:
    """A crawl of pages that are indexed; those of odd numbers have no rank yet."""
    store = open_store(conf, WebPage)
    store.create()
    with store.batch() as batch:
        for number in range(PAGES):
            made = page(signature=b"%d" % number, text=f"words {number}", title="T", content_type="text/html")
            made.markers[Mark.UPDATEDB] = "b"
            made.page_rank = 0.0 if number % 2 else 1.0
            batch.put(key(number), made)
    index(conf, "b")
    return conf


def rank(conf: Configuration, ranks: dict[int, float], mean: float = 1.0) -> None:
    with open_store(conf, WebPage).batch() as batch:
        for number, value in ranks.items():
            changed = WebPage({}, frozenset())
            changed.page_rank = value
            batch.put(key(number), changed)
    entry = DerivedRow()
    entry.data = repr(mean).encode()
    with BatchListStore(conf).store.batch() as batch:
        batch.put(MEAN_RANK_ROW, entry)


def documents(conf: Configuration) -> list[tuple[float, dict[str, object]]]:
    hits = EmbeddedSearcher(conf).search("words", 0, 100).hits
    return sorted([(round(hit.score, 5), hit.fields) for hit in hits], key=lambda hit: str(hit[1]["id"]))


def relative(scored: list[tuple[float, dict[str, object]]]) -> list[tuple[float, dict[str, object]]]:
    """Return documents with scores relative to the last one's: replaced documents change the statistics of words."""
    return [(round(score / scored[-1][0], 3), fields) for score, fields in scored]


@pytest.mark.parametrize("runner", ["inline", "local"])
def test_index_scores_equal_reindex(conf: Configuration, runner: str, tmp_path: Path) -> None:
    conf.set("mapreduce.runner", runner)
    rank(conf, {number: 0.6 + number / 4 for number in range(PAGES)}, mean=2.0)
    before = documents(conf)
    assert dict(index(conf, SCORES).group("IndexerStatus")) == {"scores_changed": PAGES}
    rebuilt = conf.copy()
    rebuilt.set("index.embedded.path", str(tmp_path / "rebuilt"))
    index(rebuilt, REINDEX)
    assert documents(conf) == documents(rebuilt) != before
    assert dict(index(conf, SCORES).group("IndexerStatus")) == {"scores_kept": PAGES}


def test_changed_click_factors_are_indexed_as_by_reindex(conf: Configuration, tmp_path: Path) -> None:
    conf.set("plugin.includes", "index-(basic|pagerank|clicks)|indexer-embedded")
    conf.set("index.weight.fields", "pagerank^0.35,clicks^0.5")
    rank(conf, dict.fromkeys(range(PAGES), 1.0))
    store_click_factors(open_store(conf, DerivedRow), {key(0): 2.0, key(1): 0.5, key(2): 1.5})
    index(conf, REINDEX)
    assert dict(index(conf, SCORES).group("IndexerStatus")) == {"scores_kept": PAGES}
    # another factor, none, the first, the same; a new rank keeps the factor
    store_click_factors(open_store(conf, DerivedRow), {key(0): 0.5, key(2): 1.5, key(3): 1.8})
    rank(conf, {2: 3.0})
    before = documents(conf)
    counts = dict(index(conf, SCORES).group("IndexerStatus"))
    assert counts == {"scores_changed": 1, "scores_changed_whole": 3, "scores_kept": PAGES - 4}
    rebuilt = conf.copy()
    rebuilt.set("index.embedded.path", str(tmp_path / "rebuilt"))
    index(rebuilt, REINDEX)
    assert relative(documents(conf)) == relative(documents(rebuilt)) != relative(before)
    assert dict(index(conf, SCORES).group("IndexerStatus")) == {"scores_kept": PAGES}


def test_missing_documents_are_counted_and_not_created(conf: Configuration) -> None:
    rank(conf, dict.fromkeys(range(PAGES), 3.0))
    with IndexWriters(conf) as writers:
        writers.delete(key(4))
        writers.commit()
    gone = WebPage({}, frozenset())
    gone.status = CrawlStatus.GONE
    unmarked = page(signature=b"new", text="words never indexed", title="T", page_rank=3.0)
    with open_store(conf, WebPage).batch() as batch:
        batch.put(key(6), gone)  # its document waits for clean
        batch.put(key(PAGES), unmarked)
    counts = dict(index(conf, SCORES).group("IndexerStatus"))
    assert counts == {"scores_changed": PAGES - 2, "scores_not_in_index": 1}
    assert len(documents(conf)) == PAGES - 1


def test_summary_line_and_exit_code_are_reported(conf: Configuration, capsys: pytest.CaptureFixture[str]) -> None:
    rank(conf, {0: 3.0, 1: 9000.0})
    words = ["-D", f"storage.data.store={conf.get('storage.data.store')}"]
    assert main(["index", "-scores", *words]) == 0
    output = capsys.readouterr().out
    assert "2 scores changed, 1 of them with their documents; 5 unchanged, 0 documents not" in output
    assert main(["index", "-scores", "-all", *words]) == 255
    assert main(["parse", "-scores", *words]) == 255
    assert main(["index", "-scores", *words, "-D", "plugin.includes=indexer-csv|index-pagerank"]) == 5
    assert "indexer-csv cannot change the scores of documents" in capsys.readouterr().err
    assert main(["index", "-scores", *words, "-D", "index.scores.share=much"]) == 2


def test_missing_score_filter_is_rejected(conf: Configuration) -> None:
    conf.set("plugin.includes", "index-basic")
    with pytest.raises(ConfigurationError, match="add index-pagerank"):
        index(conf, SCORES)


def test_mapping_of_score_field_is_rejected(conf: Configuration, tmp_path: Path) -> None:
    (tmp_path / "index-writers.xml").write_text(
        '<writers><writer id="w" class="indexer-embedded"><parameters/>'
        '<mapping><copy/><rename><field source="pagerank" dest="rank"/></rename><remove/></mapping></writer></writers>'
    )
    conf.set("indexer.indexwriters.file", str(tmp_path / "index-writers.xml"))
    with pytest.raises(IndexingError, match="w cannot change the scores"):
        index(conf, SCORES)


def test_index_scores_during_pagerank_is_rejected(conf: Configuration) -> None:
    with (
        hold_job_lock(conf, BatchListStore(conf), PAGERANK),
        ThreadPoolExecutor() as others,
        pytest.raises(LockedError),
    ):
        others.submit(index, conf, SCORES).result()


def test_index_scores_works_from_python(conf: Configuration) -> None:
    rank(conf, {0: 3.0})
    with Crawl(conf) as crawl:
        assert crawl.index(SCORES).count("IndexerStatus", "scores_changed") == 1
