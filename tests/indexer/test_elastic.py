"""The writer for Elasticsearch and OpenSearch against a real OpenSearch."""

import json
from functools import partial

import pytest

from nutch2py.conf.configuration import Configuration, data_dir
from nutch2py.errors import ConfigurationError, IndexingError
from nutch2py.indexer.index_writers import IndexWriters
from nutch2py.indexer.writers.elastic_writer import elastic_document_id
from nutch2py.jobs.dedup_job import dedup
from nutch2py.jobs.index.clean_job import clean
from nutch2py.jobs.index.index_job import index
from nutch2py.records.webpage import CrawlStatus, WebPage
from nutch2py.search.search_backends import search
from nutch2py.table import open_store
from tests.backends.opensearch_server import guarded
from tests.indexer.delivery_suite import (
    DeliverySuite,
    crawl_settings,
    page_doc,
    set_scores,
    settings_for,
    table_of,
    write,
)
from tests.indexer.pages import doc, page

ADDRESS = "elastic.host"
settings = partial(settings_for, ADDRESS)


class TestOpenSearch(DeliverySuite):
    name = "The search server"
    description = "ElasticIndexWriter\n\telastic.host : addresses of the cluster"
    address = ADDRESS
    batch_size = "elastic.max.bulk.docs"
    complaint = "failed to parse date field [soon]"
    scores_come = "whole"

    @pytest.fixture
    def server(self, opensearch):
        return opensearch

    def title(self, server, document_id):
        return server.document(document_id)["title"]

    def check_crawl(self, server, keys, host):
        found = server.document(min(keys))
        assert (found["id"], found["host"]) == (min(keys), host)

    def copy_title_to_date(self, folder):
        (folder / "index-writers.xml").write_text(
            '<writers><writer id="e" class="org.apache.nutch.indexwriter.elastic.ElasticIndexWriter"><parameters/>'
            '<mapping><copy><field source="title" dest="publishedDate"/></copy></mapping></writer></writers>'
        )
        return {}


def test_dedup_duplicates_are_deleted_by_clean(opensearch, tmp_path):
    conf = settings(opensearch.url, **crawl_settings(tmp_path))
    keys = [f"org.example:http/{number}" for number in range(5)]
    table_of(conf, *keys[:3], signature=b"same", score=1.0)
    table_of(conf, *keys[3:], score=1.0)
    index(conf, "-all")
    assert sorted(opensearch.ids()) == keys
    dedup(conf)
    clean(conf)
    assert len(opensearch.ids()) == 3
    assert {*keys[3:]} < {*opensearch.ids()}


def test_ids_over_512_bytes_are_shortened_uniquely(opensearch):
    conf = settings(opensearch.url)
    keys = [f"org.example:http/{'奥' * 300}{end}" for end in "ab"]
    write(conf, *(doc(key, title="T") for key in keys), *(doc(key, title="T") for key in keys))
    assert sorted(opensearch.ids()) == keys
    assert {len(hit["_id"].encode()) <= 512 for hit in opensearch.search()} == {True}
    assert opensearch.document(elastic_document_id(keys[1]))["id"] == keys[1]
    write(conf, deleted=keys[:1])
    assert opensearch.ids() == keys[1:]


def test_batch_too_large_for_server_is_split(opensearch):
    text = "long text " * 1_000_000  # it takes a tenth of its memory of 512 MB at once (indexing pressure, HTTP 429)
    documents = [page_doc(number, cache=text) for number in range(6)]
    assert write(settings(opensearch.url, elastic_max_bulk_size="900000000"), *documents) == 0
    assert len(opensearch.call("GET", "nutch/_search?_source=id")["hits"]["hits"]) == 6


def test_index_is_created_with_field_types(opensearch):
    conf = settings(opensearch.url)
    writers = IndexWriters(conf)
    writers.prepare()
    fields = opensearch.fields()
    kinds = {name: fields[name]["type"] for name in ("id", "url", "content", "tstamp", "boost", "contentLength")}
    assert [*kinds.values()] == ["keyword", "keyword", "text", "date", "float", "long"]
    long = "x" * 40_000
    document = page_doc(
        1,
        title="北京奥运会 Running",
        boost="NaN",
        meta_when="2026-01-01",
        cache=long,
        meta_long=long,
        contentLength="12, 12",
        type=["text/html", "text"],
        **{"metatag.description": "of Beijing"},
    )
    assert write(conf, document, page_doc(2, meta_when="soon")) == 0
    assert opensearch.fields()["meta_when"]["type"] == "keyword"
    first = ["org.example:http/1"]
    for query in (
        "title:奥运会",
        "title:runs",
        "url.words:example AND title:北京",
        "type:text",
        "metatag.description:Beijing",
    ):
        assert opensearch.ids(query) == first, query
    assert opensearch.ids("title:奥北") == []
    assert opensearch.ids("boost:*") == ["org.example:http/2"]


def test_index_is_created_from_own_mapping_file(opensearch, tmp_path):
    given = settings(opensearch.url, elastic_index_file="mine.json", elastic_index="mine")
    conf = Configuration(given.raw_properties(), [tmp_path])
    with pytest.raises(ConfigurationError, match=r"mine\.json, which is not in the configuration folder"):
        IndexWriters(conf).prepare()
    (tmp_path / "mine.json").write_text("{")
    with pytest.raises(ConfigurationError, match=r"cannot read .*mine\.json.*repair the file's JSON"):
        IndexWriters(conf).prepare()
    (tmp_path / "mine.json").write_text(
        '{"mappings": {"properties": {"lang": {"type": "text"}, "content": {"type": "text"}}}}'
    )
    IndexWriters(conf).prepare()
    assert opensearch.fields("mine")["lang"]["type"] == "text"


def _definition():
    return json.loads((data_dir("schema") / "elastic" / "index.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("words", [True, False])
def test_scores_are_partial_updates_with_full_source(opensearch, tmp_path, words):
    """With our term fields in ``_source``, and without."""
    definition, given = _definition(), {}
    if words:
        del definition["mappings"]["_source"]
    else:
        properties = definition["mappings"]["properties"]
        definition["mappings"]["properties"] = {n: v for n, v in properties.items() if not n.startswith("terms_")}
        given = {"index_terms": "false"}
    (tmp_path / "mine.json").write_text(json.dumps(definition))
    more = settings(opensearch.url, elastic_index_file="mine.json", elastic_index=f"mine{words}".lower(), **given)
    conf = Configuration(more.raw_properties(), [tmp_path])
    write(conf, *(page_doc(number, pagerank="1.0") for number in range(3)))
    with IndexWriters(conf) as writers:
        ids = {page_doc(number).id: 4.0 for number in (0, 1)} | {"org.example:http/never": 4.0}
        assert writers.update_scores(ids, 0.02, lambda ids: []) == {"alone": 2, "absent": 1}
        write(conf, deleted=[page_doc(1).id])
        writers.commit()
    if words:
        hits = search(conf, "words").hits
        assert [(hit.id, hit.fields["pagerank"]) for hit in hits] == [(page_doc(0).id, "4.0"), (page_doc(2).id, "1.0")]
        assert hits[0].score / hits[1].score == pytest.approx(4**0.35, rel=1e-3)
        write(conf, page_doc(0, pagerank="4.0"))
        again = search(conf, "words").hits  # other numbers of deleted documents count for both
        assert again[0].score / again[1].score == pytest.approx(hits[0].score / hits[1].score, rel=1e-5)
    else:
        assert opensearch.ids("pagerank:4", index="minefalse") == [page_doc(0).id]


def test_missing_index_rejects_scores(opensearch):
    assert set_scores(settings(opensearch.url, elastic_index="never"), {1: 2.0}) == {"absent": 1}


def test_incompatible_index_is_reported_by_field_before_sending(opensearch):
    opensearch.call(
        "PUT",
        "old",
        {
            "mappings": {
                "properties": {
                    "content": {"type": "keyword"},
                    "tstamp": {"type": "keyword"},
                    "boost": {"type": "text"},
                    "lang": {"type": "integer"},
                    "host": {"properties": {"name": {"type": "keyword"}}},
                }
            }
        },
    )
    conf = settings(opensearch.url, elastic_index="old")
    with pytest.raises(IndexingError) as raised:
        IndexWriters(conf).prepare()
    for clause in ("content has the type keyword, a text", "tstamp has the type keyword, a date", "boost has the type"):
        assert f"field {clause}" in str(raised.value)
    opensearch.call("DELETE", "old")
    opensearch.call(
        "PUT", "old", {"mappings": {"properties": {"lang": {"type": "integer"}, "host": {"type": "object"}}}}
    )
    with pytest.raises(IndexingError) as raised:
        write(conf, page_doc(1, lang="en"))
    message = str(raised.value)
    assert "field lang has the type integer, which does not take 'en'" in message
    assert "field host has the type object, which does not take 'example.org'" in message
    assert "\n" not in message
    assert opensearch.ids(index="old") == []


def test_existing_index_is_extended_unless_strict(opensearch):
    opensearch.call("PUT", "old", {"mappings": {"properties": {"title": {"type": "keyword"}}}})
    write(settings(opensearch.url, elastic_index="old"), page_doc(1))
    assert (opensearch.fields("old")["title"]["type"], opensearch.ids(index="old")) == (
        "keyword",
        ["org.example:http/1"],
    )
    opensearch.call("PUT", "strict", {"mappings": {"dynamic": "strict", "properties": {"id": {"type": "keyword"}}}})
    with pytest.raises(IndexingError, match="field title is missing"):
        write(settings(opensearch.url, elastic_index="strict"), page_doc(1))


def test_alias_is_written_to(opensearch):
    opensearch.call("PUT", "nutch-1", {"aliases": {"nutch": {}}})
    write(settings(opensearch.url), page_doc(1))
    assert opensearch.ids(index="nutch-1") == ["org.example:http/1"]


def test_index_block_ends_job_with_reason(opensearch):
    conf = settings(opensearch.url)
    write(conf, page_doc(1))
    opensearch.call("PUT", "nutch/_settings", {"index.blocks.write": True})
    with pytest.raises(IndexingError, match=r"does not accept documents \(HTTP 403\): cluster_block_exception"):
        write(conf, page_doc(2))


def test_invalid_index_name_is_reported(opensearch):
    with pytest.raises(
        IndexingError, match=r"rejects a request to .*/Nutch \(create index\): invalid_index_name_exception"
    ):
        IndexWriters(settings(opensearch.url, elastic_index="Nutch")).prepare()


def test_deletes_create_no_index(opensearch, tmp_path):
    conf = settings(opensearch.url, **crawl_settings(tmp_path))
    store = open_store(conf, WebPage)
    store.create()
    with store.batch() as batch:
        batch.put("org.example:http/gone", page(status=int(CrawlStatus.GONE)))
    assert clean(conf).count("SolrClean", "DELETED") == 1
    assert opensearch.call("GET", "_alias") == {}


def test_other_cluster_hosts_are_used_when_one_is_unavailable(opensearch):
    write(settings(f"127.0.0.1:9, {opensearch.url}"), page_doc(1))
    assert opensearch.ids() == ["org.example:http/1"]


def test_login_over_tls_is_used_and_hidden(opensearch, tmp_path, capsys):
    with guarded(opensearch.url, tmp_path, "nutch", "gehéim") as (url, certificate):
        with pytest.raises(IndexingError, match=r"certificate verify failed.*set elastic\.tls\.ca"):
            IndexWriters(settings(url)).prepare()
        trusted = {"elastic_tls_ca": certificate}
        for login in ({}, {"elastic_username": "nutch", "elastic_password": "wröng"}):
            with pytest.raises(IndexingError, match=r"rejects the login \(HTTP 401.*elastic\.username") as raised:
                IndexWriters(settings(url, **trusted, **login)).prepare()
            assert "wröng" not in str(raised.value)
        conf = settings(url, **trusted, elastic_username="nutch", elastic_password="gehéim")
        writers = IndexWriters(conf)
        writers.prepare()
        print(writers.describe())
        assert write(conf, page_doc(1), page_doc(2, tstamp="soon")) == 1
        with pytest.raises(ConfigurationError) as raised_error:
            IndexWriters(settings(url.replace("//", "//nutch:gehéim@"))).prepare()
    assert opensearch.ids() == ["org.example:http/1"]
    said = capsys.readouterr()
    assert "gehéim" not in said.out + said.err + str(raised_error.value)
    assert "use authentication (true)" in said.out


def test_index_writers_xml_of_nutch_1_is_read(opensearch, tmp_path):
    host, port = opensearch.url.removeprefix("http://").split(":")
    (tmp_path / "index-writers.xml").write_text(f"""<writers xmlns="http://lucene.apache.org/nutch">
      <writer id="indexer_elastic_1" class="org.apache.nutch.indexwriter.elastic.ElasticIndexWriter">
        <parameters>
          <param name="host" value="{host}"/><param name="port" value="{port}"/><param name="scheme" value="http"/>
          <param name="index" value="pages"/><param name="username" value="elastic"/><param name="password" value=""/>
          <param name="max.bulk.docs" value="2"/><param name="max.bulk.size" value="2500500"/>
          <param name="exponential.backoff.millis" value="100"/><param name="exponential.backoff.retries" value="10"/>
          <param name="bulk.close.timeout" value="600"/>
        </parameters>
        <mapping>
          <copy><field source="title" dest="title,search"/></copy><rename/><remove><field source="segment"/></remove>
        </mapping>
      </writer></writers>""")
    conf = Configuration(settings("", plugin_includes="indexer-elastic").raw_properties(), [tmp_path])
    writers = IndexWriters(conf)
    assert writers.writer_ids == ["indexer_elastic_1"]
    writers.prepare()
    assert "documents sent at once (2)" in writers.describe()
    write(conf, *(page_doc(number) for number in range(5)))
    assert opensearch.document("org.example:http/1", "pages")["search"] == "Page 1"
