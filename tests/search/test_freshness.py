"""Freshness: the formula, hostile dates and half-lives, and that no better page is left behind."""

import math
import random
import time
from datetime import UTC, datetime

import pytest

from nutch2py.backends import index_folder
from nutch2py.backends.index_folder import SCHEMA_VERSION
from nutch2py.conf import Configuration
from nutch2py.errors import ConfigurationError, InputError
from nutch2py.indexer.writers.embedded_writer import EmbeddedIndexWriter
from nutch2py.search.freshness import DAY, Aging, Freshness
from nutch2py.search.plan import Narrowed
from nutch2py.search.search_backends import backend
from nutch2py.search.searcher import EmbeddedSearcher
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
    return datetime.fromtimestamp(time.time() - days * DAY, UTC).isoformat()


def page(name, content="needle in hay", **fields):
    return doc(name, url=f"http://a.org/{name}", content=content, **fields)


def names(conf, query="needle", **narrowed):
    return [hit.id for hit in backend(conf).walk(query, Narrowed(**narrowed), 0, 100)[0].hits]


def test_newer_pages_win_when_it_is_asked_for_only(tmp_path):
    pages = [page("old", "needle needle in hay", date=ago(900)), page("new", date=ago(2)), page("middle", date=ago(40))]
    conf = written(tmp_path / "index", pages)
    assert names(conf)[0] == "old"
    assert names(conf, half_life=30.0) == ["new", "middle", "old"]
    conf.set("index.search.freshness", "30")
    assert names(conf) == ["new", "middle", "old"]
    assert names(conf, half_life=0.0)[0] == "old"
    told = backend(conf).explain("needle", "middle")
    assert told.startswith("score = relevance × weight × freshness\nfreshness: 0.69")
    conf.set("index.search.freshness.share", "0")
    assert names(conf)[0] == "old"


def test_dates_that_no_calendar_holds_gain_nothing(tmp_path):
    hostile = ["0000-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "1" + "0" * 18, "-1", "soon", "",
               "0001-01-01T00:00:00", "9999-12-31T23:59:59-23:59", "NaN"]  # fmt: skip
    pages = [page(f"page{number}", date=date, tstamp="none") for number, date in enumerate(hostile)]
    conf = written(tmp_path / "index", [*pages, page("new", "needle somewhere in a lot of hay", date=ago(0))])
    assert names(conf)[-1] == "new"
    for half_life in (0.0001, 1.0, 30.0):
        found = names(conf, half_life=half_life)
        assert (found[0], len(found)) == ("new", 11)
    assert len(names(conf, half_life=36_500.0)) == 11


@pytest.mark.parametrize("days", [-1.0, math.nan, math.inf, 36_501.0])
def test_a_half_life_that_is_none_is_refused(days):
    with pytest.raises(InputError, match="half-life"):
        Aging(Configuration()).at(days)
    with pytest.raises(ConfigurationError, match=r"index\.search\.freshness"):
        Aging(Configuration({"index.search.freshness": str(days)}))


def test_a_cursor_keeps_the_time_at_which_it_began():
    aging = Aging(Configuration({"index.search.freshness": "30"}))
    assert aging.at(None, "1700000000~20") == (Freshness(30 * DAY, 0.5, 1_700_000_000), "20")
    assert aging.at(0.0, "20") == (None, "20")
    for cursor in ("20", "~20", "x~20", f"{'9' * 13}~20"):
        with pytest.raises(InputError, match="cursor"):
            aging.at(None, cursor)


@pytest.mark.parametrize("layout", range(1, SCHEMA_VERSION + 1))
def test_an_index_of_any_layout_is_walked_by_its_cursors(layout, tmp_path, monkeypatch):
    """Where freshness counts, and in one of 0.1.0, which has no dates, where it cannot."""
    monkeypatch.setattr(index_folder, "SCHEMA_VERSION", layout)
    pages = [page(f"page{number}", date=ago(number)) for number in range(7)]
    conf = written(tmp_path / "index", pages, **{"index.search.freshness": "30"})
    monkeypatch.undo()
    assert EmbeddedSearcher(conf).folder.layout == layout
    index, cursor, found = backend(conf), "*", []
    while cursor:
        result, cursor = index.walk("needle", Narrowed(), 0, 2, cursor)
        found += [hit.id for hit in result.hits]
    assert sorted(found) == [f"page{number}" for number in range(7)]
    with pytest.raises(InputError, match="half-life"):
        index.walk("needle", Narrowed(half_life=-1.0), 0, 2)


def test_every_document_is_weighed_not_the_best_ones_only(tmp_path):
    """Among a thousand that are found, the newest stand wherever relevance alone puts them."""
    chance = random.Random(7)
    ages = [chance.choice([1, 50, 400, 3000]) for _ in range(1000)]
    pages = [
        page(f"page{number:03}", f"needle {'needle ' * chance.randint(0, 5)}{'hay ' * chance.randint(1, 40)}",
             date=ago(age)) for number, age in enumerate(ages)
    ]  # fmt: skip
    conf = written(tmp_path / "index", pages)
    searcher, (fresh, _) = EmbeddedSearcher(conf), Aging(conf).at(20.0)
    plain = searcher.search("needle", 0, 1000)[1]
    scores = sorted(f.score * fresh.factor(int(datetime.fromisoformat(f.fields["date"]).timestamp())) for f in plain)
    for start, rows in ((0, 10), (195, 10), (500, 300), (990, 50)):
        total, hits, _ = searcher.search("needle", start, rows, Narrowed(half_life=20.0))
        assert total == 1000
        assert [hit.score for hit in hits] == pytest.approx(scores[::-1][start : start + rows], rel=1e-5)
    assert searcher.search("needle", 2000, 10, Narrowed(half_life=20.0))[1] == []
    assert searcher.search("needle", 0, 0, Narrowed(half_life=20.0))[:2] == (1000, [])
