"""Tests that every writer to a server must pass: a subclass runs them with its writer and a real server.

It provides a fixture ``server``: a running :class:`tests.services.Service` without documents, with ``url`` and
``ids(query)``; and the abstract parts of :class:`DeliverySuite`.
"""

import re
import threading

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import DeletionsRefusedError, IndexingError
from nutch2py.indexer.index_writers import IndexWriters
from nutch2py.jobs.index.clean_job import clean
from nutch2py.jobs.index.index_job import index
from nutch2py.records.webpage import CrawlStatus, ParseStatusCode, WebPage
from nutch2py.search.search_backends import search
from nutch2py.table import TableQuery, open_store
from tests.indexer.pages import doc, page
from tests.jobs.crawl import SETTINGS, rounds, site


def settings_for(address, url, **more):
    """Return a configuration whose documents go to ``url``, named by the property ``address``."""
    given = {name.replace("_", "."): value for name, value in more.items()}
    return Configuration.load(overrides={address: url, **given})


def crawl_settings(folder):
    """Return the properties of a small crawl whose table is in ``folder``."""
    return {**SETTINGS, "storage.data.store": f"embedded:{folder / 'crawldata'}"}


def page_fields(number, **fields):
    """Return the fields of a document as in a crawl; without those set to None."""
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
    return {name: value for name, value in given.items() if value is not None}


def page_doc(number, **fields):
    """Return a document as in a crawl."""
    return doc(f"org.example:http/{number}", **page_fields(number, **fields))


def write(conf, *documents, deleted=()):
    """Write documents, then deletes, and commit; return the number of rejected documents."""
    with IndexWriters(conf) as writers:
        for document in documents:
            writers.write(document)
        for document_id in deleted:
            writers.delete(document_id)
        writers.commit()
        return writers.rejected


def whole(numbers, score=2.0):
    """Return a function that builds documents of ids, as the job does."""
    made = {page_doc(number).id: page_doc(number, pagerank=str(score)) for number in numbers}
    return lambda ids: [made[each] for each in ids]


def set_scores(conf, scores, share=0.02):
    """Update scores of pages, by number; return the counts."""
    made = {page_doc(number).id: page_doc(number, pagerank=str(score)) for number, score in scores.items()}
    with IndexWriters(conf) as writers:
        named = {page_doc(number).id: score for number, score in scores.items()}
        counts = writers.update_scores(named, share, lambda ids: [made[each] for each in ids])
        writers.commit()
    return {name: count for name, count in counts.items() if count}


def sorted_ties(conf, *numbers):
    """Return documents of equal score in the order of the index."""
    urls = [hit.fields["url"] for hit in search(conf, "words").hits]
    return sorted(numbers, key=lambda number: urls.index(f"http://example.org/{number}"))


def table_of(conf, *keys, signature=None, **values):
    """Add pages to the table that are ready for indexing."""
    store = open_store(conf, WebPage)
    store.create()
    with store.batch() as batch:
        for key in keys:
            made = page(signature=signature or key.encode(), text="some text", content_type="text/html", **values)
            made.title = made.title or "T"
            made.markers["_updmrk_"] = "b1"
            batch.put(key, made)


def make_gone(conf, key):
    """Mark a page in the table as gone."""
    changed = WebPage({}, frozenset())
    changed.status = CrawlStatus.GONE
    with open_store(conf, WebPage).batch() as batch:
        batch.put(key, changed)


class DeliverySuite:
    name = ""
    """Name of the server in messages."""
    description = ""
    """The writer's description of itself, up to the address."""
    address = ""
    """Property with the address of the server."""
    batch_size = ""
    """Property with the number of documents per request."""
    complaint = ""
    """The server's complaint about the date "soon"."""

    def settings(self, url, **more):
        """Return a configuration whose documents go to ``url``."""
        return settings_for(self.address, url, **more)

    def title(self, server, document_id):
        """Return the title of a document."""
        raise NotImplementedError

    def check_crawl(self, server, keys, host):
        """Verify the documents of a crawl of one host."""
        raise NotImplementedError

    def copy_title_to_date(self, folder):
        """Write a mapping that copies the title to the date publishedDate; return the properties that name it."""
        raise NotImplementedError

    def test_documents_arrive_and_gone_pages_are_deleted(self, server, tmp_path, capsys):
        conf = self.settings(server.url, **crawl_settings(tmp_path))
        with site() as root:
            (tmp_path / "seeds").write_text("".join(f"{root}/{number}\n" for number in range(12)))
            rounds(conf, str(tmp_path / "seeds"), 3)
        index(conf, "-all")
        parsed = {
            key
            for key, row in open_store(conf, WebPage).scan(
                TableQuery.for_fields([WebPage.status, WebPage.parse_status])
            )
            if row.parse_status is not None
            and (row.parse_status.major, row.status) == (ParseStatusCode.SUCCESS, CrawlStatus.FETCHED)
            and row.parse_status.minor != ParseStatusCode.REDIRECT
        }
        assert len(parsed) > 20
        assert sorted(server.ids()) == sorted(parsed)
        said = capsys.readouterr().out
        assert f"{self.description} (http://127.0.0.1:" in said
        assert f"IndexingJob: {len(parsed)} documents added, 0 deleted, 0 skipped\n" in said
        assert not (tmp_path / "crawldata" / "index").exists()
        self.check_crawl(server, parsed, root.removeprefix("http://").partition(":")[0])

        gone = min(parsed)
        make_gone(conf, gone)
        clean(conf)
        assert sorted(server.ids()) == sorted(parsed - {gone})

    def test_deletions_above_share_are_refused(self, server, tmp_path):
        limits = {"indexer.delete.max.share": "0.2", "indexer.delete.max.count": "3"}
        conf = self.settings(server.url, **crawl_settings(tmp_path), **limits)
        keys = [f"org.example:http/{number}" for number in range(30)]
        table_of(conf, *keys)
        index(conf, "-all")
        for key in keys[:7]:
            make_gone(conf, key)
        with pytest.raises(DeletionsRefusedError, match=r"7 documents of .*, of which 6 may go"):
            clean(conf)
        assert sorted(server.ids()) == sorted(keys)
        conf.set("indexer.delete.max.share", "1")
        clean(conf)
        assert sorted(server.ids()) == sorted(keys[7:])

    def test_documents_are_found_by_id_before_commit(self, server):
        conf = self.settings(server.url, solr_commit_index="false")
        ids = ["org.example:http/a,b", "org.example:http/c?d=e&f", 'org.example:http/"g"']
        with IndexWriters(conf) as writers:
            for document_id in ids:
                writers.write(doc(document_id, **page_fields(1)))
            writers.commit()
            found = writers.find_documents([*ids, "org.example:http/none"])
        assert {*found} == {*ids}
        assert all(names for names in found.values())

    def test_several_tasks_write_concurrently(self, server, tmp_path):
        tasks = {"mapreduce.runner": "local", "mapreduce.job.maps": "4", self.batch_size: "7"}
        conf = self.settings(server.url, **crawl_settings(tmp_path), **tasks)
        keys = [f"org.example.h{number % 9}:http/{number}" for number in range(400)]
        table_of(conf, *keys)
        assert index(conf, "-all").count("IndexerStatus", "added") == 400
        assert sorted(server.ids()) == sorted(keys)

    @pytest.mark.parametrize("way", ["stop", "crash"])
    def test_server_restart_during_index_loses_and_doubles_nothing(self, server, way):
        stopped = threading.Event()
        failures = []

        def restart():
            try:
                getattr(server, way)()
                stopped.set()
                server.start()
            except Exception as error:  # noqa: BLE001
                failures.append(error)
                stopped.set()

        restarting = threading.Thread(target=restart)
        with IndexWriters(self.settings(server.url, **{self.batch_size: "100"})) as writers:
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
        assert sorted(server.ids()) == sorted(f"org.example:http/{number}" for number in range(3000) if number % 10)
        assert len(server.ids("title:again")) == 900

    @pytest.mark.parametrize(
        "path",
        [
            "a b",
            "'x'",
            '"x"',
            "a&b=c;d",
            "<tag>",
            "奥运会",
            "%E5%A5%A5",
            "*",
            "[x TO y]",
            "a\\b",
            "{!term f=id}x",
            "é\u0301\u2028x",
        ],
    )
    def test_ids_with_any_characters_are_replaced_found_and_deleted(self, server, path):
        key, other = f"org.example:http/{path}", f"org.example:http/{path}2"
        conf = self.settings(server.url)
        for title in ("first", "second"):
            write(conf, doc(key, **page_fields(1, title=title)), doc(other, **page_fields(2)))
        assert sorted(server.ids()) == sorted([key, other])
        assert self.title(server, key) == "second"
        write(conf, deleted=[key, "org.example:http/never"])
        assert server.ids() == [other]

    def test_scores_update_only_existing_documents(self, server):
        conf = self.settings(server.url)
        write(conf, *(page_doc(number, pagerank="1.0") for number in range(4)), page_doc(4))
        scores = {0: 1.01, 1: 4.0, 2: 0.25, 4: 2.0, 5: 3.0}
        assert set_scores(conf, scores) == {"same": 1, self.scores_come: 3, "absent": 1}
        assert [hit.fields["url"] for hit in search(conf, "words").hits] == [
            f"http://example.org/{number}" for number in (1, 4, *sorted_ties(conf, 0, 3), 2)
        ]
        shown = {hit.fields["url"][-1]: float(hit.fields["pagerank"]) for hit in search(conf, "words").hits}
        assert shown == {"0": 1.0, "1": 4.0, "2": 0.25, "3": 1.0, "4": 2.0}
        assert set_scores(conf, scores) == {"same": 4, "absent": 1}

    def test_changed_click_factor_resends_document(self, server):
        conf = self.settings(server.url)
        now = {0: "0.5", 2: "1.5", 3: "1.8"}
        pages = {
            number: page_doc(number, pagerank="1.0", **({"clicks": now[number]} if number in now else {}))
            for number in range(5)
        }
        before = {0: "2.0", 1: "0.5", 2: "1.5"}
        for number in range(5):
            clicks = {"clicks": before[number]} if number in before else {}
            write(conf, page_doc(number, pagerank="1.0", **clicks))
        factors = {pages[number].id: float(factor) for number, factor in now.items()}
        named = {page.id: 1.0 for page in pages.values()}
        by_id = {page.id: page for page in pages.values()}
        for counted in ({"whole": 3, "same": 2}, {"same": 5}):
            with IndexWriters(conf) as writers:
                counts = writers.update_scores(named, 0.02, lambda ids: [by_id[each] for each in ids], factors)
                writers.commit()
            assert {name: count for name, count in counts.items() if count} == counted
        shown = {hit.fields["url"][-1]: hit.fields.get("clicks") for hit in search(conf, "words").hits}
        assert shown == {"0": "0.5", "1": None, "2": "1.5", "3": "1.8", "4": None}

    def test_score_of_document_deleted_meanwhile_creates_none(self, server):
        conf = self.settings(server.url)
        write(conf, page_doc(0, pagerank="1.0"), page_doc(1, pagerank="1.0"))
        with IndexWriters(conf) as writers:
            assert writers.update_scores({page_doc(0).id: 2.0, page_doc(1).id: 2.0}, 0.0, whole({0, 1}))["same"] == 0
            if self.scores_come == "alone":
                write(conf, deleted=[page_doc(0).id])
            writers.commit()
        assert len(server.ids()) == (1 if self.scores_come == "alone" else 2)
        assert float(search(conf, "words").hits[-1].fields["pagerank"]) == 2.0

    def test_rejected_document_is_named_and_others_are_written(self, server, capsys):
        documents = [page_doc(number, **({"tstamp": "soon"} if number in (3, 180) else {})) for number in range(300)]
        assert write(self.settings(server.url), *documents) == 2
        assert len(server.ids()) == 298
        said = capsys.readouterr().err
        named = re.findall(rf"{self.name} rejects the document (\S+):", said)
        assert named == ["org.example:http/3", "org.example:http/180"]
        assert self.complaint in said
        assert f"{self.name} rejected 2 of 300 documents" in said

    def test_rejected_document_is_counted(self, server, tmp_path, capsys):
        given = self.settings(server.url, **crawl_settings(tmp_path), **self.copy_title_to_date(tmp_path))
        conf = Configuration(given.raw_properties(), [tmp_path, *given.conf_dirs])
        table_of(conf, "org.example:http/0", title="2026-01-01T00:00:00Z")
        table_of(conf, "org.example:http/1", title="not a date")
        assert index(conf, "-all").count("IndexerStatus", "rejected") == 1
        assert "1 documents added, 0 deleted, 0 skipped, 1 rejected by the index" in capsys.readouterr().out
        assert server.ids() == ["org.example:http/0"]

    def test_server_rejecting_every_document_ends_job(self, server):
        with pytest.raises(IndexingError, match=rf"rejects every document: .*{re.escape(self.complaint)}"):
            write(self.settings(server.url), *(page_doc(number, tstamp="soon") for number in range(80)))
