"""The writer for Elasticsearch and OpenSearch against a real OpenSearch."""

import re
import threading

import pytest

from nutch2py.conf import Configuration
from nutch2py.errors import ConfigurationError, IndexingError
from nutch2py.indexer.elastic import index_id
from nutch2py.indexer.writers import IndexWriters
from nutch2py.jobs.clean import clean
from nutch2py.jobs.dedup import dedup
from nutch2py.jobs.index import index
from nutch2py.table import Query, open_store
from nutch2py.webpage import CrawlStatus, ParseStatusCode, WebPage
from tests.indexer.opensearch_server import guarded
from tests.indexer.pages import doc, page
from tests.jobs.crawl import SETTINGS, rounds, site


def settings(url, **more):
    given = {name.replace("_", "."): value for name, value in more.items()}
    return Configuration.load(overrides={"elastic.host": url, **given})


def page_doc(number, **fields):
    """Return a document as a crawl makes them."""
    given = {
        "url": f"http://example.org/{number}",
        "host": "example.org",
        "title": f"Page {number}",
        "content": f"Words of page {number}",
        "digest": f"{number:032x}",
        "boost": "1.0",
        "tstamp": "2026-01-01T00:00:00.000Z",
        "batchId": "b",
        **fields,
    }
    return doc(f"org.example:http/{number}", **given)


def write(conf, *documents, deleted=()):
    with IndexWriters(conf) as writers:
        for document in documents:
            writers.write(document)
        for document_id in deleted:
            writers.delete(document_id)
        writers.commit()
        return writers.refused


def crawl_conf(tmp_path, url):
    table = f"embedded:{tmp_path / 'crawldata'}"
    return Configuration.load(overrides={**SETTINGS, "storage.data.store": table, "elastic.host": url})


def test_the_documents_of_a_crawl_arrive_and_those_of_pages_that_go_are_deleted(opensearch, tmp_path, capsys):
    conf = crawl_conf(tmp_path, opensearch.url)
    with site() as root:
        (tmp_path / "seeds").write_text("".join(f"{root}/{number}\n" for number in range(12)))
        rounds(conf, str(tmp_path / "seeds"), 3)
    index(conf, "-all")
    store = open_store(conf, WebPage)
    parsed = {
        key
        for key, row in store.scan(Query(frozenset({WebPage.status, WebPage.parse_status})))
        if row.parse_status is not None
        and (row.parse_status.major, row.status) == (ParseStatusCode.SUCCESS, CrawlStatus.FETCHED)
        and row.parse_status.minor != ParseStatusCode.REDIRECT
    }
    assert len(parsed) > 20
    assert sorted(opensearch.ids()) == sorted(parsed)
    said = capsys.readouterr().out
    assert "ElasticIndexWriter\n\telastic.host : addresses of the cluster (http://127.0.0.1:" in said
    assert f"IndexingJob: {len(parsed)} documents added, 0 deleted, 0 skipped\n" in said
    found = opensearch.document(min(parsed))
    assert (found["id"], found["host"]) == (min(parsed), root.removeprefix("http://").partition(":")[0])
    assert not (tmp_path / "crawldata" / "index").exists()

    gone = min(parsed)
    changed = WebPage({}, frozenset())
    changed.status = CrawlStatus.GONE
    with store.batch() as batch:
        batch.put(gone, changed)
    clean(conf)
    assert sorted(opensearch.ids()) == sorted(parsed - {gone})


def table_of(conf, *keys, signature=None, **values):
    store = open_store(conf, WebPage)
    store.create()
    with store.batch() as batch:
        for key in keys:
            made = page(signature=signature or key.encode(), text="some text", content_type="text/html", **values)
            made.title = made.title or "T"
            made.markers["_updmrk_"] = "b1"
            batch.put(key, made)


def test_several_tasks_write_at_once(opensearch, tmp_path):
    conf = crawl_conf(tmp_path, opensearch.url)
    for name, value in (("mapreduce.runner", "local"), ("mapreduce.job.maps", "4"), ("elastic.max.bulk.docs", "7")):
        conf.set(name, value)
    keys = [f"org.example.h{number % 9}:http/{number}" for number in range(400)]
    table_of(conf, *keys)
    assert index(conf, "-all").count("IndexerStatus", "added") == 400
    assert sorted(opensearch.ids()) == sorted(keys)


def test_duplicates_that_dedup_finds_are_taken_out_by_clean(opensearch, tmp_path):
    conf = crawl_conf(tmp_path, opensearch.url)
    keys = [f"org.example:http/{number}" for number in range(5)]
    table_of(conf, *keys[:3], signature=b"same", score=1.0)
    table_of(conf, *keys[3:], score=1.0)
    index(conf, "-all")
    assert sorted(opensearch.ids()) == keys
    dedup(conf)
    clean(conf)
    assert len(opensearch.ids()) == 3
    assert {*keys[3:]} < {*opensearch.ids()}


@pytest.mark.parametrize("way", ["stop", "crash"])
def test_a_server_stopped_in_mid_index_and_started_again_loses_nothing_and_doubles_nothing(opensearch, way):
    stopped = threading.Event()
    failures = []

    def restart():
        try:
            getattr(opensearch, way)()
            stopped.set()
            opensearch.start()
        except Exception as error:  # noqa: BLE001
            failures.append(error)
            stopped.set()

    restarting = threading.Thread(target=restart)
    with IndexWriters(settings(opensearch.url, elastic_max_bulk_docs="100")) as writers:
        for number in range(3000):
            if number == 1000:
                restarting.start()
            if number == 1500:
                assert stopped.wait(90)
            writers.write(page_doc(number))
            if number % 3 == 0:
                writers.write(page_doc(number, title="again"))
        for number in range(0, 3000, 10):
            writers.delete(f"org.example:http/{number}")
        writers.commit()
    restarting.join()
    assert not failures
    assert sorted(opensearch.ids()) == sorted(f"org.example:http/{number}" for number in range(3000) if number % 10)
    assert len(opensearch.ids("title:again")) == 900


@pytest.mark.parametrize(
    "path", ["a b", "'x'", '"x"', "a&b=c;d", "<tag>", "奥运会", "%E5%A5%A5", "a\\b", "é\u0301\u2028x"]
)
def test_ids_of_any_characters_are_replaced_found_and_deleted(opensearch, path):
    key, other = f"org.example:http/{path}", f"org.example:http/{path}2"
    conf = settings(opensearch.url)
    for title in ("first", "second"):
        write(conf, doc(key, title=title), doc(other, title=title))
    assert sorted(opensearch.ids()) == sorted([key, other])
    assert opensearch.document(key)["title"] == "second"
    write(conf, deleted=[key, "org.example:http/never"])
    assert opensearch.ids() == [other]


def test_ids_of_more_than_512_bytes_are_cut_without_becoming_one(opensearch):
    conf = settings(opensearch.url)
    keys = [f"org.example:http/{'奥' * 300}{end}" for end in "ab"]
    write(conf, *(doc(key, title="T") for key in keys), *(doc(key, title="T") for key in keys))
    assert sorted(opensearch.ids()) == keys
    assert {len(hit["_id"].encode()) <= 512 for hit in opensearch.search()} == {True}
    assert opensearch.document(index_id(keys[1]))["id"] == keys[1]
    write(conf, deleted=keys[:1])
    assert opensearch.ids() == keys[1:]


def test_a_document_that_is_refused_is_named_and_counted_and_the_others_go_in(opensearch, capsys):
    documents = [page_doc(number, **({"tstamp": "soon"} if number in (3, 180) else {})) for number in range(300)]
    assert write(settings(opensearch.url), *documents) == 2
    assert len(opensearch.ids()) == 298
    said = capsys.readouterr().err
    named = re.findall(r"refuses the document (\S+):", said)
    assert named == ["org.example:http/3", "org.example:http/180"]
    assert "failed to parse date field [soon]" in said
    assert "The search server refused 2 of 300 documents" in said


def test_a_refused_document_is_in_the_counts_of_the_job(opensearch, tmp_path, capsys):
    (tmp_path / "index-writers.xml").write_text(
        '<writers><writer id="e" class="org.apache.nutch.indexwriter.elastic.ElasticIndexWriter"><parameters/>'
        '<mapping><copy><field source="title" dest="publishedDate"/></copy></mapping></writer></writers>'
    )
    given = crawl_conf(tmp_path, opensearch.url)
    conf = Configuration(given.raw(), [tmp_path, *given.folders])
    table_of(conf, "org.example:http/0", title="2026-01-01T00:00:00Z")
    table_of(conf, "org.example:http/1", title="not a date")
    assert index(conf, "-all").count("IndexerStatus", "refused") == 1
    assert "1 documents added, 0 deleted, 0 skipped, 1 refused by the index" in capsys.readouterr().out
    assert opensearch.ids() == ["org.example:http/0"]


def test_a_server_that_refuses_every_document_ends_the_job(opensearch):
    with pytest.raises(IndexingError, match=r"refuses every document: .*failed to parse date"):
        write(settings(opensearch.url), *(page_doc(number, tstamp="soon") for number in range(80)))


def test_a_batch_that_a_server_has_not_the_memory_for_is_sent_in_parts(opensearch, capsys):
    text = "long text " * 1_000_000  # it takes a tenth of its memory of 512 MB at once (indexing pressure, HTTP 429)
    documents = [page_doc(number, cache=text) for number in range(6)]
    assert write(settings(opensearch.url, elastic_max_bulk_size="900000000"), *documents) == 0
    assert len(opensearch.call("GET", "nutch/_search?_source=id")["hits"]["hits"]) == 6
    assert "rejected execution" in capsys.readouterr().err


def test_an_index_is_made_with_types_for_what_nutch_sends(opensearch):
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


def test_an_index_is_made_of_a_file_of_ones_own(opensearch, tmp_path):
    given = settings(opensearch.url, elastic_index_file="mine.json", elastic_index="mine")
    conf = Configuration(given.raw(), [tmp_path])
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


def test_an_index_that_does_not_fit_is_told_field_by_field_before_anything_is_sent(opensearch):
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


def test_an_index_that_is_there_keeps_its_fields_and_takes_new_ones_unless_it_is_strict(opensearch):
    opensearch.call("PUT", "old", {"mappings": {"properties": {"title": {"type": "keyword"}}}})
    write(settings(opensearch.url, elastic_index="old"), page_doc(1))
    assert (opensearch.fields("old")["title"]["type"], opensearch.ids(index="old")) == (
        "keyword",
        ["org.example:http/1"],
    )
    opensearch.call("PUT", "strict", {"mappings": {"dynamic": "strict", "properties": {"id": {"type": "keyword"}}}})
    with pytest.raises(IndexingError, match="field title is missing"):
        write(settings(opensearch.url, elastic_index="strict"), page_doc(1))


def test_an_alias_is_written_to(opensearch):
    opensearch.call("PUT", "nutch-1", {"aliases": {"nutch": {}}})
    write(settings(opensearch.url), page_doc(1))
    assert opensearch.ids(index="nutch-1") == ["org.example:http/1"]


def test_a_block_on_the_index_ends_the_job_and_is_told(opensearch):
    conf = settings(opensearch.url)
    write(conf, page_doc(1))
    opensearch.call("PUT", "nutch/_settings", {"index.blocks.write": True})
    with pytest.raises(IndexingError, match=r"does not let documents in \(HTTP 403\): cluster_block_exception"):
        write(conf, page_doc(2))


def test_a_name_that_no_index_can_have_is_told(opensearch):
    with pytest.raises(IndexingError, match=r"refuses to make it, the index .*/Nutch: invalid_index_name_exception"):
        IndexWriters(settings(opensearch.url, elastic_index="Nutch")).prepare()


def test_deletes_make_no_index(opensearch, tmp_path):
    conf = crawl_conf(tmp_path, opensearch.url)
    store = open_store(conf, WebPage)
    store.create()
    with store.batch() as batch:
        batch.put("org.example:http/gone", page(status=int(CrawlStatus.GONE)))
    assert clean(conf).count("SolrClean", "DELETED") == 1
    assert opensearch.call("GET", "_alias") == {}


def test_the_other_servers_of_a_cluster_are_asked_when_one_is_away(opensearch):
    write(settings(f"127.0.0.1:9, {opensearch.url}"), page_doc(1))
    assert opensearch.ids() == ["org.example:http/1"]


def test_a_login_over_tls_is_used_and_shown_nowhere(opensearch, tmp_path, capsys):
    with guarded(opensearch.url, tmp_path, "nutch", "gehéim") as (url, certificate):
        with pytest.raises(IndexingError, match=r"certificate verify failed.*in elastic\.tls\.ca"):
            IndexWriters(settings(url)).prepare()
        trusted = {"elastic_tls_ca": certificate}
        for login in ({}, {"elastic_username": "nutch", "elastic_password": "wröng"}):
            with pytest.raises(IndexingError, match=r"wants another login \(HTTP 401.*elastic\.username") as raised:
                IndexWriters(settings(url, **trusted, **login)).prepare()
            assert "wröng" not in str(raised.value)
        conf = settings(url, **trusted, elastic_username="nutch", elastic_password="gehéim")
        writers = IndexWriters(conf)
        writers.prepare()
        print(writers.describe())
        assert write(conf, page_doc(1), page_doc(2, tstamp="soon")) == 1
        with pytest.raises(ConfigurationError) as told:
            IndexWriters(settings(url.replace("//", "//nutch:gehéim@"))).prepare()
    assert opensearch.ids() == ["org.example:http/1"]
    said = capsys.readouterr()
    assert "gehéim" not in said.out + said.err + str(told.value)
    assert "use authentication (true)" in said.out


def test_index_writers_xml_of_nutch_1_is_understood(opensearch, tmp_path):
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
    conf = Configuration(settings("", plugin_includes="indexer-elastic").raw(), [tmp_path])
    writers = IndexWriters(conf)
    assert writers.names == ["indexer_elastic_1"]
    writers.prepare()
    assert "documents sent at once (2)" in writers.describe()
    write(conf, *(page_doc(number) for number in range(5)))
    assert opensearch.document("org.example:http/1", "pages")["search"] == "Page 1"
