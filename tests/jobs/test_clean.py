"""CleaningJob: which documents it deletes, from every index."""

import json

import pytest

from nutch2py.cli import main
from nutch2py.conf.configuration import Configuration
from nutch2py.jobs.dedup_job import mark_duplicate
from nutch2py.jobs.index.clean_job import clean
from nutch2py.jobs.index.index_job import index
from nutch2py.records.cells import ParseStatus
from nutch2py.records.webpage import CrawlStatus, Mark, ParseStatusCode, WebPage
from nutch2py.search.search_backends import search
from nutch2py.table import open_store
from tests.jobs.test_dedup import fill, options, page

REDIRECT = ParseStatus(ParseStatusCode.SUCCESS, ParseStatusCode.REDIRECT)


def robots(**values):
    made = page(b"r", **values)
    made.metadata["robots"] = b"noindex"
    return made


def tagged(value):
    made = page(b"t")
    made.headers["X-Robots-Tag"] = value
    return made


@pytest.fixture
def table(conf):
    """Give a configuration with a table of every kind of row."""
    fill(
        conf,
        {
            "org.a:http/good": page(b"1"),
            "org.a:http/gone": page(b"2", status=CrawlStatus.GONE),
            "org.a:http/moved": page(b"3", status=CrawlStatus.REDIR_PERM),
            "org.a:http/moved-for-now": page(b"4", status=CrawlStatus.REDIR_TEMP),
            "org.a:http/refreshed": page(b"5", parse_status=REDIRECT),
            "org.a:http/robots": robots(),
            "org.a:http/tagged": tagged("noindex, nofollow"),
            "org.a:http/tagged-for-others": tagged("otherbot: noindex"),
            "org.a:http/emptied": page(b"6", title=None, text=None),
            "org.a:http/untitled": page(b"7", title=None),
            "org.a:http/duplicate": page(b"1"),
            "org.a:http/was-duplicate": page(b"8"),
            "org.a:http/failed": page(b"9", parse_status=ParseStatus(ParseStatusCode.FAILED)),
            "org.a:http/unfetched": page(None, status=CrawlStatus.UNFETCHED, parse_status=None),
        },
    )
    with open_store(conf, WebPage).batch() as batch:
        mark_duplicate(batch, "org.a:http/duplicate", b"1".hex(), "org.a:http/good")
        mark_duplicate(batch, "org.a:http/was-duplicate", b"old".hex(), "org.a:http/good")
    return conf


DELETED = {
    *("org.a:http/gone", "org.a:http/moved", "org.a:http/moved-for-now", "org.a:http/refreshed"),
    *("org.a:http/robots", "org.a:http/tagged", "org.a:http/emptied", "org.a:http/duplicate"),
}


def deleted(conf, tmp_path, **more):
    conf = Configuration(conf.raw_properties(), conf.conf_dirs)
    conf.set("plugin.includes", "indexer-(jsonl|dummy)")
    conf.set("indexer-jsonl.path", str(tmp_path / "index"))
    conf.set("indexer-dummy.path", str(tmp_path / "notes"))
    conf.set("indexer-dummy.delete", True)
    for name, value in more.items():
        conf.set(name.replace("_", "."), value)
    result = clean(conf)
    return result, [json.loads(line)["delete"] for line in (tmp_path / "index").read_text().splitlines()]


def test_gone_redirected_duplicate_and_noindex_documents_are_deleted(table, tmp_path, capsys):
    result, ids = deleted(table, tmp_path)
    assert sorted(ids) == sorted(DELETED)
    notes = (tmp_path / "notes").read_text().splitlines()
    assert sorted(notes) == sorted([*(f"delete\t{key}" for key in DELETED), "commit"])
    assert result.counters["CleaningJob"] == {"gone": 1, "redirected": 3, "duplicate": 1, "noindex": 3}
    assert result.count("SolrClean", "DELETED") == 8
    said = capsys.readouterr().out
    assert said.startswith("CleaningJob: starting\n")
    assert said.endswith("CleaningJob: deleted a total of 8 documents\nCleaningJob: done\n")


def test_noindex_documents_can_be_kept(table, tmp_path):
    _, ids = deleted(table, tmp_path, indexer_delete_robots_noindex="false")
    assert set(ids) == DELETED - {"org.a:http/robots", "org.a:http/tagged", "org.a:http/emptied"}


def test_redirected_documents_can_be_kept_as_in_nutch(table, tmp_path):
    _, ids = deleted(table, tmp_path, clean_redirects="false")
    assert set(ids) == DELETED - {"org.a:http/moved", "org.a:http/moved-for-now", "org.a:http/refreshed"}


def test_documents_with_robots_header_can_be_kept_as_in_nutch(table, tmp_path):
    _, ids = deleted(table, tmp_path, parser_robots_header="false")
    assert set(ids) == DELETED - {"org.a:http/tagged"}


@pytest.mark.parametrize(("words", "committed"), [([], True), (["-noCommit"], False)])
def test_commit_can_be_disabled(table, tmp_path, words, committed):
    given = ["plugin.includes=indexer-dummy", f"indexer-dummy.path={tmp_path / 'notes'}", "indexer-dummy.delete=true"]
    assert main(["clean", *options(table), *(f"-D{each}" for each in given), *words]) == 0
    notes = (tmp_path / "notes").read_text().splitlines()
    assert ("commit" in notes, len([note for note in notes if note.startswith("delete")])) == (committed, 8)


def test_table_without_such_pages_leaves_index_unchanged(conf, tmp_path):
    fill(conf, {"org.a:http/good": page(b"1")})
    conf.set("plugin.includes", "indexer-dummy")
    conf.set("indexer-dummy.path", str(tmp_path / "notes"))
    clean(conf)
    assert not (tmp_path / "notes").exists()


def test_deleted_documents_are_not_found(conf, tmp_path):
    conf.set("plugin.includes", "index-basic|indexer-embedded")
    conf.set("index.embedded.path", str(tmp_path / "index"))
    rows = {f"org.a:http/{number}": page(bytes([number]), text="words to find") for number in range(3)}
    for made in rows.values():
        made.markers[Mark.UPDATEDB] = "b1"
    fill(conf, rows)
    index(conf, "-all")
    assert search(conf, "find").total == 3
    gone = WebPage({}, frozenset())
    gone.status = int(CrawlStatus.GONE)
    fill(conf, {"org.a:http/1": gone})
    clean(conf)
    assert sorted(hit.id for hit in search(conf, "find").hits) == ["org.a:http/0", "org.a:http/2"]
