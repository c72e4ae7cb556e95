"""scripts/bench judged on a collection made here: readers, halves, keyword queries, BM25, the crawl and the table."""

from __future__ import annotations

import gzip
import hashlib
import json
from pathlib import Path

import pytest

from bench.judged import sources
from bench.judged.__main__ import main
from bench.judged.baseline import Bm25
from bench.judged.collection import (
    BOTH,
    HALVES,
    REPORTING,
    TUNING,
    Document,
    JudgedCollection,
    half_of,
    keyword_collection,
)
from bench.judged.product import render_page
from bench.judged.readers import read_npl, read_smart, read_squad, read_trec
from bench.judged.report import NDCG, Comparison, SystemResult
from bench.judged.sources import CollectionError, Source
from bench.judged.words import terms, words

SUBJECTS = ["lighthouse", "glacier", "violin", "submarine", "orchard", "volcano", "telescope", "harbour"]
SQUAD = {
    "data": [
        {
            "title": f"The_{subject}",
            "paragraphs": [
                {
                    "context": f"A {subject} stands near town number {number}.\nIts keeper wrote {number} letters.",
                    "qas": [
                        {"id": f"{number}", "question": f"{subject} keeper", "answers": [{"text": "town"}]},
                        {"id": f"{number}-none", "question": "Why?", "is_impossible": True, "answers": []},
                    ],
                }
            ],
        }
        for number, subject in enumerate(SUBJECTS)
    ]
}


def made_collection() -> JudgedCollection:
    documents = {str(number): Document("", f"The {subject} keeper") for number, subject in enumerate(SUBJECTS)}
    queries = {key: f"{SUBJECTS[int(key)]} keepers" for key in documents}
    return JudgedCollection("made", "en", documents, queries, {key: {key: 1} for key in documents})


class TestReaders:
    def test_squad_paragraphs_answer_their_questions(self, tmp_path: Path) -> None:
        (tmp_path / "a.json").write_text(json.dumps(SQUAD))
        with gzip.open(tmp_path / "b.json.gz", "wt") as file:
            json.dump(SQUAD, file)
        found = read_squad("made", "en", [tmp_path / "a.json", tmp_path / "b.json.gz"])
        assert len(found.documents) == len(found.queries) == len(SUBJECTS)  # equal paragraphs are one document
        assert found.documents["1"].title == "The lighthouse"
        assert found.judgements["0"] == {"1": 1}
        assert read_squad("made", "en", [tmp_path / "a.json"], titles=False).documents["1"].title == ""

    def test_smart_collection_is_read(self, tmp_path: Path) -> None:
        documents, queries, judgements = (tmp_path / name for name in ("all", "qry", "rel"))
        documents.write_text(".I 1\n.T\nOn\ncats\n.A\nX\n.W\ncats  sleep\n.I 2\n.W\ndogs\n.I 3\n.T\n")
        queries.write_text(".I 7\n.W\ncats?\n.I 9\n.W\ndogs?\n")
        judgements.write_text("07 01 0 0\n9 2\n")
        found = read_smart("made", documents, queries, judgements)
        assert found.documents == {"1": Document("On cats", "cats sleep"), "2": Document("", "dogs")}
        assert found.judgements == {"7": {"1": 1}, "9": {"2": 1}}
        judgements.write_text("1 1 2\n2 2 -1\n")
        ordered = read_smart("made", documents, queries, judgements, by_order=True)
        assert ordered.queries == {"1": "cats?", "2": "dogs?"}
        assert ordered.judgements == {"1": {"1": 1}}

    def test_npl_parts_are_read(self, tmp_path: Path) -> None:
        files = [tmp_path / name for name in ("doc", "query", "rel")]
        for file, text in zip(
            files, ("1\nsmall\nvalves\n   /\n2\nradio\n /\n", "1\nVALVES\n/\n", "1\n 1  2\n/\n"), strict=True
        ):
            file.write_text(text)
        found = read_npl("made", *files)
        assert found.documents["1"] == Document("", "small valves")
        assert (found.queries, found.judgements) == ({"1": "valves"}, {"1": {"1": 1, "2": 1}})

    def test_trec_folder_is_read(self, tmp_path: Path) -> None:
        folder = tmp_path / "mine"
        folder.mkdir()
        (folder / "topics.txt").write_text("1\tcats\n")
        (folder / "qrels.txt").write_text("1 0 d1 2\n")
        (folder / "documents.trec").write_text(
            "<DOC>\n<DOCNO> d1 </DOCNO>\n<HEADLINE>On\ncats</HEADLINE>\n<TEXT>\n<P>cats</P></TEXT>\n</DOC>\n"
        )
        found = read_trec(folder, "en")
        assert (found.name, found.documents) == ("mine", {"d1": Document("On cats", "cats")})
        assert (found.queries, found.judgements) == ({"1": "cats"}, {"1": {"d1": 2}})
        (folder / "documents.jsonl").write_text('{"id": 7, "text": "dogs"}\n')
        assert read_trec(folder, "de").documents == {"7": Document("", "dogs")}


class TestCollection:
    def test_halves_are_disjoint_and_sample_is_fixed(self) -> None:
        collection = made_collection()
        halves = [set(collection.choose_queries(half)) for half in HALVES]
        assert all(halves)
        assert not halves[0] & halves[1]
        assert set(collection.choose_queries(BOTH)) == halves[0] | halves[1] == set(collection.queries)
        (first,) = collection.choose_queries(TUNING, 1)
        assert half_of(first) == TUNING
        assert next(iter(collection.choose_queries(TUNING))) == first

    def test_queries_without_relevant_document_are_not_asked(self) -> None:
        collection = made_collection()._replace(judgements={"1": {"1": 1}, "2": {"2": 0}})
        assert set(collection.choose_queries(BOTH)) == {"1"}

    def test_keyword_query_has_three_words_of_title(self) -> None:
        documents = {
            str(number): Document(f"Repair of {subject} windows {number}0 parts{number}", "many words of text")
            for number, subject in enumerate(SUBJECTS)
        }
        found = keyword_collection(JudgedCollection("made", "en", documents, {}, {}))
        assert found.queries == {}  # no title has three words that few documents have
        letters = "pqrstuvw"
        documents = {
            key: Document(f"{title} of bri{letters[int(key)]}k and go{letters[int(key)]}d", text)
            for key, (title, text) in documents.items()
        }
        found = keyword_collection(JudgedCollection("made", "en", documents, {}, {}), count=2)
        assert len(found.queries) == 2
        for key, query in found.queries.items():
            (document,) = found.judgements[key]
            assert len(query.split()) == 3
            assert set(query.split()) <= set(documents[document].title.lower().split())


class TestWords:
    def test_words_are_cut_by_language(self) -> None:
        assert words("Wi-Fi の設定とメモリ", "ja") == ["wi", "fi", "設定", "メモリ"]
        assert words("南京市长江大桥，", "zh") == ["南京市", "长江大桥"]
        assert terms(["東京都 OK"], "ja") == [["東京", "京都", "ok"]]
        assert terms(["Laufende Hunde"], "de") == [["laufend", "hund"]]
        assert terms(["कितने अंक"], "hi")[0][0].startswith("कित")


def test_bm25_ranks_by_terms_and_leaves_others_out() -> None:
    collection = made_collection()
    found = Bm25(collection).rankings({"a": "glaciers", "b": "keepers of glaciers", "c": "zebra"}, 3)
    assert found["a"] == ["1"]
    assert found["b"][0] == "1"
    assert len(found["b"]) == 3
    assert found["c"] == []


def test_page_escapes_text_and_has_language() -> None:
    page = render_page(Document("A < B", "one & two\nthree"), "de")
    assert '<html lang="de">' in page
    assert "<title>A &lt; B</title>" in page
    assert "<p>one &amp; two</p><p>three</p>" in page
    assert "<title>" not in render_page(Document("", "x"), "de")


def test_comparison_pairs_queries() -> None:
    collection = made_collection()
    product = SystemResult.measure(collection, {"0": ["0"], "1": []})
    baseline = SystemResult.measure(collection, {"0": ["1", "0"], "1": ["1"]})
    assert (product.mean(NDCG), product.empty, baseline.empty) == (0.5, 1, 0)
    compared = Comparison(collection, product, baseline)
    assert compared.difference().mean == pytest.approx(0.5 - baseline.mean(NDCG))
    assert compared.cells()[:2] == ["made", "2"]
    assert compared.to_dict()["queries"]["1"]["bm25"]["documents"] == ["1"]


class TestSources:
    def test_file_with_other_checksum_is_rejected(self, tmp_path: Path) -> None:
        source = Source("owner/name", "c", "none", [("d/file", "0" * 64)], lambda files: made_collection())
        (tmp_path / "owner+name" / "d").mkdir(parents=True)
        (tmp_path / "owner+name" / "d" / "file").write_text("x")
        with pytest.raises(CollectionError, match="not the expected file"):
            source.fetch(tmp_path)

    def test_file_that_cannot_be_fetched_names_its_place(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def unreachable(*_args: object, **_options: object) -> None:
            raise OSError("no network")

        monkeypatch.setattr("urllib.request.urlopen", unreachable)
        with pytest.raises(CollectionError, match=r"owner/name/c/file: no network; put a copy at .*owner\+name/file"):
            Source("owner/name", "c", "none", [("file", "0")], lambda files: made_collection()).fetch(tmp_path)

    def test_every_source_has_checksums_and_licence(self) -> None:
        for source in sources.SOURCES.values():
            assert source.licence
            assert len(source.commit) == 40
            assert all(len(checksum) == 64 for _, checksum in source.files)


class TestCommand:
    @pytest.fixture
    def folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        data = json.dumps(SQUAD).encode()
        source = Source(
            "owner/made", "c", "none", [("made.json", hashlib.sha256(data).hexdigest())],
            lambda files: read_squad("made", "en", files),
        )  # fmt: skip
        missing = Source("owner/missing", "c", "none", [("x", "0")], lambda files: made_collection())
        monkeypatch.setattr(sources, "SOURCES", {"made": source, "missing": missing})
        monkeypatch.setattr("bench.judged.__main__.SOURCES", sources.SOURCES)
        monkeypatch.setattr("urllib.request.urlopen", lambda *_args, **_options: (_ for _ in ()).throw(OSError("off")))
        (tmp_path / "files" / "owner+made").mkdir(parents=True)
        (tmp_path / "files" / "owner+made" / "made.json").write_bytes(data)
        return tmp_path

    def test_crawl_is_kept_and_tables_are_printed(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        arguments = ["-folder", str(folder / "files"), "-keep", str(folder / "kept"), "-json", str(folder / "json")]
        assert main([*arguments, "-half", "both"]) == 0
        output = capsys.readouterr()
        assert "missing is skipped: cannot fetch" in output.err
        assert "made: crawled in" in output.err
        row = next(line for line in output.out.splitlines() if line.startswith("| made |"))
        assert row.startswith("| made | 8 | 1.000 | 1.000 | +0.000 (+0.000 to +0.000) |")
        (questions, _) = json.loads((folder / "json").read_text())
        assert questions["queries"]["2"]["product"]["documents"][0] == "3"
        before = ["-before", str(folder / "json")]
        assert main([*arguments, *before, "-collections", "made", "-limit", "1", "-reindex"]) == 0
        output = capsys.readouterr()
        assert "crawled in" not in output.err
        assert f"Questions, {REPORTING} half" in output.out
        assert "| made | 1 | 1.000 |" in output.out
        assert "| made | 1 | 1.000 | 1.000 | +0.000 (+0.000 to +0.000) |" in output.out.partition("since json")[2]

    def test_no_collection_is_a_failure(self, folder: Path) -> None:
        assert main(["-folder", str(folder / "files"), "-collections", "missing"]) == 1
        assert main(["-own", str(folder)]) == 1  # no documents there
        with pytest.raises(SystemExit, match="none of made, missing"):
            main(["-collections", "other"])
        with pytest.raises(SystemExit, match="property=value"):
            main(["-D", "x"])
