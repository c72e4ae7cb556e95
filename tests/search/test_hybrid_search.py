"""Hybrid search in the embedded index: fused ranks, filters, totals, and vectors that are made once."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray

from nutch2py.backends.vectors.vector_matrix import VectorMatrix
from nutch2py.backends.vectors.vector_store import VectorStore
from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError, IndexingError
from nutch2py.indexer.writers.elastic_writer import ElasticIndexWriter
from nutch2py.indexer.writers.embedded_writer import EmbeddedIndexWriter
from nutch2py.indexer.writers.solr_writer import SolrIndexWriter
from nutch2py.interfaces import Encoder
from nutch2py.plugins import loading
from nutch2py.records.document import NutchDocument
from nutch2py.search.engines.elastic_searcher import ElasticSearcher
from nutch2py.search.engines.embedded_searcher import EmbeddedSearcher
from nutch2py.search.engines.solr_searcher import SolrSearcher
from nutch2py.search.hybrid.hybrid_query import HybridQuery, parse_hybrid_query
from nutch2py.search.query.query_plan import SearchOptions
from nutch2py.search.results.search_results import SearchResult

TOPICS = {"car": 0, "automobile": 0, "engine": 0, "soup": 1, "noodles": 1, "dinner": 1, "cat": 2, "kitten": 2}


class TopicEncoder(Encoder):
    """Places texts by the topics of their words: synonyms have the same vector."""

    model = "topics 1"
    dimensions = 4
    min_similarity = 0.5
    texts: ClassVar[list[str]] = []
    fails = False

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if self.fails:
            raise RuntimeError("no memory left on the device")
        TopicEncoder.texts += texts
        vectors = np.zeros((len(texts), self.dimensions), np.float32)
        for vector, text in zip(vectors, texts, strict=True):
            for word in text.lower().split():
                if word in TOPICS:
                    vector[TOPICS[word]] += 1
        return vectors

    def encode_query(self, query: str) -> NDArray[np.float32]:
        vector: NDArray[np.float32] = self.encode([query])[0]
        TopicEncoder.texts.pop()
        return vector


@pytest.fixture(autouse=True)
def encoder(monkeypatch: pytest.MonkeyPatch, conf: Configuration) -> Iterator[type[TopicEncoder]]:
    entry = EntryPoint("encoder-topic", f"{__name__}:TopicEncoder", "nutch2py.encoder")
    installed = loading.installed_plugins
    monkeypatch.setattr(
        loading, "installed_plugins", lambda point: {"encoder-topic": entry} if point == "encoder" else installed(point)
    )
    conf.set("index.encoder", "encoder-topic")
    TopicEncoder.texts = []
    yield TopicEncoder
    TopicEncoder.model, TopicEncoder.dimensions, TopicEncoder.fails = "topics 1", 4, False


def doc(name: str, text: str, **fields: str) -> NutchDocument:
    document = NutchDocument()
    given = {"url": f"http://a.example/{name}", "host": "a.example", "title": name, "content": text, "lang": "en"}
    for field, value in {"id": name, "digest": f"{name} {text}", **given, **fields}.items():
        document.add(field, value)
    return document


def write(conf: Configuration, *documents: NutchDocument, delete: Sequence[str] = (), reindex: bool = False) -> None:
    writer = EmbeddedIndexWriter(conf)
    writer.prepare(conf, {}, reindex)
    writer.open(conf, {})
    for document in documents:
        writer.write(document)
    for each in delete:
        writer.delete(each)
    writer.commit()
    writer.close()


PAGES = (
    doc("a", "the engine of an automobile", lang="en"),
    doc("b", "soup and noodles", host="b.example"),
    doc("c", "a kitten sleeps"),
    doc("d", "car"),
)


def search(conf: Configuration, query: str, options: SearchOptions | None = None, rows: int = 10) -> SearchResult:
    return EmbeddedSearcher(conf).search(query, 0, rows, options or SearchOptions(), with_facets=True)


def ids(result: SearchResult) -> list[str]:
    return [hit.id for hit in result.hits]


def store(conf: Configuration) -> VectorStore:
    return EmbeddedIndexWriter(conf).index_dir.vectors


def test_page_without_a_word_of_the_query_is_found_by_its_vector(conf: Configuration) -> None:
    write(conf, *PAGES)
    result = search(conf, "car")
    assert ids(result) == ["d", "a"]
    assert result.total == 2
    assert result.facets["host"] == [("a.example", 2)]
    assert result.hits[0].score > result.hits[1].score > 0
    assert ids(search(conf, "dinner")) == ["b"]  # no page has the word


def test_query_without_near_pages_is_unchanged(conf: Configuration) -> None:
    write(conf, *PAGES)
    hybrid = search(conf, "sleeps an")
    conf.set("index.encoder", "")
    words = search(conf, "sleeps an")
    assert hybrid.hits == words.hits
    assert (hybrid.total, hybrid.facets) == (words.total, words.facets)


@pytest.mark.parametrize("query", ['"car"', "+car", "-soup car", "title:car", "car AND engine", "car OR soup", "ca*"])
def test_operators_restrict_hits_to_words(query: str, conf: Configuration) -> None:
    write(conf, *PAGES)
    with_vectors = search(conf, query)
    conf.set("index.encoder", "")
    assert with_vectors.hits == search(conf, query).hits


def test_filters_apply_to_vector_hits(conf: Configuration) -> None:
    more = [doc(f"m{n}", "automobile", lang="de", host="m.example") for n in range(30)]
    write(conf, *PAGES, *more)
    assert ids(search(conf, "car lang:en")) == ["d", "a"]
    assert ids(search(conf, "car site:b.example")) == []
    assert ids(search(conf, "car", SearchOptions((("lang", "en"),)))) == ["d", "a"]
    assert search(conf, "car", SearchOptions((("lang", "de"),))).total == 30
    assert search(conf, "car").total == 32


def test_filter_with_many_pages_finds_the_nearest_among_them(
    conf: Configuration, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nutch2py.search.engines.embedded_searcher.MAX_FILTERED", 10)
    german = [doc(f"g{n:03}", "automobile", lang="de") for n in range(150)]
    mixed = [doc(f"e{n:03}", "automobile soup", lang="en") for n in range(120)]
    write(conf, *german, *mixed)
    result = search(conf, "car", SearchOptions((("lang", "en"),)), rows=200)
    assert result.total == len(ids(result)) == 100
    assert all(each.startswith("e") for each in ids(result))


def test_pages_of_results_neither_repeat_nor_skip_a_hit(conf: Configuration) -> None:
    many = [doc(f"w{n:03}", "car soup " + "word " * n) for n in range(130)]
    near = [doc(f"v{n:03}", "automobile") for n in range(40)]
    write(conf, *many, *near)
    searcher = EmbeddedSearcher(conf)
    pages = [searcher.search("car word", start, 15) for start in range(0, 200, 15)]
    found = [hit.id for page in pages for hit in page.hits]
    assert {page.total for page in pages} == {170}
    assert len(found) == len({*found}) == 170
    scores = [hit.score for page in pages for hit in page.hits]
    assert scores == sorted(scores, reverse=True)


def test_collapsed_hits_contain_vector_hits(conf: Configuration) -> None:
    write(conf, *PAGES, doc("e", "automobile", host="e.example"))
    result = search(conf, "car", SearchOptions(collapse_mode="host"))
    assert [hit.fields["host"] for hit in result.hits] == ["a.example", "e.example"]
    assert result.total == 3


def test_cursor_and_order_by_date_use_words_alone(conf: Configuration) -> None:
    write(conf, *PAGES)
    assert ids(EmbeddedSearcher(conf).search("car", cursor="*")) == ["d"]
    assert ids(search(conf, "car", SearchOptions(newest_first=True))) == ["d"]


def test_explanation_names_both_ranks(conf: Configuration) -> None:
    write(conf, *PAGES)
    searcher = EmbeddedSearcher(conf)
    explanation = searcher.explain("car", "d")
    assert explanation is not None
    assert "(rank 1 by words)" in explanation
    assert "by vectors, cosine 1.000)" in explanation
    by_vector = searcher.explain("car", "a")
    assert by_vector is not None
    assert by_vector.startswith("hybrid score = ")
    assert searcher.explain("car", "c") is None


def test_unchanged_text_is_encoded_once(conf: Configuration, encoder: type[TopicEncoder]) -> None:
    write(conf, *PAGES)
    assert len(encoder.texts) == 4
    write(conf, *PAGES, reindex=True)
    write(conf, doc("a", "the engine of an automobile", digest="another signature"))
    assert len(encoder.texts) == 4
    assert "a" in ids(search(conf, "car"))
    write(conf, doc("a", "noodles"))
    assert encoder.texts[4:] == ["a\nnoodles"]
    assert sorted(ids(search(conf, "dinner"))) == ["a", "b"]


def test_rebuilt_index_uses_vectors_again(conf: Configuration, encoder: type[TopicEncoder]) -> None:
    write(conf, *PAGES)
    version = EmbeddedIndexWriter(conf).index_dir.path / "index.json"
    version.write_text('{"schema": 0}')
    write(conf, *PAGES, reindex=True)
    assert len(encoder.texts) == 4
    assert ids(search(conf, "car")) == ["d", "a"]


def test_changed_model_is_encoded_again(
    conf: Configuration, encoder: type[TopicEncoder], capsys: pytest.CaptureFixture[str]
) -> None:
    write(conf, *PAGES)
    encoder.model, encoder.dimensions = "topics 2", 5
    assert ids(search(conf, "car")) == ["d"]  # by words: vectors of two models are not compared
    assert "has a vector of topics 2: run index -reindex" in capsys.readouterr().err
    write(conf, *PAGES, reindex=True)
    assert len(encoder.texts) == 8
    assert ids(search(conf, "car")) == ["d", "a"]


def test_deleted_page_loses_its_vector(conf: Configuration) -> None:
    write(conf, *PAGES)
    write(conf, delete=["a"])
    assert "a" not in store(conf).ids()
    assert ids(search(conf, "car")) == ["d"]


def test_page_that_loses_its_text_loses_its_vector(conf: Configuration) -> None:
    write(conf, *PAGES)
    write(conf, doc("a", "", title=""), doc("b", "zzz"))
    assert store(conf).ids() == ["c", "d"]


def test_page_in_another_language_has_no_vector(conf: Configuration, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TopicEncoder, "languages", frozenset({"en"}))
    write(conf, *PAGES, doc("f", "automobile", lang="de"), doc("g", "automobile", lang=""))
    assert sorted(store(conf).ids()) == ["a", "b", "c", "d", "g"]


def test_searcher_uses_vectors_of_its_commit_after_reopen(conf: Configuration) -> None:
    write(conf, *PAGES)
    searcher = EmbeddedSearcher(conf)
    assert ids(searcher.search("car")) == ["d", "a"]
    write(conf, doc("h", "automobile"))
    assert sorted(ids(searcher.reopen().search("car"))) == ["a", "d", "h"]
    assert sorted(ids(searcher.search("car"))) == ["a", "d"]


def test_killed_job_neither_loses_nor_doubles_a_vector(conf: Configuration, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process dies after the vectors are written and before the documents are, and the other way round."""
    write(conf, *PAGES)

    def change() -> None:
        write(conf, doc("a", "noodles"), doc("new", "car"), delete=["d"])

    original = VectorStore.write

    def die_after_write(*args: Any) -> None:
        original(*args)
        raise KeyboardInterrupt

    def die_before_delete(self: VectorStore, ids: Iterable[str]) -> None:
        if "d" in ids:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(VectorStore, "write", die_after_write)
        with pytest.raises(KeyboardInterrupt):
            change()
    assert ids(search(conf, "car")) == ["d"]  # the vector of a is that of the next version, and new is no document
    assert ids(search(conf, "dinner")) == ["b"]
    with monkeypatch.context() as patch:
        patch.setattr(VectorStore, "delete", die_before_delete)
        with pytest.raises(KeyboardInterrupt):
            change()
    assert ids(search(conf, "car")) == ["new"]
    change()
    assert ids(search(conf, "car")) == ["new"]
    assert sorted(ids(search(conf, "dinner"))) == ["a", "b"]
    assert sorted(store(conf).ids()) == ["a", "b", "c", "new"]


def test_vectors_without_documents_are_deleted(conf: Configuration) -> None:
    write(conf, *PAGES)
    conf.set("index.encoder", "")
    write(conf, delete=["a", "b"])
    conf.set("index.encoder", "encoder-topic")
    assert ids(search(conf, "car")) == ["d"]
    write(conf)
    assert sorted(store(conf).ids()) == ["c", "d"]


def test_damaged_vectors_are_reported_and_made_again(conf: Configuration, capsys: pytest.CaptureFixture[str]) -> None:
    write(conf, *PAGES)
    store(conf).path.write_bytes(b"no database at all" * 100)
    assert ids(search(conf, "car")) == ["d"]
    assert "queries are searched by words" in capsys.readouterr().err
    write(conf, *PAGES)
    assert "is damaged" in capsys.readouterr().err
    assert ids(search(conf, "car")) == ["d", "a"]


def test_failing_encoder_stops_the_job_and_not_the_search(
    conf: Configuration, encoder: type[TopicEncoder], capsys: pytest.CaptureFixture[str]
) -> None:
    write(conf, *PAGES)
    encoder.fails = True
    assert ids(search(conf, "car")) == ["d"]
    assert "the query is searched by words" in capsys.readouterr().err
    with pytest.raises(IndexingError, match=r"plug-in encoder-topic failed when it encodes: RuntimeError: no memory"):
        write(conf, doc("z", "car"))


def test_vector_survives_rounding(conf: Configuration) -> None:
    write(conf, *PAGES)
    matrix = VectorMatrix.load(store(conf), "topics 1", 4)
    cosines = matrix.similarities(np.array([1, 0, 0, 0], np.float32))
    assert dict(zip(matrix.ids, cosines.round(2).tolist(), strict=True)) == {"a": 1.0, "b": 0.0, "c": 0.0, "d": 1.0}


def test_damaged_row_is_skipped(conf: Configuration) -> None:
    write(conf, *PAGES)
    with sqlite3.connect(store(conf).path) as database:
        database.execute("update vectors set vector = x'01' where id = 'a'")
    database.close()
    assert ids(search(conf, "car")) == ["d"]


def test_odd_texts_have_vectors(conf: Configuration, monkeypatch: pytest.MonkeyPatch) -> None:
    odd = {
        "long": ["car " + "x" * 1_000_000 + " soup " * 100_000],
        "surrogate": ["\ud800 car \udc00"],
        "mixed": ["car 汽车 машина \u202e سيارة \x00 กขค"],
        "empty": [""],
        "space": [" \u200b\n\t "],
    }
    documents = [NutchDocument({"id": [name], "content": texts}) for name, texts in odd.items()]
    conf.set("index.encoder", "encoder-topic")
    write(conf, *documents)
    assert sorted(store(conf).ids()) == ["long", "mixed", "surrogate"]
    assert sorted(ids(search(conf, "automobile"))) == ["long", "mixed", "surrogate"]


def test_server_without_hybrid_search_is_named_in_error(conf: Configuration) -> None:
    conf.set("elastic.host", "127.0.0.1")
    conf.set("solr.server.url", "http://127.0.0.1:1/solr/nutch")
    for kind in (ElasticIndexWriter, ElasticSearcher, SolrIndexWriter, SolrSearcher):
        with pytest.raises(ConfigurationError, match=r"encoder is set, but (OpenSearch|Solr) has no hybrid search"):
            kind(conf)


def test_words_of_long_queries_and_their_fields_are_compared() -> None:
    parsed = parse_hybrid_query("how do I mend a car? lang:en type:text/html")
    assert parsed is not None
    assert parsed.text == "how do I mend a car?"
    assert [each.term for each in parsed.filters] == ["lang=en", "type=text/html"]
    quoted = 'what does "information retrieval" mean for a library'
    assert parse_hybrid_query(quoted) == HybridQuery(quoted)  # quotes are punctuation in a sentence
    assert parse_hybrid_query("") is None


def test_search_without_encoder_imports_nothing(conf: Configuration) -> None:
    conf.set("index.encoder", "")
    write(conf, *PAGES)
    program = (
        "import sys; from nutch2py import Crawl\n"
        f"with Crawl({conf.get('storage.data.store')!r}, {{'http.agent.name': 'test'}}) as crawl:\n"
        "    assert crawl.search('car').total == 1\n"
        "names = ('onnxruntime', 'sqlite3', 'numpy', 'tokenizers', 'huggingface_hub', 'nutch2py.backends.encoders.on')"
        "\n"
        "print([name for name in sys.modules if name.startswith(names)])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    assert not (Path(store(conf).path)).exists()
