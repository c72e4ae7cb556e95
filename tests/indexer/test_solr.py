"""The Solr writer against a real Solr."""

import base64
import hashlib
import json
import re
import threading
from functools import partial
from pathlib import Path

import pytest

from nutch2py.backends.servers.solr_schema import SolrSchema
from nutch2py.cli import main
from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError, IndexingError
from nutch2py.indexer.index_writers import IndexWriters
from nutch2py.indexer.writers.solr_writer import SolrIndexWriter
from nutch2py.jobs.index.clean_job import clean
from nutch2py.jobs.index.index_job import index
from nutch2py.jobs.index.solrdedup import solrdedup
from nutch2py.records.webpage import CrawlStatus, WebPage
from nutch2py.search.engines.solr_edismax_searcher import SolrEdismaxSearcher
from nutch2py.search.search_backends import search
from nutch2py.table import open_store
from tests.indexer.delivery_suite import (
    DeliverySuite,
    crawl_settings,
    make_gone,
    page_doc,
    set_scores,
    settings_for,
    table_of,
    write,
)
from tests.indexer.pages import page

ADDRESS = "solr.server.url"
settings = partial(settings_for, ADDRESS)


class TestSolr(DeliverySuite):
    name = "Solr"
    description = "SOLRIndexWriter\n\tsolr.server.url : URL of the SOLR instance"
    address = ADDRESS
    batch_size = "solr.commit.size"
    complaint = "Invalid Date String:'soon'"
    scores_come = "alone"

    @pytest.fixture
    def server(self, solr):
        return solr

    def title(self, server, document_id):
        (title,) = SolrEdismaxSearcher(settings(server.url)).get_document(document_id)["title"]
        return title

    def check_crawl(self, server, keys, host):
        found = server.select("page", handler="nutch", rows=3)
        assert found["response"]["numFound"] == len(keys)
        facets = found["facet_counts"]["facet_fields"]
        assert facets["host"] == [host, len(keys)]
        assert dict(zip(*[iter(facets["type"])] * 2, strict=True))["html"] == len(keys)
        first = found["response"]["docs"][0]
        assert "<em>Page</em>" in found["highlighting"][first["id"]]["title"][0]

    def copy_title_to_date(self, folder):
        (folder / "map.xml").write_text(
            '<mapping><fields><copyField source="title" dest="publishedDate"/></fields></mapping>'
        )
        return {"solr.mapping.file": "map.xml"}


def test_deletes_wait_for_commit(solr, tmp_path):
    conf = settings(solr.url, **crawl_settings(tmp_path))
    keys = [f"org.example:http/{number}" for number in range(2)]
    table_of(conf, *keys)
    index(conf, "-all")
    make_gone(conf, keys[0])
    clean(conf, commit=False)
    assert sorted(solr.ids()) == keys
    clean(conf)
    assert solr.ids() == keys[1:]


def test_solrindex_solrdedup_and_solrclean_accept_address(solr, tmp_path, capsys):
    table = f"storage.data.store=embedded:{tmp_path / 'crawldata'}"
    conf = Configuration.load(overrides=dict([table.split("=", 1)]))
    for number, score in enumerate((1.0, 4.0, 2.0)):
        values = {"signature": b"same", "title": f"T{number}", "score": score, "batch_id": "b1"}
        table_of(conf, f"org.example:http/{number}", **values)
    with open_store(conf, WebPage).batch() as batch:
        batch.put("org.example:http/gone", page(status=int(CrawlStatus.GONE)))
    options = ["-D", table, "-D", "plugin.excludes=indexer-embedded"]
    assert main(["solrindex", solr.url, "-all", *options]) == 0
    assert solr.count() == 3
    assert main(["solrdedup", solr.url, *options]) == 0
    assert solr.ids() == ["org.example:http/1"]
    solr.post([{"id": "org.example:http/gone", "url": "http://example.org/gone"}])
    assert main(["solrclean", "crawldb", solr.url, *options]) == 0
    assert solr.ids() == ["org.example:http/1"]
    said = capsys.readouterr().out
    assert "SolrDeleteDuplicates: 2 documents deleted" in said
    assert "CleaningJob: deleted a total of 1 documents" in said
    assert main(["solrdedup", *options]) == 1


def test_solrdedup_keeps_highest_boost_newest_shortest_id(solr):
    same, old, new = "d" * 32, "2025-01-01T00:00:00Z", "2025-06-01T00:00:00Z"
    conf = settings(solr.url)
    write(
        conf,
        page_doc(1, digest=same, boost="2.0", tstamp=old),
        page_doc(2, digest=same, boost="1.0", tstamp=new),
        page_doc(3, digest=same, boost="2.0", tstamp=new),
        page_doc(33, digest=same, boost="2.0", tstamp=new),
        page_doc(4),
        page_doc(5, digest=None),
        page_doc(6, digest=None),
    )
    assert solrdedup(conf) == 3
    assert sorted(solr.ids()) == [f"org.example:http/{number}" for number in (3, 4, 5, 6)]


def test_long_and_unknown_fields_lose_no_document(solr):
    long = "x" * 40_000
    write(
        settings(solr.url),
        page_doc(1, meta_long=long, cache=long, invented=["a", "b"], rawcontent=long),
        page_doc(2, title=long, content=long, anchor=long, url=f"http://example.org/{long}", type=long),
    )
    assert solr.count() == 2
    (found,) = solr.select(r"id:org.example\:http\/1")["response"]["docs"]
    assert len(found["meta_long"][0]) == 10_000
    assert (len(found["cache"]), len(found["rawcontent"]), found["invented"]) == (40_000, 40_000, ["a", "b"])


def test_non_numeric_boost_is_dropped(solr):
    write(settings(solr.url), page_doc(1, boost="NaN"), page_doc(2, boost="Infinity"), page_doc(3))
    assert solr.ids("boost:[* TO *]") == ["org.example:http/3"]


def test_commit_within_makes_documents_searchable(solr):
    conf = settings(solr.url, solr_commit_within="100", solr_commit_index="false")
    write(conf, page_doc(1))
    waited = threading.Event()
    for _ in range(100):
        if solr.count() == 1:
            break
        waited.wait(0.1)
    assert solr.count() == 1


def test_incompatible_schema_is_reported_by_field_before_sending(solr):
    def change(schema):
        schema = re.sub(r'<field name="(digest|batchId)".*\n', "", schema)
        schema = schema.replace('<dynamicField name="*" type="unknown" multiValued="true"/>', "")
        schema = schema.replace('<field name="tstamp" type="date"/>', '<field name="tstamp" type="string"/>')
        schema = schema.replace('<field name="anchor" type="text_general" multiValued="true"/>', _SINGLE_ANCHOR)
        return schema.replace('<field name="lang" type="string"/>', '<field name="lang" type="int"/>')

    solr.configset("old", change)
    address = solr.core("old", "old")
    try:
        with pytest.raises(IndexingError) as raised:
            write(settings(address), page_doc(1, anchor=["a", "b"], lang="en", extra="x"))
        message = str(raised.value)
        for clause in (
            "field batchId is missing",
            "field digest is missing",
            "field extra is missing",
            "field tstamp has the type string, a date is needed",
            "field anchor takes one value, pages have several",
            "field lang has the type int, which does not take 'en'",
            "Load the configset schema/solr there",
        ):
            assert clause in message
        assert "\n" not in message
        assert solr.count("old") == 0
    finally:
        solr.unload("old")


_SINGLE_ANCHOR = '<field name="anchor" type="text_general"/>'


def test_fields_can_be_renamed_by_mapping(solr, tmp_path):
    (tmp_path / "solrindex-mapping.xml").write_text(
        '<mapping><fields><field source="content" dest="h1"/>'
        '<copyField source="title" dest="h2,h3"/></fields></mapping>'
    )
    conf = Configuration(settings(solr.url).raw_properties(), [tmp_path])
    write(conf, page_doc(1, title="T", content="C"))
    (found,) = solr.select("*:*")["response"]["docs"]
    assert (found["h1"], found["h2"], found["h3"], "content" in found) == (["C"], ["T"], ["T"], False)


def _documents(solr):
    """Return Lucene's internal number of each document, which changes when a document is rebuilt."""
    return {each["id"]: each["[docid]"] for each in solr.select("*:*", fl="id,[docid]")["response"]["docs"]}


def test_scores_are_updated_in_place(solr):
    """Terms that are not stored still match, and no document was rebuilt."""
    conf = settings(solr.url)
    write(conf, *(page_doc(number, pagerank="1.0") for number in range(5)))
    numbers = _documents(solr)
    assert set_scores(conf, dict.fromkeys(range(5), 2.0)) == {"alone": 5}
    assert _documents(solr) == numbers
    assert search(conf, "words").total == 5
    write(conf, page_doc(0, pagerank="2.0"))
    assert _documents(solr) != numbers


@pytest.mark.parametrize("weights", ["pagerank,contentLength", "pagerank^0.2,boost^0.1"])
def test_scores_in_indexed_field_resend_documents(solr, weights):
    conf = settings(solr.url, index_weight_fields=weights)
    write(conf, *(page_doc(number, pagerank="1.0") for number in range(2)))
    assert set_scores(conf, {0: 2.0}) == {"whole" if "Length" in weights else "alone": 1}


def test_non_numeric_score_field_is_rejected(solr, tmp_path):
    (tmp_path / "solrindex-mapping.xml").write_text(
        '<mapping><fields><field source="pagerank" dest="meta_rank"/></fields></mapping>'
    )
    conf = Configuration(settings(solr.url).raw_properties(), [tmp_path])
    with pytest.raises(IndexingError, match="meta_rank has the type string, a number is needed"):
        write(conf, page_doc(1, pagerank="1.0"))
    with pytest.raises(IndexingError, match="meta_rank"):
        set_scores(conf, {1: 2.0})


def test_collection_without_score_column_resends_documents():
    version = {"name": "_version_", "type": "long", "indexed": False, "stored": False}
    column = {"name": "pagerank", "type": "float", "indexed": False, "stored": False}
    kinds = [{"name": "float", "class": "solr.FloatPointField", "docValues": True}]
    kinds.append({"name": "long", "class": "solr.LongPointField", "docValues": True})

    def sets(field, **more):
        schema = {"version": 1.6, "fields": [version, field], "fieldTypes": kinds, "copyFields": [], **more}
        return SolrSchema({"schema": schema}).supports_in_place_update("pagerank")

    assert sets(column)
    assert not sets({**column, "stored": True})
    assert not sets({**column, "indexed": True})
    assert not sets({**column, "multiValued": True})
    assert not sets({**column, "docValues": False})
    assert not sets({"name": "pagerank", "type": "float"})
    assert not sets(column, copyFields=[{"source": "pagerank", "dest": "text"}])
    assert not sets(column, fields=[column])
    assert sets(column, version=1.7, fieldTypes=[{"name": each["name"], "class": each["class"]} for each in kinds])


def test_missing_collection_is_reported(solr):
    with pytest.raises(IndexingError, match=r"no Solr collection found at .*/solr/nothing: correct solr\.server\.url"):
        IndexWriters(settings(solr.url.removesuffix("nutch") + "nothing")).prepare()


def test_several_addresses_are_copies_or_replicas(solr):
    other = solr.core("other")
    dead = "http://127.0.0.1:9/solr/nutch"
    try:
        write(settings(f"{solr.url}, {other}"), page_doc(1), page_doc(2), deleted=["org.example:http/2"])
        assert (solr.ids(), solr.ids(core="other")) == (["org.example:http/1"],) * 2
        write(settings(f"{dead} {solr.url}", solr_server_type="lb"), page_doc(3))
        assert (solr.count(), solr.count("other")) == (2, 1)
        root = solr.url.removesuffix("/nutch")
        cloud = {"solr_server_type": "cloud", "solr_collection": "other"}
        write(settings(f"http://127.0.0.1:9/solr,{root}", **cloud), page_doc(4))
        assert (solr.count(), solr.count("other")) == (2, 2)
    finally:
        solr.unload("other")


def test_solr_cloud_is_written_by_collection_name(solr):
    address = solr.start_cloud()
    cloud = {"solr_server_type": "cloud", "solr_collection": "nutch"}
    write(settings(address.removesuffix("/nutch"), **cloud), page_doc(1, title="北京奥运会"), page_doc(2))
    conf = settings(address, search_backend="solr")
    assert [hit.id for hit in search(conf, "奥运会").hits] == ["org.example:http/1"]
    pytest.importorskip("kazoo", reason="kazoo, the client of ZooKeeper, is not installed")
    conf = settings("", **cloud, solr_zookeeper_hosts=solr.zookeeper(), plugin_includes="indexer-solr")
    write(conf, page_doc(3), deleted=["org.example:http/2"])
    assert {hit.id for hit in search(settings(address, search_backend="solr"), "page").hits} == {
        "org.example:http/1",
        "org.example:http/3",
    }


def test_solr_password_is_used(solr):
    salt = b"some salt"
    twice = hashlib.sha256(hashlib.sha256(salt + b"geheim").digest()).digest()
    credentials = f"{base64.b64encode(twice).decode()} {base64.b64encode(salt).decode()}"
    rules = {
        "authentication": {
            "class": "solr.BasicAuthPlugin",
            "blockUnknown": False,
            "credentials": {"nutch": credentials},
        },
        "authorization": {
            "class": "solr.RuleBasedAuthorizationPlugin",
            "permissions": [{"name": "update", "role": "writer"}],
            "user-role": {"nutch": "writer"},
        },
    }
    security = Path(solr.home, "security.json")
    security.write_text(json.dumps(rules))
    try:
        solr.stop()
        solr.start()
        with pytest.raises(IndexingError, match=r"rejects the login \(HTTP 401\): set solr\.auth to true"):
            write(settings(solr.url), page_doc(1))
        auth = {"solr_auth": "true", "solr_auth_username": "nutch"}
        with pytest.raises(IndexingError, match="rejects the login"):
            write(settings(solr.url, **auth, solr_auth_password="wrong"), page_doc(1))
        write(settings(solr.url, **auth, solr_auth_password="geheim"), page_doc(1))
        assert solr.count() == 1
        token = base64.b64encode(b"nutch:geheim").decode()
        writer = SolrIndexWriter(settings(solr.url))
        writer.open(settings(solr.url), {"auth.header.name": "Basic", "auth.header.value": token})
        writer.write(page_doc(2))
        writer.commit()
        writer.close()
        assert solr.count() == 2
    finally:
        security.unlink()
        solr.stop()
        solr.start()


def test_writer_is_enabled_by_address_and_requires_one():
    assert IndexWriters(Configuration({"plugin.includes": "x", "solr.server.url": "http://h/solr/c"})).writer_ids == [
        "indexer-solr"
    ]
    with pytest.raises(ConfigurationError, match="Missing SOLR URL"):
        IndexWriters(Configuration({"plugin.includes": "indexer-solr"})).prepare()
    excluded = {"plugin.includes": "x", "plugin.excludes": "indexer-solr", "solr.server.url": "http://h/solr/c"}
    assert IndexWriters(Configuration(excluded)).writer_ids == []
