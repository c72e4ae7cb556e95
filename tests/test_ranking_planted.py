"""A web with planted authority, crawled and indexed: the value of links with the defaults."""

import re

import pytest

from bench.ranking.choice import TEXT, default
from bench.ranking.collection import HALVES
from bench.ranking.crawl import Crawl
from bench.ranking.measured import PRECISION, QUALITY, Measured, Way, crawled, total
from bench.ranking.planted import OFFICIAL, WEBS, Web, planted
from bench.ranking.variants import agrees

SMALL = Web(seed=11, topics=6, citing=0.2, reprints=20, sections=6)
GAIN, OF_NAVIGATION = 0.2, 0.08
"""Gain in quality from text alone to the defaults, and from PageRank with navigation links to the defaults."""


@pytest.mark.parametrize("name", WEBS)
def test_generated_web_is_deterministic_and_reachable(name):
    made, again = planted(name, WEBS[name]), planted(name, WEBS[name])
    texts = {url: render() for url, render in made.pages.items()}
    assert texts == {url: render() for url, render in again.pages.items()}
    reached, todo = set(made.starts), [*made.starts]
    while todo:
        new = set(re.findall('href="([^"]*)"', texts[todo.pop()])) - reached
        reached |= new
        todo += new
    assert reached == set(texts)


@pytest.mark.parametrize("name", WEBS)
def test_every_query_has_sixty_relevant_and_two_official_pages(name):
    made = planted(name, WEBS[name])
    assert made.fewest_relevant() >= 60
    for query in made.all_queries:
        known = made.judgements[query]
        assert [*known.values()].count(OFFICIAL) == 2
        assert known.keys() <= made.pages.keys()


@pytest.fixture(scope="module")
def small(tmp_path_factory) -> Measured:
    """Yield a small crawled web."""
    collection = planted("small", SMALL)
    assert len(collection.pages) < 400
    return crawled(collection, Crawl(tmp_path_factory.mktemp("planted"), collection))


def test_defaults_rank_official_pages_before_reprints(small):
    for half in HALVES:
        before, after = (total(small.scores(way, half), QUALITY) for way in (TEXT, default()))
        assert after >= (1 + GAIN) * before
        assert small.share(default(), half, PRECISION) >= 0.89


def test_ranking_without_navigation_links_improves_official_pages(small):
    default_ = default().weight
    kept = Way(weight=default_._replace(formula=default_.formula._replace(navigation=1.0)))
    for half in HALVES:
        before, after = (total(small.scores(way, half), QUALITY) for way in (kept, default()))
        assert after >= (1 + OF_NAVIGATION) * before


def test_index_written_with_defaults_has_this_order(small):
    expected = small.ranking(default())
    assert agrees(small.crawl, {}, expected) == len(expected)
