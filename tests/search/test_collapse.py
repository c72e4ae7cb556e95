"""Collapsing: near copies as one hit, hostile texts, deep pages, indexes without sketches."""

import random

import pytest

from nutch2py.backends.analysis.minhash import SketchIndex, compute_sketch, distinct_words
from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError
from nutch2py.search.query.query_plan import SearchOptions
from nutch2py.search.results.collapse import NO_SKETCHES_MESSAGE, collapse_hits, read_collapse_mode
from nutch2py.search.results.search_results import Hit, ScoredDocument, SearchResult, format_for_terminal
from nutch2py.search.results.snippet import Snippet
from nutch2py.search.search_backends import open_search_backend
from tests.indexer.pages import doc
from tests.search.test_freshness import written

WORDS = [f"word{number}" for number in range(400)]


def text_of(seed, changed=0):
    """Return 200 words out of 400, some of them replaced by others."""
    words = random.Random(seed).sample(WORDS, 200)
    return " ".join([*words[changed:], *(f"other{seed}x{number}" for number in range(changed))])


def sketched(text):
    return compute_sketch(distinct_words(text), text)


def pages(*texts):
    return [
        doc(f"page{number:05}", url=f"http://h{number % 3}.org/{number}", host=f"h{number % 3}.org",
            title=f"Title {number}", content=f"needle {text}") for number, text in enumerate(texts)
    ]  # fmt: skip


def near(conf, start=0, rows=10, query="needle", **narrowed):
    options = SearchOptions(**{"collapse_mode": "near", **narrowed})
    return open_search_backend(conf).search(query, start, rows, options)


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        (text_of(1), text_of(1), True),
        (text_of(1), text_of(1, 10), True),
        (text_of(1), text_of(1, 100), False),
        (text_of(1), text_of(2), False),
        (text_of(1), f"{text_of(1)} {text_of(1)}", True),  # repeated words change nothing
        ("rain on monday", "rain on tuesday", False),  # with few words every word counts
        ("rain on monday", "Monday: rain on …", True),
        ("word " * 1_000_000, "word", True),
        ("这一章介绍历史，下一章介绍现状。", "这一章介绍历史，下一章介绍现状", True),
        ("这一章介绍历史，下一章介绍现状。", "这一章介绍历史，下一章介绍将来。", False),
        ("a\ud800b c", "c a\udfffb", True),  # half of a surrogate pair is no letter
    ],
)
def test_texts_sharing_most_words_are_near_duplicates(one, other, alike):
    known = SketchIndex()
    number = known.add(sketched(one))
    assert known.find(sketched(other)) == (number if alike else None)


def test_text_without_words_has_no_fingerprint():
    assert sketched("") == sketched(" … ") == ""
    assert len(sketched("one")) == 6 + 17
    assert len(sketched(text_of(1))) == len(sketched(" ".join(map(str, range(100_000))))) == 192 + 17


def test_first_hits_do_not_depend_on_collapse_depth():
    known, chance = SketchIndex(), random.Random(3)
    for seed in range(500):
        assert known.find(sketched(text_of(seed))) is None
        assert known.add(sketched(text_of(seed))) == seed
    for seed in chance.sample(range(500), 100):
        assert known.find(sketched(text_of(seed, chance.randint(0, 8)))) == seed


def test_near_duplicates_collapse_to_one_hit(tmp_path):
    conf = written(tmp_path / "index", pages(text_of(1), text_of(2), text_of(1, 3), text_of(1, 6), ""))
    found = near(conf)
    assert (found.total, found.collapsed_total, found.note) == (5, 3, "")
    one = next(hit for hit in found.hits if hit.more)
    assert one.more == len(one.others) == 2
    assert {one.url, *(url for _, url in one.others)} == {f"http://h{n % 3}.org/{n}" for n in (0, 2, 3)}
    assert all("terms" not in name for hit in found.hits for name in hit.fields)
    assert one.to_dict()["more"] == 2
    assert len(near(conf, collapse_mode="").hits) == 5
    assert len(near(conf, newest_first=True).hits) == len(near(conf, half_life_days=30.0).hits) == 3
    conf.set("index.search.collapse", "near")
    assert len(open_search_backend(conf).search("needle").hits) == 3
    conf.set("index.search.collapse", "host")
    found = open_search_backend(conf).search("needle")
    assert (len(found.hits), sum(hit.more for hit in found.hits)) == (3, 2)


def test_same_host_pages_sharing_menus_are_not_duplicates(tmp_path):
    menu = " ".join(WORDS)
    texts = {
        "one": "to install",
        "two": "to configure",
        "three": "to remove",
        "one ": "to install",
        "one 2.0": "to instal",
    }
    made = [
        doc(str(number), url=f"http://a.org/{number}", host="a.org", title=title, content=f"needle {menu} {text}")
        for number, (title, text) in enumerate(texts.items())
    ]
    made.append(doc("5", url="http://b.org/", host="b.org", title="Mirror", content=f"needle {menu} to configure"))
    made.append(doc("6", url="http://a.org/", host="a.org", title="", content=f"needle {menu} {menu} to remove"))
    found = near(written(tmp_path / "index", made))
    assert sorted(hit.more for hit in found.hits) == [0, 0, 1, 2]


def test_ten_thousand_copies_hide_no_other_hit(tmp_path):
    """A text that all pages share is one hit with its number; other hits follow."""
    texts = ["needle needle needle and no more"] * 10_000 + [text_of(seed) for seed in range(25)]
    conf = written(tmp_path / "index", pages(*texts))
    found = near(conf)
    assert (found.total, found.hits[0].more, len(found.hits[0].others)) == (10_025, 9_999, 10)
    assert found.collapsed_total == 26
    assert [len(near(conf, start).hits) for start in (0, 10, 20, 30, 100_000)] == [10, 10, 6, 0, 0]
    ids = [hit.id for start in (0, 10, 20) for hit in near(conf, start).hits]
    assert len(set(ids)) == 26
    counted = open_search_backend(conf).search("needle", with_facets=True).facets["host"]
    assert sum(number for _, number in counted) == 10_025
    conf.set("index.search.collapse", "near")
    walked, cursor = 0, "*"  # a cursor returns every page
    while cursor:
        result = open_search_backend(conf).search("needle", 0, 1_000, cursor=cursor)
        cursor = result.cursor
        walked += len(result.hits)
    assert walked == 10_025


def test_collapse_inspects_at_most_thousand_hits():
    asked = []

    def find(first, rows, without):
        asked.append((first, rows))
        return 50_000, [ScoredDocument(1.0, {"id": str(n)}, sketched(text_of(n))) for n in range(first, first + rows)]

    found = collapse_hits(find, "near", 995, 10)
    assert asked == [(first, 100) for first in range(0, 1000, 100)]
    assert (found.total, found.collapsed_total, len(found.hits)) == (50_000, 1_000, 5)
    assert collapse_hits(lambda first, rows, without: (0, []), "near", 0, 10) == (0, [], 0, "")


def test_older_index_explains_missing_collapse():
    def find(first, rows, without):
        return 2, [ScoredDocument(2.0, {"id": "a", "host": "h"}), ScoredDocument(1.0, {"id": "b", "host": "h"})][
            first : first + rows
        ]

    found = collapse_hits(find, "near", 0, 10)
    assert ([hit.fields["id"] for hit in found.hits], found.note) == (["a", "b"], NO_SKETCHES_MESSAGE)
    found = collapse_hits(find, "host", 0, 10)
    assert ([(hit.fields["id"], hit.more) for hit in found.hits], found.note) == ([("a", 1)], "")


def test_fingerprints_can_be_disabled(tmp_path):
    conf = written(tmp_path / "index", pages(text_of(1), text_of(1)), **{"index.sketches": "false"})
    found = near(conf)
    assert ([hit.sketch for hit in found.hits], found.note) == (["", ""], NO_SKETCHES_MESSAGE)


def test_missing_collapse_reason_is_shown_below_hits():
    hit = Hit("a", "http://a.org/", Snippet("A", ()), Snippet("b", ()), 1.0, {}, more=2)
    result = SearchResult("q", 0, 3, [hit], 1.0, 1, NO_SKETCHES_MESSAGE)
    assert format_for_terminal(result).splitlines()[-3:] == ["   2 more like this", "", NO_SKETCHES_MESSAGE]
    assert (result.to_dict()["note"], result.to_dict()["hits"][0]["more"]) == (NO_SKETCHES_MESSAGE, 2)


def test_unknown_collapse_is_rejected():
    with pytest.raises(ConfigurationError, match="none, host or near"):
        read_collapse_mode(Configuration({"index.search.collapse": "site"}))
