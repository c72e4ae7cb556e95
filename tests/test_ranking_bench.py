"""bench.ranking: conversion of repositories to a small web, and comparison of its rankings."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import ProxyHandler, build_opener

import pytest

from bench.ranking import tables
from bench.ranking.__main__ import known
from bench.ranking.choice import TEXT, tried
from bench.ranking.collection import HALVES, Collection
from bench.ranking.copies import COPIES, OFFICIAL, with_copies
from bench.ranking.crawl import Crawl, served
from bench.ranking.english import START
from bench.ranking.english import collection as cranfield
from bench.ranking.markdown import rendered, title_of, value_of
from bench.ranking.measured import PRECISION, QUALITY, Measured, Way
from bench.ranking.ranks import USUAL, Formula, ranks_of
from bench.ranking.sites import DATA, SOURCES, Sites, documents, judged
from bench.ranking.variants import Matches, Text, Weight, ranking, same_order
from nutch2py.errors import InputError
from nutch2py.jobs.pagerank.graph_links import PageLinks
from nutch2py.search.evaluation.ranking_metrics import Judgement, read_judgements, read_queries

MDN_FOLDER = "fiji-flo+translated-content-rendered/files/zh-cn"
FILES = {
    f"{MDN_FOLDER}/_redirects.txt": "# FROM-URL\tTO-URL\n/zh-CN/docs/Closure\t/zh-CN/docs/Web/JavaScript/Closures\n",
    f"{MDN_FOLDER}/web/javascript/closures/index.html": (
        "---\ntitle: 闭包\nslug: Web/JavaScript/Closures\n---\n<p><a href='/zh-CN/docs/Web/CSS'>CSS</a>"
        '<a href="/zh-CN/docs/web/javascript/guide#x">指南</a>'
    ),
    f"{MDN_FOLDER}/web/javascript/guide/index.html": (
        "---\ntitle: >-\n  指\n  南\nslug: 'Web/JavaScript/Guide'\n---\n<p>x"
    ),
    f"{MDN_FOLDER}/mozilla/firefox/index.html": "---\ntitle: Firefox\nslug: Mozilla/Firefox\n---\n",
    "javascript-tutorial+zh.javascript.info/1-js/02-x/03-closure/article.md": (
        "# 变量作用域，闭包\n\n见 <info:var>、[闭包](mdn:Closure) 和 [绑定](info:bind#that)。\n"
    ),
    "javascript-tutorial+zh.javascript.info/1-js/02-x/04-var/article.md": "# 老旧的 var\n",
    "reactjs+zh-hans.react.dev/src/content/learn/index.md": "---\ntitle: 快速入门\n---\n[state](/learn/state)\n",
    "reactjs+zh-hans.react.dev/src/content/learn/state.md": (
        "---\ntitle: State\n---\n[闭包](https://developer.mozilla.org/en-US/docs/Web/JavaScript/Closures)\n"
        "[回去](./) `[码](/learn)`\n"
    ),
    "ruanyf+es6tutorial/docs/let.md": "# let 和 const 命令\n\n[Promise](#docs/promise) [上](#top)\n",
    "ruanyf+es6tutorial/docs/promise.md": "# Promise 对象\n",
}


@pytest.fixture
def sites(tmp_path):
    for name, text in FILES.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return Sites(tmp_path)


def links(sites, url):
    return set(re.findall(r'href="([^"]*)"', documents(sites)[url]()))


class TestMarkdown:
    @pytest.mark.parametrize(
        ("text", "html"),
        [
            ("# 题 `a<b` {#x}", "<h1>题 <code>a&lt;b</code></h1>"),
            ("```js\n[a](b)\n```\n", "<pre>[a](b)</pre>"),
            ("````smart\n```js\n1\n```\n[a](b)\n````", '<pre>1</pre>\n<a href="B">a</a>'),
            ('[a](b "t") **c** [d][e]\n\n[e]: f', '<a href="B">a</a> c <a href="F">d</a>\n<p>'),
            ("`[a](b)` ![图](c) <x-y z>", "<code>[a](b)</code> 图 <x-y z>"),
            ("- [a](b_(c))", '<p><a href="B_(C)">a</a>'),
        ],
    )
    def test_markdown_links_are_found(self, text, html):
        assert rendered(text, str.upper) == html

    def test_front_matter_quoted_or_folded_is_parsed(self):
        assert value_of("slug", "---\nslug: 'a''b'\n---\n") == "a'b"
        assert value_of("title", "---\ntitle: >-\n  a\n  b\nslug: c\n---\n") == "a b"
        assert value_of("title", "title: a") == ""

    def test_title_without_front_matter_is_first_heading(self):
        assert title_of("text\n\n## `Array` 的 [方法](x) {#methods}\n") == "Array 的 方法"


class TestSites:
    def test_pages_keep_public_addresses(self, sites):
        assert set(sites.pages) == {
            "http://developer.mozilla.org/zh-CN/docs/Web/JavaScript/Closures",
            "http://developer.mozilla.org/zh-CN/docs/Web/JavaScript/Guide",
            "http://zh.javascript.info/closure",
            "http://zh.javascript.info/var",
            "http://zh-hans.react.dev/learn",
            "http://zh-hans.react.dev/learn/state",
            "http://es6.ruanyifeng.com/docs/let",
            "http://es6.ruanyifeng.com/docs/promise",
        }

    def test_link_to_other_language_resolves_to_chinese_page(self, sites):
        mdn = "http://developer.mozilla.org/zh-CN/docs/Web/JavaScript/Closures"
        assert {mdn, "http://zh-hans.react.dev/learn"} <= links(sites, "http://zh-hans.react.dev/learn/state")

    def test_link_outside_collection_keeps_its_address(self, sites):
        found = links(sites, "http://developer.mozilla.org/zh-CN/docs/Web/JavaScript/Closures")
        assert "https://developer.mozilla.org/zh-CN/docs/Web/CSS" in found
        assert "http://developer.mozilla.org/zh-CN/docs/Web/JavaScript/Guide" in found  # whatever its case

    def test_short_links_and_moved_pages_are_resolved(self, sites):
        found = links(sites, "http://zh.javascript.info/closure")
        assert {"http://zh.javascript.info/var", "https://zh.javascript.info/bind"} <= found
        assert any(link.startswith("https://developer.mozilla.org/docs/Web/Closure") for link in found)
        page = sites.pages["http://zh.javascript.info/closure"]
        moved = sites.resolve(page, "https://developer.mozilla.org/zh-CN/docs/Closure")
        assert moved == "http://developer.mozilla.org/zh-CN/docs/Web/JavaScript/Closures"

    def test_page_fragments_become_pages(self, sites):
        assert "http://es6.ruanyifeng.com/docs/promise" in links(sites, "http://es6.ruanyifeng.com/docs/let")

    def test_every_page_is_reachable_from_seeds(self, sites):
        pages = documents(sites)
        reached = {f"http://{source.host}/" for source in SOURCES}
        todo = [*reached]
        while todo:
            new = (links(sites, todo.pop()) & set(pages)) - reached
            reached |= new
            todo += new
        assert reached == set(pages)

    def test_proxy_serves_the_sites(self, sites):
        with served(documents(sites)) as port:
            opener = build_opener(ProxyHandler({"http": f"http://127.0.0.1:{port}"}))
            with opener.open("http://es6.ruanyifeng.com/docs/let") as answer:
                assert "<h1>let 和 const 命令</h1>" in answer.read().decode()
            with pytest.raises(HTTPError, match="404"):
                opener.open("http://es6.ruanyifeng.com/docs/none")


class TestRanking:
    MATCHES = Matches.of([("c", 2.0, 0.0), ("a", 4.0, 1.0), ("b", 3.0, 4.0)])

    def test_relevance_is_multiplied_by_powers(self):
        assert ranking(self.MATCHES, Weight(), {}) == ["a", "b", "c"]
        assert ranking(self.MATCHES, Weight(0.5, 0.0), {}) == ["b", "a", "c"]
        assert ranking(self.MATCHES, Weight(0.0, 1.0), {"c": 3.0}) == ["c", "a", "b"]

    def test_equal_scores_count_in_either_order(self):
        found = [(3.0, "a"), (2.0, "b"), (2.0 + 1e-9, "c"), (1.0, "d")]
        assert same_order(found, ["a", "b", "c", "d"], 20)
        assert same_order(found, ["a", "c", "b", "d"], 20)
        assert same_order(found, ["a", "c", "d"], 2)
        assert not same_order(found, ["b", "a", "c", "d"], 20)
        assert not same_order(found, ["a", "b", "d", "c"], 20)
        assert not same_order(found, ["a", "b", "c"], 20)
        assert not same_order(found[:3], ["a", "b", "c", "d"], 20)
        assert not same_order([], ["a"], 20)

    def test_best_page_of_host_is_kept(self):
        found = Matches.of((f"http://{path}", 1.0 - n / 10, 1.0) for n, path in enumerate(("a/1", "b/1", "a/2")))
        assert ranking(found, Weight(hosts=True), {}) == ["http://a/1", "http://b/1"]

    def test_ranks_match_formula(self):
        links = {"a:http/": PageLinks([], ["b:http/"]), "b:http/": PageLinks([], ["c:http/"])}
        ranks = ranks_of({**links, "c:http/": PageLinks([], [])}, Formula(0.5))
        raw = [0.15, 0.15 + 0.85 * 0.5 * 0.15, 0.15 + 0.85 * 0.5 * (0.15 + 0.85 * 0.5 * 0.15)]
        expected = dict(
            zip(("http://a/", "http://b/", "http://c/"), [3 * rank / sum(raw) for rank in raw], strict=True)
        )
        assert ranks == pytest.approx(expected)

    def test_sitewide_links_are_navigation(self):
        pages = [f"a:http/{number}" for number in range(6)]
        links = {page: PageLinks([to for to in (pages[0],) if to != page], ["b:http/"]) for page in pages}
        links["b:http/"] = PageLinks([], [])
        kept, left = ranks_of(links, Formula(0.5)), ranks_of(links, Formula(0.5, 0.3))
        assert kept["http://a/0"] > kept["http://a/1"] == pytest.approx(kept["http://a/2"])
        assert left["http://a/0"] == pytest.approx(left["http://a/1"])
        assert left["http://b/"] / left["http://a/1"] == pytest.approx(1 + 0.85 * 0.5)  # of one page, the first


@pytest.fixture
def measured(tmp_path, monkeypatch):
    """Return a collection with one query in each half; its first page by text is not the authority."""
    known = {query: {"http://a/1": Judgement(1, 1), "http://b/1": Judgement(1, 0.3)} for query in ("q", "r")}
    found = Matches.of([("http://b/1", 2.0, 1.0), ("http://a/1", 1.9, 1.0), ("http://c/1", 1.0, 1.0)])
    made = Collection("made", "here", False, [], {}, {"tune": ["q"], "held-out": ["r"]}, known)
    monkeypatch.setattr("bench.ranking.measured.matches", lambda crawl, text: {"q": found, "r": found})
    monkeypatch.setattr("bench.ranking.measured.all_ranks", lambda crawl: {USUAL: {"http://a/1": 2.0}})
    return Measured(Crawl(tmp_path, made))


class TestMeasures:
    def test_score_is_share_of_ceiling(self, measured):
        assert measured.share(TEXT, "tune", PRECISION) == 1.0
        assert measured.share(TEXT, "tune", QUALITY) == pytest.approx((0.3 + 0.95) / (1 + 0.95 * 0.3))
        assert measured.share(Way(weight=Weight(0, 1)), "tune", QUALITY) == 1.0

    def test_unjudged_pages_are_counted(self, measured):
        measured.scores(TEXT, "held-out")
        assert [*measured.unjudged] == [("r", "http://c/1")]

    def test_harmful_choice_is_sorted_last(self, measured):
        found = tried(iter([TEXT, Way(weight=Weight(0, 1))]), [measured])
        assert [each.way.weight.pagerank for each in found] == [1, 0]
        measured.ranks[USUAL]["http://c/1"] = 10.0
        found = tried(iter([TEXT, Way(weight=Weight(0, 0.9))]), [measured])
        assert [each.harmless for each in found] == [True, False]
        assert found[0].way == TEXT

    def test_gains_have_intervals_and_p_values(self, measured, capsys, monkeypatch):
        monkeypatch.setattr(tables, "WAYS", {**tables.WAYS, "the default": Way(weight=Weight(0, 1))})
        tables.places([measured])
        tables.together([measured])  # no query has so many relevant pages
        assert capsys.readouterr().out.count("N = 60") == 2
        monkeypatch.setattr(measured, "enough", lambda half, least: measured.collection.queries[half])
        tables.together([measured])
        printed = capsys.readouterr().out
        assert "| the 1 queries with 60 relevant pages or more, quality, held out | N = 10 | N = 20 |" in printed
        worth = [(0.3 + (n - 1) / n, 1 + 0.3 * (n - 1) / n) for n in (10, 20, 30, 40, 50, 60)]
        mean = sum(new for _, new in worth) / sum(old for old, _ in worth) - 1
        rows = [line.split(" | ") for line in printed.splitlines() if line.startswith("| the default instead of")]
        first = worth[0][1] / worth[0][0] - 1
        assert rows[-1][1] == f"{first:+.1%} ({first:+.0%} to {first:+.0%}, p = 1)"
        assert rows[-1][-1].startswith(f"{mean:+.1%} (")
        assert [line.count("p = 1") for line in printed.splitlines() if "instead of" in line] == [7] * 2

    def test_queries_with_many_relevant_pages_are_reported(self, measured):
        assert measured.collection.relevant("q") == measured.collection.fewest_relevant() == 2
        assert (measured.enough("tune", 2), measured.enough("tune", 3)) == (["q"], [])

    def test_tables_have_a_row_for_each_part(self, measured, capsys, monkeypatch):
        monkeypatch.setattr(tables, "parts", lambda: {"PageRank": (TEXT, Way(weight=Weight(0, 1)))})
        tables.collections([measured])
        tables.worth([measured])
        tables.choice(tried(iter([Way(Text(settings=(("x", "1"),)))]), [measured]))
        printed = capsys.readouterr().out
        assert "| made | no | 0 | 1 + 1 | 2 | here |" in printed
        assert "| PageRank | +2.8% (+3% to +3%, p = 1) |" in printed
        assert "| text alone, x 1 | 0.9728 | 0.973 |" in printed


class TestCranfield:
    DOCUMENTS = ".I 1\n.T\nwings in\nflow .\n.A\nx\n.W\nwings in\nflow . they lift .\n.I 2\n.T\nheat\n.W\nheat .\n"
    QUESTIONS = ".I 001\n.W\nwhy do wings\nlift .\n.I 007\n.W\nwhat is heat .\n"

    def test_files_become_pages_and_judgements(self):
        made = cranfield(self.DOCUMENTS, self.QUESTIONS, "1 1 2\n1 2 -1\n2 2 3\n")
        assert made.queries == {"tune": ["why do wings lift"], "held-out": ["what is heat"]}
        assert made.judgements["why do wings lift"] == {f"{START}1": Judgement(1), f"{START}2": Judgement(0)}
        assert made.judgements["what is heat"] == {f"{START}2": Judgement(0.5)}
        assert "<h1>wings in flow .</h1><p> they lift .</p>" in made.pages[f"{START}1"]()

    def test_pages_are_reachable_and_unanswered_questions_skipped(self):
        made = cranfield(self.DOCUMENTS, self.QUESTIONS, "1 1 2\n")
        assert made.all_queries == ["why do wings lift"]
        (list_,) = re.findall('href="([^"]*)"', made.pages[START]())
        assert re.findall('href="([^"]*)"', made.pages[list_]()) == [f"{START}1", f"{START}2"]


class TestCopies:
    def test_copy_has_same_relevance_and_no_authority(self):
        found = with_copies(
            {"q": {"http://wangdoc.com/a": Judgement(0.5), "http://developer.mozilla.org/b": Judgement(1)}}
        )
        copied = {f"http://{copy.host}/a": Judgement(0.5) for copy in COPIES["wangdoc.com"]}
        assert found == {"q": {"http://wangdoc.com/a": Judgement(0.5, 1.0), **copied}}

    def test_every_site_has_copies_on_hosts_and_in_folders(self):
        copies = [copy for those in COPIES.values() for copy in those]
        assert COPIES.keys() == OFFICIAL.keys()
        assert len({copy.host for copy in copies} | OFFICIAL.keys()) == len(copies) + len(OFFICIAL)
        assert len({copy.below for copy in copies}) == len(copies)

    def test_links_of_copy_stay_in_copy_unless_absolute(self, tmp_path):
        site, copy = OFFICIAL["es6.ruanyifeng.com"], COPIES["es6.ruanyifeng.com"][0]
        for source in (site, copy):
            folder = tmp_path / source.below / "ruanyf+es6tutorial" / "docs"
            folder.mkdir(parents=True)
            folder.joinpath("let.md").write_text("# let\n\n[a](#docs/let) [b](http://es6.ruanyifeng.com/#docs/let)\n")
        made = Sites(tmp_path, (site, copy))
        mine = f"http://{copy.host}/docs/let"
        assert {mine, "http://es6.ruanyifeng.com/docs/let"} <= links(made, mine)


class TestJudgements:
    QUERIES = tuple(tuple(read_queries(DATA / f"queries-{half}.txt")) for half in HALVES)
    JUDGED = read_judgements(Path(DATA / "judgements.tsv"))

    def test_halves_share_no_query(self):
        tune, held_out = self.QUERIES
        assert len(tune) == len(held_out) == 24
        assert not set(tune) & set(held_out)

    def test_every_query_has_an_authoritative_page(self):
        for query in (*self.QUERIES[0], *self.QUERIES[1]):
            assert any(each == Judgement(1, 1) for each in self.JUDGED[query].values()), query

    def test_judgements_of_other_judges_are_loaded(self, tmp_path):
        query, url = self.QUERIES[0][0], "http://cn.vite.dev/guide/features"
        files = [tmp_path / name for name in ("second", "third")]
        for file in files:
            file.write_text(f"{query}\t{url}\t0.5\t1\n")
        assert judged(files)[query][url] == Judgement(0.5, 1)
        assert judged(files[:1])[query][url] == Judgement(*map(min, self.JUDGED[query][url], (0.5, 1)))
        assert {"nine sites", "copies"} <= known(tmp_path, files).keys()
        files[1].write_text(f"asked by nobody\t{url}\t1\n")
        with pytest.raises(InputError, match="unknown queries asked by nobody"):
            judged(files)

    def test_judgements_refer_only_to_collection_pages(self):
        hosts = {f"http://{source.host}/" for source in SOURCES}
        for pages in self.JUDGED.values():
            assert {re.match("http://[^/]*/", url)[0] for url in pages} <= hosts

    def test_judgements_have_documented_kinds(self):
        given = {each for pages in self.JUDGED.values() for each in pages.values()}
        assert given == {
            Judgement(1, 1),
            Judgement(1, 0.3),
            Judgement(0.5, 0.3),
            Judgement(0.1, 0.3),
            Judgement(0, 0.3),
        }
