import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from nutch2py.backends.document_weights import DocumentWeights
from nutch2py.backends.embedded_index.index_directory import index_path
from nutch2py.errors import ConfigurationError, IndexingError
from nutch2py.indexer.writers.embedded_writer import EmbeddedIndexWriter
from nutch2py.records.document import NutchDocument
from nutch2py.search.engines.embedded_searcher import EmbeddedSearcher
from nutch2py.search.search_backends import search
from tests.indexer.pages import doc


def put(conf, *documents, delete=()):
    writer = EmbeddedIndexWriter(conf)
    writer.open(conf, {})
    for document in documents:
        writer.write(document)
    for doc_id in delete:
        writer.delete(doc_id)
    writer.commit()
    writer.close()


def ids(conf, query, **options):
    return [hit.id for hit in search(conf, query, **options).hits]


def test_document_is_found_by_each_field(conf):
    put(
        conf,
        doc("a", title="Title", content="content", anchor="linked", url="http://host.org/path", host="host.org"),
        doc("b", content="other"),
    )
    for word in ("title", "CONTENT", "linking", "path", "host.org"):
        assert ids(conf, word) == ["a"], word


def test_document_with_same_id_is_replaced(conf):
    put(conf, doc("a", content="old words"), doc("b", content="words"))
    put(conf, doc("a", content="new words"))
    assert ids(conf, "old") == []
    assert sorted(ids(conf, "words")) == ["a", "b"]
    put(conf, doc("a", content="first"), doc("a", content="second"))
    assert (ids(conf, "first"), ids(conf, "second")) == ([], ["a"])
    assert EmbeddedSearcher(conf).count() == 2


@pytest.mark.parametrize("times", [1, 2])
def test_commit_stopped_after_its_delete_list_is_repeated(conf, times):
    """A kill or a full disk leaves the file; the next commit has the same number, and tantivy creates files only."""
    put(conf, *(doc(name, content="words") for name in "abc"))
    folder = index_path(conf)
    meta = (folder / "meta.json").read_bytes()
    for _ in range(times):
        put(conf, delete=["a"])
        (folder / "meta.json").write_bytes(meta)  # the commit has not ended
    assert [*folder.glob("*.del")]
    put(conf, delete=["a"])
    assert sorted(ids(conf, "words")) == ["b", "c"]
    put(conf, delete=["b"])
    assert ids(conf, "words") == ["c"]


def test_deleted_document_is_removed_and_unknown_ignored(conf):
    put(conf, doc("a", content="word"), doc("b", content="word"))
    put(conf, delete=["a", "never there"])
    assert ids(conf, "word") == ["b"]


def test_last_of_add_and_delete_applies(conf):
    put(conf, doc("a", content="word"), doc("z", content="word"), delete=["a"])
    assert ids(conf, "word") == ["z"]
    writer = EmbeddedIndexWriter(conf)
    writer.open(conf, {})
    writer.delete("z")
    writer.write(doc("z", content="word again"))
    writer.close()
    assert ids(conf, "again") == ["z"]


def test_nothing_is_visible_before_commit(conf):
    put(conf, doc("a", content="word"))
    writer = EmbeddedIndexWriter(conf)
    writer.open(conf, {})
    writer.write(doc("b", content="word"))
    assert ids(conf, "word") == ["a"]
    writer.close()
    assert sorted(ids(conf, "word")) == ["a", "b"]


def test_searcher_sees_new_commits_after_reload(conf):
    put(conf, doc("a", content="word"))
    searcher = EmbeddedSearcher(conf)
    put(conf, doc("b", content="word"))
    assert searcher.count() == 1
    searcher = searcher.reopen()
    assert searcher.count() == 2
    assert searcher.get_document("b") == {"id": "b", "content": "word"}
    assert searcher.get_document("c") is None


def test_full_batches_are_committed(conf):
    conf.set("index.embedded.batch", 3)
    writer = EmbeddedIndexWriter(conf)
    writer.open(conf, {})
    for number in range(8):
        writer.write(doc(str(number), content="word"))
    assert EmbeddedSearcher(conf).count() == 6
    writer.close()
    assert EmbeddedSearcher(conf).count() == 8


def test_every_field_round_trips(conf):
    sent = doc("a", title=["one", "two"], url="http://x/", meta_author="Jane Doe", boost="0.25", contentLength="12")
    put(conf, sent)
    assert search(conf, "one").hits[0].fields == sent.to_json()


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("host:example.org", ["a", "b"]),
        ("host:www.example.org", ["b"]),
        ("site:example.org", ["a", "b"]),
        ("site:www.example.org", ["b"]),
        ("site:EXAMPLE.org", ["a", "b"]),
        ("site:ample.org", []),
        ("type:text/html", ["a"]),
        ("type:TEXT", ["a", "b"]),
        ("lang:zh", ["b"]),
        ("title:word", ["a"]),
        ("author:doe", ["a"]),
        ('author:"jane doe"', ["a"]),
        ('author:"doe jane"', []),
        ("nofield:x", ["a"]),
        ("id:org.example:http/a", ["a"]),
        ("word -title:word", ["b"]),
        ("word site:www.example.org", ["b"]),
        ("title:word OR lang:zh", ["a", "b"]),
        ("url:http://example.org/a", ["a"]),
    ],
)
def test_terms_of_field_are_listed(conf, query, found):
    put(
        conf,
        doc(
            "org.example:http/a",
            title="word",
            content="x",
            host="example.org",
            url="http://example.org/a",
            type=["text/html", "text", "html"],
            author="Jane Doe",
        ),
        doc("b", content="word", host="www.example.org", url="http://www.example.org/b", type=["text"], lang="zh"),
    )
    assert sorted(i[-1] for i in ids(conf, query)) == found


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("quick brown", ["a", "b"]),
        ('"quick brown"', ["a"]),
        ("“brown quick”", ["b"]),
        ('"quick fox"', ["a", "b"]),
        ("fox AND bear", ["a", "b"]),
        ("fox AND quick", ["a"]),
        ("fox AND bear AND part -brown", ["c"]),
        ("fox OR bear", ["a", "b"]),
        ("quick -fox", ["b"]),
        ('quick -"brown quick"', ["a"]),
        ("-fox", ["b", "c"]),
        ("NOT fox", ["b", "c"]),
        ("(fox OR bear) quick -brown", []),
        ("quick nothing", ["a", "b"]),
        ("two-part", ["c"]),
        ("part-two", ["c"]),  # no page has the words in this order
    ],
)
def test_query_operators_work(conf, query, found):
    put(
        conf,
        doc("a", content="The quick brown fox"),
        doc("b", content="brown quick bear"),
        doc("c", content="a two-part part"),
    )
    assert sorted(ids(conf, query)) == found


def test_operator_or_does_not_reward_more_words(conf):
    put(conf, doc("a", content="fox bear " + "page " * 20), doc("b", content="fox fox fox"))
    assert ids(conf, "fox bear") == ["a", "b"]
    scores = [hit.score for hit in search(conf, "fox bear").hits]
    conf.set("index.search.operator", "or")
    either = [hit.score for hit in search(conf, "fox bear").hits]
    assert scores[0] / scores[1] > either[0] / either[1]


@pytest.mark.parametrize(
    ("name", "value"),
    [("index.search.operator", "xor"), ("index.search.fields", "title^^2"), ("index.search.fields", "nofield^2")],
)
def test_invalid_search_properties_are_named(conf, name, value):
    put(conf, doc("a", content="fox"))
    conf.set(name, value)
    with pytest.raises(ConfigurationError, match=name):
        search(conf, "fox")


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("北京奥运会", ["games", "hui"]),
        ("奥运会", ["games"]),
        ("奥运", ["games"]),
        ('"北京奥运会"', ["games"]),
        ("香港电影", ["film"]),
        ("香港 电影", ["film"]),
        ("电影香港", ["film"]),
        ('"电影香港"', ["film"]),  # no page has the phrase
        ("ｎｕｔｃｈ", ["film"]),
    ],
)
def test_chinese_is_matched_by_words(conf, query, found):
    put(
        conf,
        doc("games", content="北京奥运会今天在国家体育场开幕。"),
        doc("ao", content="深奥的问题"),
        doc("hui", content="今天的会议在北京开，奥 会"),
        doc("film", content="香港电影院用Nutch爬虫"),
    )
    assert ids(conf, query) == found


def test_phrase_does_not_span_anchors(conf):
    put(conf, doc("a", anchor=["red", "green"]), doc("b", anchor=["red green"]))
    assert ids(conf, '"red green"') == ["b"]


def test_boost_and_pagerank_multiply_relevance(conf):
    conf.set("index.weight.fields", "boost,pagerank")
    conf.set("index.weight.power", 1)
    put(
        conf,
        doc("low", content="same words", boost="0.5"),
        doc("none", content="same words"),
        doc("high", content="same words", boost="2.0"),
        doc("ranked", content="same words", boost="2.0", pagerank="3.0"),
        doc("zero", content="same words", boost="0.0"),
        doc("tiny", content="same words", boost="0.003"),
        doc("nan", content="same words", boost="NaN"),
    )
    hits = search(conf, "same").hits
    scores = {hit.id: hit.score for hit in hits}
    assert [hit.id for hit in hits] == ["ranked", "high", "none", "nan", "low", "tiny", "zero"]
    assert {name: score / scores["none"] for name, score in scores.items()} == pytest.approx(
        {"ranked": 6.0, "high": 2.0, "none": 1.0, "nan": 1.0, "low": 0.5, "tiny": 0.003, "zero": 0.0001}
    )


def test_each_factor_has_own_power(conf):
    conf.set("index.weight.fields", "boost^0, pagerank^0.5")
    put(conf, doc("a", content="word"), doc("b", content="word", boost="9.0", pagerank="4.0"))
    hits = search(conf, "word").hits
    assert [hit.id for hit in hits] == ["b", "a"]
    assert hits[0].score / hits[1].score == pytest.approx(2.0)
    conf.set("index.weight.fields", "boost^much")
    with pytest.raises(ConfigurationError, match="write field"):
        DocumentWeights(conf)


def test_proximity_uses_configured_weight(conf):
    put(conf, doc("apart", content="green green one tea tea"), doc("together", content="one and then the green tea"))
    conf.set("index.search.together", "0")
    assert ids(conf, "green tea") == ["apart", "together"]
    conf.set("index.search.together", "2")
    assert ids(conf, "green tea") == ["together", "apart"]


def test_equal_weights_are_ordered_by_relevance(conf):
    put(conf, *(doc(f"{n}", content="word " * n + "filler " * (9 - n), boost="0.03") for n in (2, 5, 9)))
    assert ids(conf, "word") == ["9", "5", "2"]


def test_title_match_and_proximity_rank_higher(conf):
    put(
        conf,
        doc("body", content="crawler is a program"),
        doc("title", title="crawler", content="is a program"),
        doc("apart", content="green one and then the tea"),
        doc("together", content="one and then the green tea"),
    )
    assert ids(conf, "crawler") == ["title", "body"]
    assert ids(conf, "green tea") == ["together", "apart"]


def test_order_is_exact_over_many_documents(conf):
    put(conf, *(doc(f"{n:03}", content="word", pagerank=str(1 + n / 100)) for n in range(300)))
    assert ids(conf, "word", rows=5) == ["299", "298", "297", "296", "295"]
    assert ids(conf, "word", start=298, rows=5) == ["001", "000"]


def test_index_folder_is_next_to_table(conf, tmp_path):
    assert index_path(conf) == tmp_path / "crawldata" / "index"
    conf.set("storage.crawl.id", "c1")
    assert index_path(conf) == tmp_path / "crawldata" / "c1_index"
    conf.set("storage.data.store", "hbase://gateway:9090")
    assert index_path(conf) == Path.cwd() / "c1_index"  # the command's working directory, wherever tasks run
    conf.set("index.embedded.path", "/elsewhere")
    assert str(index_path(conf)) == "/elsewhere"


def test_missing_index_error_names_command(conf):
    with pytest.raises(IndexingError, match=r"no index found in .*: run nutch2py crawl or index first"):
        search(conf, "word")


def test_empty_index_error_names_command(conf):
    EmbeddedIndexWriter(conf).prepare(conf, {}, False)
    with pytest.raises(IndexingError, match="is empty: run nutch2py crawl or index first"):
        search(conf, "word")


def outdate(conf, version):
    file = index_path(conf) / "index.json"
    if version is None:
        file.unlink()
    else:
        file.write_text(json.dumps({**json.loads(file.read_text()), **version}))


@pytest.mark.parametrize(
    ("version", "reason"),
    [
        (None, "was not made by nutch2py"),
        ({"schema": 0}, "has layout 0"),
        ({"analysis": "0"}, "another text analysis"),
    ],
)
def test_index_of_other_version_is_rejected_and_rebuilt(conf, version, reason):
    put(conf, doc("a", content="word"))
    outdate(conf, version)
    for use in (lambda: search(conf, "word"), lambda: put(conf, doc("b"))):
        with pytest.raises(IndexingError, match=f"{reason}.*: rebuild it with index -reindex"):
            use()
    EmbeddedIndexWriter(conf).prepare(conf, {}, True)
    put(conf, doc("b", content="word"))
    assert ids(conf, "word") == ["b"]


def test_current_index_is_kept_on_reindex(conf):
    put(conf, doc("a", content="word"))
    EmbeddedIndexWriter(conf).prepare(conf, {}, True)
    assert ids(conf, "word") == ["a"]


def test_changed_user_dictionary_requires_rebuild(conf, tmp_path):
    put(conf, doc("a", content="博鳌亚洲论坛"))
    (tmp_path / "words.txt").write_text("博鳌亚洲论坛\n", encoding="utf-8")
    conf.set("index.userdict.file", str(tmp_path / "words.txt"))
    with pytest.raises(IndexingError, match=r"another index\.userdict\.file"):
        search(conf, "博鳌")
    EmbeddedIndexWriter(conf).prepare(conf, {}, True)
    put(conf, doc("a", content="在博鳌亚洲论坛"), doc("b", content="亚洲的博鳌和论坛"))
    assert ids(conf, "博鳌亚洲论坛") == ["a"]


def test_damaged_index_is_named_in_error(conf):
    put(conf, doc("a", content="word"))
    (index_path(conf) / "meta.json").write_text("{")
    with pytest.raises(IndexingError, match="cannot open the index"):
        search(conf, "word")


def test_document_without_id_is_rejected(conf):
    with pytest.raises(IndexingError, match="has no field id"):
        put(conf, NutchDocument({"url": ["http://x/"]}))


def test_odd_documents_are_indexed_and_found(conf):
    megabyte = "lorem ipsum dolor sit amet " * 40_000
    put(
        conf,
        doc("empty", content="", title=""),
        doc("bare"),
        doc("nul", content="zero\x00byte surro\ud800gate word"),
        doc(
            "big", content=megabyte + "needle", title="x" * 100_000, url="http://h/" + "p/" * 50_000, type="t" * 99_999
        ),
        doc("control", content="tab\tbell\x07 esc\x1b[31m"),
        doc("id with \x00 and 漢字", content="oddly named"),
        doc("long word", content="a" * 100_000 + " tail"),
        NutchDocument({"id": ["half \ud800"], "content": ["half \ud801 id"], "author": ["\udfff"]}),
    )
    assert EmbeddedSearcher(conf).count() == 8
    assert ids(conf, "zerobyte") == ["nul"]
    assert ids(conf, "needle") == ["big"]
    assert ids(conf, "tail") == ["long word"]
    assert ids(conf, "oddly") == ["id with \x00 and 漢字"]
    assert len(search(conf, "lorem").hits[0].snippet.text) < 300
    assert ids(conf, "half") == ["half "]
    put(conf, delete=["id with \x00 and 漢字", "half \ud800", "big"])
    assert EmbeddedSearcher(conf).count() == 5


@pytest.mark.parametrize(
    "query",
    [
        *("", " ", '"', '"unbalanced', "(((", ")))", "AND", "-", "+", "a:", ":", "\x00", "\ud800", "NOT NOT NOT word"),
        *("id:", 'title:"', "*", "a~2 b^3 [x TO y] /re/", "\U0001f600", "\u200f", "'", "it\u2019s", "--word", "\\"),
        *("word" * 20_000, "a " * 20_000),
    ],
)
def test_any_query_is_accepted(conf, query):
    put(conf, doc("a", content="some word"))
    result = search(conf, query)
    assert result.total == len(result.hits) <= 1


def test_lock_is_released_after_failed_commit(conf):
    writer = EmbeddedIndexWriter(conf)
    writer.open(conf, {})
    writer.write(doc("a", content="word"))
    good = writer._pending["a"]
    writer._pending["a"] = "no document"
    with pytest.raises((IndexingError, TypeError)) as failure:
        writer.commit()
    writer._pending["a"] = good
    writer.commit()
    assert ids(conf, "word") == ["a"]
    assert failure.value is not None


READS = """
import os, sys
from nutch2py.conf.configuration import Configuration
from nutch2py.search.engines.embedded_searcher import EmbeddedSearcher
conf = Configuration.load(overrides={"index.embedded.path": sys.argv[1]})
EmbeddedSearcher(conf).search("words")  # all is loaded
os.setgroups([])
os.setgid(54321)
os.setuid(54321)
searcher = EmbeddedSearcher(conf)
print(searcher.search("words").total, flush=True)
sys.stdin.readline()
searcher = searcher.reopen()
print(searcher.search("words").total)
"""


@pytest.mark.skipif(os.getuid() != 0, reason="only root becomes another user")
def test_read_only_user_can_search(conf, tmp_path):
    """Search as a server of another user does; a reload shows new commits, and no file remains."""
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o755)
        conf.set("index.embedded.path", f"{place}/index")
        put(conf, doc("a", content="words"))
        temporary = Path(place, "temporary")
        temporary.mkdir()
        temporary.chmod(0o777)
        child = subprocess.Popen([sys.executable, "-c", READS, f"{place}/index"], stdin=-1, stdout=-1, text=True,
                                 env={**os.environ, "TMPDIR": str(temporary)})  # fmt: skip
        assert child.stdout.readline() == "1\n"
        put(conf, doc("b", content="words"))
        put(conf, doc("c", content="words"), delete=["a"])
        put(conf, doc("d", content="words"))
        before = sorted(Path(place, "index").iterdir())
        assert child.communicate("\n", timeout=60)[0] == "3\n"
        assert child.returncode == 0
        assert [*temporary.iterdir()] == []
        assert sorted(Path(place, "index").iterdir()) == before
        Path(place, "index", "meta.json").chmod(0o600)
        done = subprocess.run([sys.executable, "-c", READS, f"{place}/index"], capture_output=True, text=True,
                              env={**os.environ, "TMPDIR": str(temporary)}, check=False)  # fmt: skip
        assert f"give this user the right to read {place}/index/meta.json" in done.stderr
