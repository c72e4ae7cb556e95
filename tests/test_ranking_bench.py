"""bench.ranking: how repositories become a small web, and how rankings of it are compared."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import ProxyHandler, build_opener

import pytest

from bench.ranking.__main__ import DATA, HALVES, Report
from bench.ranking.crawl import served
from bench.ranking.markdown import rendered, title_of, value_of
from bench.ranking.ranks import graph
from bench.ranking.sites import SOURCES, Collection, documents
from bench.ranking.variants import TEXT, Match, Weight, ranking
from nutch2py.jobs.pagerank_links import PageLinks
from nutch2py.scoring.rank_model import PageRankModel, pagerank
from nutch2py.search.measures import Judgement, read_judgements, read_queries

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
def collection(tmp_path):
    for name, text in FILES.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return Collection(tmp_path)


def links(collection, url):
    return set(re.findall(r'href="([^"]*)"', documents(collection)[url]()))


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
    def test_links_are_found_where_they_are_links(self, text, html):
        assert rendered(text, str.upper) == html

    def test_front_matter_may_be_quoted_or_folded(self):
        assert value_of("slug", "---\nslug: 'a''b'\n---\n") == "a'b"
        assert value_of("title", "---\ntitle: >-\n  a\n  b\nslug: c\n---\n") == "a b"
        assert value_of("title", "title: a") == ""

    def test_without_front_matter_the_first_heading_is_the_title(self):
        assert title_of("text\n\n## `Array` 的 [方法](x) {#methods}\n") == "Array 的 方法"


class TestSites:
    def test_pages_keep_their_public_addresses(self, collection):
        assert set(collection.pages) == {
            "http://developer.mozilla.org/zh-CN/docs/Web/JavaScript/Closures",
            "http://developer.mozilla.org/zh-CN/docs/Web/JavaScript/Guide",
            "http://zh.javascript.info/closure",
            "http://zh.javascript.info/var",
            "http://zh-hans.react.dev/learn",
            "http://zh-hans.react.dev/learn/state",
            "http://es6.ruanyifeng.com/docs/let",
            "http://es6.ruanyifeng.com/docs/promise",
        }

    def test_a_link_to_another_language_leads_to_the_chinese_page(self, collection):
        mdn = "http://developer.mozilla.org/zh-CN/docs/Web/JavaScript/Closures"
        assert {mdn, "http://zh-hans.react.dev/learn"} <= links(collection, "http://zh-hans.react.dev/learn/state")

    def test_what_is_not_in_the_collection_keeps_its_address(self, collection):
        found = links(collection, "http://developer.mozilla.org/zh-CN/docs/Web/JavaScript/Closures")
        assert "https://developer.mozilla.org/zh-CN/docs/Web/CSS" in found
        assert "http://developer.mozilla.org/zh-CN/docs/Web/JavaScript/Guide" in found  # whatever its case

    def test_short_links_and_moved_pages_are_resolved(self, collection):
        found = links(collection, "http://zh.javascript.info/closure")
        assert {"http://zh.javascript.info/var", "https://zh.javascript.info/bind"} <= found
        assert any(link.startswith("https://developer.mozilla.org/docs/Web/Closure") for link in found)
        page = collection.pages["http://zh.javascript.info/closure"]
        moved = collection.resolve(page, "https://developer.mozilla.org/zh-CN/docs/Closure")
        assert moved == "http://developer.mozilla.org/zh-CN/docs/Web/JavaScript/Closures"

    def test_pages_that_are_fragments_become_pages(self, collection):
        assert "http://es6.ruanyifeng.com/docs/promise" in links(collection, "http://es6.ruanyifeng.com/docs/let")

    def test_every_page_can_be_reached_from_the_starts(self, collection):
        pages = documents(collection)
        reached = {f"http://{source.host}/" for source in SOURCES}
        todo = [*reached]
        while todo:
            new = (links(collection, todo.pop()) & set(pages)) - reached
            reached |= new
            todo += new
        assert reached == set(pages)

    def test_the_proxy_is_the_sites(self, collection):
        with served(documents(collection)) as port:
            opener = build_opener(ProxyHandler({"http": f"http://127.0.0.1:{port}"}))
            with opener.open("http://es6.ruanyifeng.com/docs/let") as answer:
                assert "<h1>let 和 const 命令</h1>" in answer.read().decode()
            with pytest.raises(HTTPError, match="404"):
                opener.open("http://es6.ruanyifeng.com/docs/none")


class TestRanking:
    MATCHES = (Match("a", 4.0, 1.0), Match("b", 3.0, 4.0), Match("c", 2.0, 0.0))

    def test_relevance_is_multiplied_by_powers(self):
        assert ranking(self.MATCHES, TEXT, {}) == ["a", "b", "c"]
        assert ranking(self.MATCHES, Weight(0.5, 0.0), {}) == ["b", "a", "c"]
        assert ranking(self.MATCHES, Weight(0.0, 1.0), {"c": 3.0}) == ["c", "a", "b"]

    def test_a_table_has_a_column_for_what_nobody_judged(self, capsys):
        queries = {"tune": ["q"], "held-out": ["r"]}
        report = Report(queries, {"q": {"a": Judgement(1, 1)}, "r": {"b": Judgement(1, 1)}})
        report.row("text", find=lambda query: ["a"])
        assert capsys.readouterr().out == (
            "| text | 0.100 | 0.050 | 1.000 | 1.000 | 0.000 | 0.000 | 0.000 | 0.000 | 0.50 |\n"
        )
        assert [*report.unjudged] == [("r", "a")]

    def test_the_graph_of_pages_is_that_of_the_formula(self):
        made = graph({"a": PageLinks(["b"], ["c"]), "b": PageLinks([], ["c"]), "c": PageLinks([], [])})
        ranks, _, _ = pagerank(made, PageRankModel(), 20)
        b = 0.15 + 0.85 * 0.5 * 0.15 / 2
        assert ranks.tolist() == pytest.approx([0.15, b, 0.15 + 0.85 * 0.5 * (0.15 / 2 + b)])


class TestJudgements:
    QUERIES = tuple(tuple(read_queries(DATA / f"queries-{half}.txt")) for half in HALVES)
    JUDGED = read_judgements(Path(DATA / "judgements.tsv"))

    def test_the_halves_have_no_query_in_common(self):
        tune, held_out = self.QUERIES
        assert len(tune) == len(held_out) == 24
        assert not set(tune) & set(held_out)

    def test_every_query_has_a_page_on_it_that_is_an_authority(self):
        for query in (*self.QUERIES[0], *self.QUERIES[1]):
            assert any(each == Judgement(1, 1) for each in self.JUDGED[query].values()), query

    def test_only_pages_of_the_collection_are_judged(self):
        hosts = {f"http://{source.host}/" for source in SOURCES}
        for pages in self.JUDGED.values():
            assert {re.match("http://[^/]*/", url)[0] for url in pages} <= hosts

    def test_judgements_are_of_the_kinds_that_are_documented(self):
        given = {each for pages in self.JUDGED.values() for each in pages.values()}
        assert given == {
            Judgement(1, 1),
            Judgement(1, 0.3),
            Judgement(0.5, 0.3),
            Judgement(0.1, 0.3),
            Judgement(0, 0.3),
        }
