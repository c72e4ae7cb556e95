"""Collapse: near copies of texts as one hit, hostile texts, deep pages, indexes without sketches."""

import random

import pytest

from nutch2py.backends.sketch import Sketches, sketch_of, words_of
from nutch2py.conf import Configuration
from nutch2py.errors import ConfigurationError
from nutch2py.search.collapse import NO_SKETCHES, collapse_of, collapsed
from nutch2py.search.plan import Narrowed
from nutch2py.search.results import Found, Hit, SearchResult, render
from nutch2py.search.search_backends import backend
from nutch2py.search.snippet import Snippet
from tests.indexer.pages import doc
from tests.search.test_freshness import written

WORDS = [f"word{number}" for number in range(400)]


def text_of(seed, changed=0):
    """Return 200 words out of 400, some of them replaced by others."""
    words = random.Random(seed).sample(WORDS, 200)
    return " ".join([*words[changed:], *(f"other{seed}x{number}" for number in range(changed))])


def sketched(text):
    return sketch_of(words_of(text), text)


def pages(*texts):
    return [
        doc(f"page{number:05}", url=f"http://h{number % 3}.org/{number}", host=f"h{number % 3}.org",
            title=f"Title {number}", content=f"needle {text}") for number, text in enumerate(texts)
    ]  # fmt: skip


def near(conf, start=0, rows=10, query="needle", **narrowed):
    return backend(conf).walk(query, Narrowed(**{"collapse": "near", **narrowed}), start, rows)[0]


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        (text_of(1), text_of(1), True),
        (text_of(1), text_of(1, 10), True),
        (text_of(1), text_of(1, 100), False),
        (text_of(1), text_of(2), False),
        (text_of(1), f"{text_of(1)} {text_of(1)}", True),  # a word that is repeated makes no other page
        ("rain on monday", "rain on tuesday", False),  # of few words each one counts
        ("rain on monday", "Monday: rain on …", True),
        ("word " * 1_000_000, "word", True),
        ("这一章介绍历史，下一章介绍现状。", "这一章介绍历史，下一章介绍现状", True),
        ("这一章介绍历史，下一章介绍现状。", "这一章介绍历史，下一章介绍将来。", False),
        ("a\ud800b c", "c a\udfffb", True),  # half of a pair is no letter
    ],
)
def test_texts_are_the_same_when_most_of_their_words_are(one, other, alike):
    known = Sketches()
    number = known.keep(sketched(one))
    assert known.find(sketched(other)) == (number if alike else None)


def test_a_text_without_words_has_no_sketch():
    assert sketched("") == sketched(" … ") == ""
    assert len(sketched("one")) == 6 + 17
    assert len(sketched(text_of(1))) == len(sketched(" ".join(map(str, range(100_000))))) == 192 + 17


def test_what_is_found_first_does_not_hang_on_how_many_are_known():
    known, chance = Sketches(), random.Random(3)
    for seed in range(500):
        assert known.find(sketched(text_of(seed))) is None
        assert known.keep(sketched(text_of(seed))) == seed
    for seed in chance.sample(range(500), 100):
        assert known.find(sketched(text_of(seed, chance.randint(0, 8)))) == seed


def test_near_copies_are_one_hit_that_names_the_others(tmp_path):
    conf = written(tmp_path / "index", pages(text_of(1), text_of(2), text_of(1, 3), text_of(1, 6), ""))
    found = near(conf)
    assert (found.total, found.shown, found.note) == (5, 3, "")
    one = next(hit for hit in found.hits if hit.more)
    assert one.more == len(one.others) == 2
    assert {one.url, *(url for _, url in one.others)} == {f"http://h{n % 3}.org/{n}" for n in (0, 2, 3)}
    assert all("terms" not in name for hit in found.hits for name in hit.fields)
    assert one.to_dict()["more"] == 2
    assert len(near(conf, collapse="").hits) == 5
    assert len(near(conf, newest=True).hits) == len(near(conf, half_life=30.0).hits) == 3
    conf.set("index.search.collapse", "near")
    assert len(backend(conf).search("needle", {}, 0, 10).hits) == 3
    conf.set("index.search.collapse", "host")
    found = backend(conf).search("needle", {}, 0, 10)
    assert (len(found.hits), sum(hit.more for hit in found.hits)) == (3, 2)


def test_pages_of_one_host_that_share_its_menus_are_not_copies(tmp_path):
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


def test_ten_thousand_copies_hide_nothing(tmp_path):
    """A text that everybody has is one hit, with its number; what stands behind it is shown."""
    texts = ["needle needle needle and no more"] * 10_000 + [text_of(seed) for seed in range(25)]
    conf = written(tmp_path / "index", pages(*texts))
    found = near(conf)
    assert (found.total, found.hits[0].more, len(found.hits[0].others)) == (10_025, 9_999, 10)
    assert found.shown == 26
    assert [len(near(conf, start).hits) for start in (0, 10, 20, 30, 100_000)] == [10, 10, 6, 0, 0]
    ids = [hit.id for start in (0, 10, 20) for hit in near(conf, start).hits]
    assert len(set(ids)) == 26
    counted = backend(conf).facets("needle", {})["host"]
    assert sum(number for _, number in counted) == 10_025
    conf.set("index.search.collapse", "near")
    walked, cursor = 0, "*"  # a cursor gives every page
    while cursor:
        result, cursor = backend(conf).walk("needle", Narrowed(), 0, 1_000, cursor)
        walked += len(result.hits)
    assert walked == 10_025


def test_a_thousand_hits_are_looked_at_and_no_more():
    asked = []

    def find(begin, rows, without):
        asked.append((begin, rows))
        return 50_000, [Found(1.0, {"id": str(n)}, sketched(text_of(n))) for n in range(begin, begin + rows)]

    found = collapsed(find, "near", 995, 10)
    assert asked == [(begin, 100) for begin in range(0, 1000, 100)]
    assert (found.total, found.shown, len(found.hits)) == (50_000, 1_000, 5)
    assert collapsed(lambda begin, rows, without: (0, []), "near", 0, 10) == (0, [], 0, "")


def test_an_index_of_before_says_why_nothing_is_collapsed():
    def find(begin, rows, without):
        return 2, [Found(2.0, {"id": "a", "host": "h"}), Found(1.0, {"id": "b", "host": "h"})][begin : begin + rows]

    found = collapsed(find, "near", 0, 10)
    assert ([hit.fields["id"] for hit in found.hits], found.note) == (["a", "b"], NO_SKETCHES)
    found = collapsed(find, "host", 0, 10)
    assert ([(hit.fields["id"], hit.more) for hit in found.hits], found.note) == ([("a", 1)], "")


def test_sketches_can_be_left_out(tmp_path):
    conf = written(tmp_path / "index", pages(text_of(1), text_of(1)), **{"index.sketches": "false"})
    found = near(conf)
    assert ([hit.near for hit in found.hits], found.note) == (["", ""], NO_SKETCHES)


def test_why_nothing_is_collapsed_stands_below_the_hits():
    hit = Hit("a", "http://a.org/", Snippet("A", ()), Snippet("b", ()), 1.0, {}, more=2)
    result = SearchResult("q", 0, 3, [hit], 1.0, 1, NO_SKETCHES)
    assert render(result).splitlines()[-3:] == ["   2 more like this", "", NO_SKETCHES]
    assert (result.to_dict()["note"], result.to_dict()["hits"][0]["more"]) == (NO_SKETCHES, 2)


def test_a_collapse_that_there_is_not_is_refused():
    with pytest.raises(ConfigurationError, match="none, host or near"):
        collapse_of(Configuration({"index.search.collapse": "site"}))
