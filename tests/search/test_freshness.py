"""Freshness: the formula, hostile dates and half-lives, and that no better page is missed."""

import math
import random
import time
from datetime import UTC, datetime

import pytest

from nutch2py.backends.embedded_index import index_directory
from nutch2py.backends.embedded_index.index_directory import SCHEMA_VERSION
from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError, InputError
from nutch2py.indexer.writers.embedded_writer import EmbeddedIndexWriter
from nutch2py.search.engines.embedded_searcher import EmbeddedSearcher
from nutch2py.search.query.freshness import DAY_SECONDS, Freshness, FreshnessSettings
from nutch2py.search.query.query_plan import SearchOptions
from nutch2py.search.search_backends import open_search_backend
from tests.indexer.pages import doc


def written(path, documents, **properties):
    """Return a configuration with an embedded index of the documents."""
    conf = Configuration.load(overrides={"index.embedded.path": str(path), **properties})
    writer = EmbeddedIndexWriter(conf)
    writer.open(conf, {})
    for document in documents:
        writer.write(document)
    writer.close()
    return conf


def ago(days):
    return datetime.fromtimestamp(time.time() - days * DAY_SECONDS, UTC).isoformat()


def page(name, content="needle in hay", **fields):
    return doc(name, url=f"http://a.org/{name}", content=content, **fields)


def names(conf, query="needle", **narrowed):
    return [hit.id for hit in open_search_backend(conf).search(query, 0, 100, SearchOptions(**narrowed)).hits]


def test_freshness_boosts_newer_pages_only_when_requested(tmp_path):
    pages = [page("old", "needle needle in hay", date=ago(900)), page("new", date=ago(2)), page("middle", date=ago(40))]
    conf = written(tmp_path / "index", pages)
    assert names(conf)[0] == "old"
    assert names(conf, half_life_days=30.0) == ["new", "middle", "old"]
    conf.set("index.search.freshness", "30")
    assert names(conf) == ["new", "middle", "old"]
    assert names(conf, half_life_days=0.0)[0] == "old"
    explanation = open_search_backend(conf).explain("needle", "middle")
    assert explanation.startswith("score = relevance × weight × freshness\nfreshness: 0.69")
    conf.set("index.search.freshness.share", "0")
    assert names(conf)[0] == "old"


def test_dates_outside_calendar_get_no_boost(tmp_path):
    hostile = ["0000-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "1" + "0" * 18, "-1", "soon", "",
               "0001-01-01T00:00:00", "9999-12-31T23:59:59-23:59", "NaN"]  # fmt: skip
    pages = [page(f"page{number}", date=date, tstamp="none") for number, date in enumerate(hostile)]
    conf = written(tmp_path / "index", [*pages, page("new", "needle somewhere in a lot of hay", date=ago(0))])
    assert names(conf)[-1] == "new"
    for half_life in (0.0001, 1.0, 30.0):
        found = names(conf, half_life_days=half_life)
        assert (found[0], len(found)) == ("new", 11)
    assert len(names(conf, half_life_days=36_500.0)) == 11


@pytest.mark.parametrize("days", [-1.0, math.nan, math.inf, 36_501.0])
def test_invalid_half_life_is_rejected(days):
    with pytest.raises(InputError, match="half-life"):
        FreshnessSettings(Configuration()).resolve(days)
    with pytest.raises(ConfigurationError, match=r"index\.search\.freshness"):
        FreshnessSettings(Configuration({"index.search.freshness": str(days)}))


def test_cursor_keeps_its_start_time():
    aging = FreshnessSettings(Configuration({"index.search.freshness": "30"}))
    assert aging.resolve(None, "1700000000~20") == (Freshness(30 * DAY_SECONDS, 0.5, 1_700_000_000), "20")
    assert aging.resolve(0.0, "20") == (None, "20")
    for cursor in ("20", "~20", "x~20", f"{'9' * 13}~20"):
        with pytest.raises(InputError, match="cursor"):
            aging.resolve(None, cursor)


@pytest.mark.parametrize("layout", range(1, SCHEMA_VERSION + 1))
def test_cursor_walks_index_of_any_layout(layout, tmp_path, monkeypatch):
    """With freshness, and in an index of 0.1.0, which has no dates, without."""
    monkeypatch.setattr(index_directory, "SCHEMA_VERSION", layout)
    pages = [page(f"page{number}", date=ago(number)) for number in range(7)]
    conf = written(tmp_path / "index", pages, **{"index.search.freshness": "30"})
    monkeypatch.undo()
    assert EmbeddedSearcher(conf).index_dir.layout == layout
    index, cursor, found = open_search_backend(conf), "*", []
    while cursor:
        result = index.search("needle", 0, 2, cursor=cursor)
        cursor = result.cursor
        found += [hit.id for hit in result.hits]
    assert sorted(found) == [f"page{number}" for number in range(7)]
    with pytest.raises(InputError, match="half-life"):
        index.search("needle", 0, 2, SearchOptions(half_life_days=-1.0))


def test_freshness_weighs_every_document(tmp_path):
    """Among a thousand matches the newest may have any rank by relevance alone."""
    chance = random.Random(7)
    ages = [chance.choice([1, 50, 400, 3000]) for _ in range(1000)]
    pages = [
        page(f"page{number:03}", f"needle {'needle ' * chance.randint(0, 5)}{'hay ' * chance.randint(1, 40)}",
             date=ago(age)) for number, age in enumerate(ages)
    ]  # fmt: skip
    conf = written(tmp_path / "index", pages)
    searcher, (fresh, _) = EmbeddedSearcher(conf), FreshnessSettings(conf).resolve(20.0)
    plain = searcher.search("needle", 0, 1000).hits
    scores = sorted(f.score * fresh.factor(int(datetime.fromisoformat(f.fields["date"]).timestamp())) for f in plain)
    for start, rows in ((0, 10), (195, 10), (500, 300), (990, 50)):
        found = searcher.search("needle", start, rows, SearchOptions(half_life_days=20.0))
        assert found.total == 1000
        assert [hit.score for hit in found.hits] == pytest.approx(scores[::-1][start : start + rows], rel=1e-5)
    assert searcher.search("needle", 2000, 10, SearchOptions(half_life_days=20.0)).hits == []
    found = searcher.search("needle", 0, 0, SearchOptions(half_life_days=20.0))
    assert (found.total, found.hits) == (1000, [])
