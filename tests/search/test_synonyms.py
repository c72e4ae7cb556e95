"""Synonyms and stopwords from files: matches, cost, and invalid files."""

import pytest

from nutch2py.backends.analysis.analyzer import Analyzer
from nutch2py.errors import ConfigurationError
from nutch2py.search.query.synonyms import SynonymExpander, parse_synonyms
from nutch2py.search.search_backends import search
from tests.indexer.pages import doc
from tests.search.test_freshness import written

FILE = """# comment
car, automobile, motor car
telly => television
web crawler, spider
爬虫, 蜘蛛程序, web crawler
自行车, 脚踏车  # behind
x, y, z, x
"""
PAGES = {
    "car": ("en", "A car on the road"),
    "automobile": ("en", "Automobiles of old"),
    "motor": ("en", "The motor car was invented"),
    "apart": ("en", "A motor without a car, then the road"),
    "telly": ("en", "A telly"),
    "television": ("en", "The television set"),
    "crawler": ("en", "A web crawler of note"),
    "spider": ("en", "Eight legs has the spider"),
    "pachong": ("zh", "网络爬虫抓取网页"),
    "zhizhu": ("zh", "一种蜘蛛程序的介绍"),
    "danche": ("zh", "我买了一辆脚踏车"),
    "boke": ("zh", "博客就是网页"),
    "auto": ("de", "Die Automobile der Stadt"),
}


@pytest.fixture(scope="module")
def conf(tmp_path_factory):
    folder = tmp_path_factory.mktemp("synonyms")
    (folder / "synonyms.txt").write_text(FILE, encoding="utf-8")
    (folder / "little.txt").write_text("Please show\nzeige", encoding="utf-8")
    pages = [doc(name, url=f"http://a.org/{name[0]}", lang=lang, content=text) for name, (lang, text) in PAGES.items()]
    files = {"index.synonyms.file": str(folder / "synonyms.txt"), "index.stopwords.file": str(folder / "little.txt")}
    return written(folder / "index", pages, **files)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("car", "apart auto automobile car motor"),
        ("CARS", "apart auto automobile car motor"),
        ("automobile", "apart auto automobile car motor"),
        ("motor car", "apart auto automobile car motor"),
        ("car road", "apart car | auto automobile motor"),
        ('"car"', "apart car motor"),
        ("car -motor", "auto automobile car"),
        ("content:car", "apart auto automobile car motor"),
        ("telly", "television"),
        ("television", "television"),
        ("spider", "crawler spider"),
        ("web crawler", "crawler pachong spider zhizhu"),
        ("the web crawler note", "crawler | pachong spider zhizhu"),
        ("eight OR web crawler", "crawler pachong spider zhizhu"),
        ("爬虫", "crawler pachong zhizhu"),
        ("自行车", "danche"),
        ("please show car road", "apart car | auto automobile motor"),
        ("什么是博客", "boke"),
        ("什么 是 博客 呢", "boke"),
        ("please", ""),
    ],
)
def test_synonyms_of_files_are_found(conf, query, found):
    hits = search(conf, query, rows=100).hits
    best, _, others = found.partition("|")
    found_ids = [hit.id for hit in hits]
    assert sorted(found_ids[: len(best.split())]) == best.split()
    assert sorted(found_ids[len(best.split()) :]) == others.split()
    assert all(hit.snippet.highlights for hit in hits)


def test_typed_words_rank_before_synonyms(conf):
    assert search(conf, "motor car").hits[0].id == "motor"


@pytest.mark.parametrize("line", ["car", "car =>", "=> car", ", ,", "car,", "a => b => c", "C#", "# a\n#b\nC# # c"])
def test_meaningless_line_is_rejected(conf, tmp_path, line):
    file = tmp_path / "synonyms.txt"
    file.write_text(f"a, b\n{line}\n", encoding="utf-8")
    other = conf.copy()
    other.set("index.synonyms.file", str(file))
    number = 1 + len(line.splitlines())
    with pytest.raises(ConfigurationError, match=rf"index\.synonyms\.file: line {number} of"):
        search(other, "car")


def test_comment_starts_after_blank(conf, tmp_path):
    """Q# stays a word; and Solr's files start with a licence, which defines no words."""
    synonyms, little = tmp_path / "synonyms.txt", tmp_path / "little.txt"
    synonyms.write_bytes("\ufeff# of languages\r\n\r\nautomobile, Q#, spider # and more\r\n".encode())
    little.write_text("# Road to the crawler\nplease#d show # television\n", encoding="utf-8")
    other = conf.copy()
    other.set("index.synonyms.file", str(synonyms))
    other.set("index.stopwords.file", str(little))
    assert {hit.id for hit in search(other, "automobile").hits} == {"auto", "automobile", "spider"}
    assert [search(other, query).total for query in ("car road", "car -crawler", "show telly")] == [3, 3, 1]


@pytest.mark.parametrize("arrow", ["", " => hub"])
def test_long_line_time_is_linear(conf, arrow):
    """Each of thousands of words keeps as many of them as a query may have, the first of the line."""
    text = ", ".join(f"word{number:05}" for number in range(3000)) + arrow
    made = SynonymExpander(parse_synonyms(conf, text), Analyzer.from_conf(conf), frozenset({"en", "de"}))
    assert len(made.alternatives) == 3000
    assert {len(ways) for ways in made.alternatives.values()} == {1 if arrow else 64}


def test_word_in_many_lines_uses_first_lines(conf):
    text = "\n".join(f"hub, word{number:05}" for number in range(3000))
    made = SynonymExpander(parse_synonyms(conf, text), Analyzer.from_conf(conf), frozenset({"en"}))
    assert len(made.alternatives[("hub",),]) == 64
    assert [*made.alternatives[("word02999",),]] == [(("hub",),), (("word02999",),)]


def test_long_line_does_not_lengthen_query(conf, tmp_path):
    """Five hundred mutual synonyms, and a query of as many words."""
    file = tmp_path / "synonyms.txt"
    file.write_text(", ".join(["car", *(f"word{number}" for number in range(500))]), encoding="utf-8")
    other = conf.copy()
    other.set("index.synonyms.file", str(file))
    assert {hit.id for hit in search(other, "word499").hits} >= {"car"}
    assert search(other, " ".join(f"word{number}" for number in range(200))).total == 3


@pytest.mark.parametrize("name", ["index.synonyms.file", "index.stopwords.file"])
def test_missing_synonym_file_is_reported(conf, name):
    other = conf.copy()
    other.set(name, "none.txt")
    with pytest.raises(ConfigurationError, match=f"{name}: file "):
        search(other, "car")
