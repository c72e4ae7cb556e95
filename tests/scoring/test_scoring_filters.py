from __future__ import annotations

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError, InputError
from nutch2py.interfaces import ScoredLink
from nutch2py.records.webpage import Mark, MetadataKey, WebPage
from nutch2py.scoring.depth_scoring_filter import MAX_DEPTH_KEY, DepthScoringFilter
from nutch2py.scoring.link_analysis_scoring_filter import LinkAnalysisScoringFilter
from nutch2py.scoring.scoring_filters import ScoringFilters

URL = "http://a.com/"
LINK = ScoredLink("http://b.com/", "b", 0.0, 2)


def page_at(distance: int | None, score: float = 1.0) -> WebPage:
    page = WebPage()
    page.score = score
    if distance is not None:
        page.markers[Mark.DISTANCE] = str(distance)
    return page


def depth(**properties: str) -> DepthScoringFilter:
    return DepthScoringFilter(Configuration({f"scoring.depth.{k.replace('_', '.')}": v for k, v in properties.items()}))


def test_opic_is_enabled_by_default(conf: Configuration) -> None:
    filters = ScoringFilters(conf)
    assert [type(each).__name__ for each in filters.filters] == ["OPICScoringFilter"]
    assert filters.fields == {WebPage.score, WebPage.metadata}
    assert filters.generator_fields == {WebPage.score}


def test_filters_run_in_configured_order(conf: Configuration) -> None:
    conf.set("plugin.includes", "scoring-(opic|depth)")
    conf.set("scoring.filter.order", "org.apache.nutch.scoring.opic.OPICScoringFilter scoring-depth")
    assert [type(each).__name__ for each in ScoringFilters(conf).filters] == ["OPICScoringFilter", "DepthScoringFilter"]


def test_depth_before_opic_distributes_cash_to_remaining_links(conf: Configuration) -> None:
    conf.set("plugin.includes", "scoring-(opic|depth)")
    conf.set("scoring.filter.order", "scoring-depth scoring-opic")
    conf.set("scoring.depth.max", 2)
    filters = ScoringFilters(conf)
    near, far = page_at(0), page_at(1)
    for page in (near, far):
        filters.injected_score(URL, page)
    assert [link.score for link in filters.distribute(URL, near, [LINK], 1)] == [1.0]
    assert filters.distribute(URL, far, [LINK], 1) == []
    assert filters.generator_sort_value(URL, near, 1.0) == 2.0


def test_without_filters_scores_are_unchanged(conf: Configuration) -> None:
    conf.set("plugin.includes", "none")
    filters, page = ScoringFilters(conf), page_at(0, 0.0)
    filters.injected_score(URL, page)
    filters.update_score(URL, page, [LINK])
    assert MetadataKey.CASH not in page.metadata
    assert filters.distribute(URL, page, [LINK], 1) == [LINK]
    assert filters.indexer_score(URL, page, 1.0) == filters.generator_sort_value(URL, page, 1.0) == 1.0


def test_scoring_link_uses_scores_of_table() -> None:
    scoring = LinkAnalysisScoringFilter(Configuration({"link.analyze.normalize.score": "0.5"}))
    page = page_at(0, 4.0)
    scoring.injected_score(URL, page)
    scoring.update_score(URL, page, [LINK])
    assert scoring.distribute(URL, page, [LINK], 1) == [LINK]
    assert page.score == 4.0
    assert scoring.indexer_score(URL, page, 7.0) == 2.0
    assert scoring.generator_sort_value(URL, page, 2.0) == 8.0
    scoring.initial_score(URL, page)
    assert page.score == 0.0


@pytest.mark.parametrize(("distance", "kept"), [(0, True), (1, True), (2, False), (9, False), (None, False)])
def test_links_are_followed_up_to_max_depth(distance: int | None, kept: bool) -> None:
    assert depth(max="3").distribute(URL, page_at(distance), [LINK], 1) == ([LINK] if kept else [])


def test_sitemap_page_counts_as_seed() -> None:
    page = page_at(None)
    page.markers[Mark.INJECT] = "s"
    assert depth(max="2").distribute(URL, page, [LINK], 1) == [LINK]


def test_seed_depth_overrides_default() -> None:
    page = page_at(0)
    page.metadata[MAX_DEPTH_KEY] = b"1"
    depth().injected_score(URL, page)
    assert depth().distribute(URL, page, [LINK], 1) == []


def test_malformed_seed_depth_is_rejected() -> None:
    page = page_at(0)
    page.metadata[MAX_DEPTH_KEY] = b"deep"
    with pytest.raises(InputError, match="_maxdepth_ is 'deep'"):
        depth().injected_score(URL, page)


def test_depth_override_pattern_is_applied() -> None:
    scoring = depth(max="1", override_pattern="a[.]com", max_override="5")
    assert scoring.distribute(URL, page_at(3), [LINK], 1) == [LINK]
    assert scoring.distribute("http://c.com/", page_at(3), [LINK], 1) == []


def test_invalid_depth_pattern_is_named_in_error() -> None:
    with pytest.raises(ConfigurationError, match=r"scoring\.depth\.override\.pattern"):
        depth(override_pattern="(")


def test_shallow_pages_sort_first_and_unknown_depth_last() -> None:
    values = [depth(max="3").generator_sort_value(URL, page_at(d), 1.0) for d in (0, 1, 2, None)]
    assert values == [3.0, 2.0, 1.0, 1.0]
