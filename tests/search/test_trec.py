"""TREC's files, trec_eval's metrics, and both in the command evaluate."""

import doctest
import json
from pathlib import Path

import pytest

from nutch2py.cli import main
from nutch2py.conf.configuration import Configuration
from nutch2py.errors import InputError, StoreError, UsageError
from nutch2py.indexer.writers.embedded_writer import EmbeddedIndexWriter
from nutch2py.search.evaluation import evaluator, trec_metrics
from nutch2py.search.evaluation.evaluator import TrecFiles, run_trec_evaluation
from nutch2py.search.evaluation.trec_files import format_run, read_qrels, read_topics
from tests.indexer.pages import doc

TOPICS = """
<top>
<num> Number: 301
<title> International
Organized &amp; Crime

<desc> Description:
Identify organizations
</top>
<TOP><num>302</num><title>Poliomyelitis</title></TOP>
"""


def test_metrics_are_those_of_trec_eval() -> None:
    grades = {"a": 2, "b": 1, "c": 0, "d": 1, "e": -1}
    found = trec_metrics.trec_metrics(["c", "a", "z", "d", "e"], grades, [5, 10])
    expected = {
        "num_ret": 5.0, "num_rel": 3.0, "num_rel_ret": 2.0, "map": 0.3333333333333333, "Rprec": 0.3333333333333333,
        "recip_rank": 0.5, "ndcg": 0.5405857679450102, "P_5": 0.4, "recall_5": 0.6666666666666666,
        "ndcg_cut_5": 0.5405857679450102, "P_10": 0.2, "recall_10": 0.6666666666666666,
        "ndcg_cut_10": 0.5405857679450102, "success_5": 1.0, "success_10": 1.0,
    }  # fmt: skip
    assert found == pytest.approx(expected)  # by trec_eval 9 (pytrec_eval)


def test_ranking_without_relevant_documents_scores_zero() -> None:
    found = trec_metrics.trec_metrics(["y"], {"x": 1}, [5])
    assert {name for name, value in found.items() if value} == {"num_ret", "num_rel"}
    assert not any(value for name, value in trec_metrics.trec_metrics([], {}).items())


def test_means_are_over_queries_and_counts_are_sums() -> None:
    scores = [trec_metrics.trec_metrics(ranking, {"a": 1}) for ranking in (["a"], ["b", "a"])]
    means = trec_metrics.mean_trec_metrics(scores)
    assert (means["num_q"], means["num_ret"], means["map"]) == (2, 3, 0.75)
    assert trec_metrics.mean_trec_metrics([]) == {"num_q": 0}


def test_docstring_examples_hold() -> None:
    assert doctest.testmod(trec_metrics).failed == 0


def test_topics_are_read_in_both_forms(tmp_path: Path) -> None:
    (tmp_path / "top").write_text(TOPICS)
    assert read_topics(tmp_path / "top") == {"301": "International Organized & Crime", "302": "Poliomyelitis"}
    (tmp_path / "lines").write_text("q1\tpoliomyelitis in  Kenya\n\nq2\t#5 in C#\n")
    assert read_topics(tmp_path / "lines") == {"q1": "poliomyelitis in  Kenya", "q2": "#5 in C#"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("q1 no tab\n", "topics:1: write query id"),
        ("q1\ta\nq1\tb\n", "q1 occurs twice"),
        ("<top>\n<num> 1\n</top>\n", "topic 1 has no <num> or no <title>"),
    ],
)
def test_invalid_topics_are_named_in_error(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "topics").write_text(text)
    with pytest.raises(InputError, match=message):
        read_topics(tmp_path / "topics")


def test_qrels_are_read_and_invalid_lines_named(tmp_path: Path) -> None:
    path = tmp_path / "qrels"
    path.write_text("301 0 FT911-1 1\n301\t0\tFT911-2\t-1\n\n302 0 http://x/ 2\n")
    assert read_qrels(path) == {"301": {"FT911-1": 1, "FT911-2": -1}, "302": {"http://x/": 2}}
    for line in ("301 0 FT911-1", "301 0 FT911-1 x", "301 0 FT911-1 1 2"):
        path.write_text(f"301 0 a 1\n{line}\n")
        with pytest.raises(InputError, match="qrels:2"):
            read_qrels(path)


def test_scores_of_run_fall_with_rank() -> None:
    assert [*format_run({"q": ["a", "b"]}, "tag")] == ["q Q0 a 1 2 tag", "q Q0 b 2 1 tag"]


@pytest.fixture
def indexed(conf: Configuration) -> Configuration:
    writer = EmbeddedIndexWriter(conf)
    writer.prepare(conf, {}, False)
    writer.open(conf, {})
    for name, content in (("a", "needle needle"), ("b", "needle in much hay " + "hay " * 50), ("c", "hay")):
        writer.write(doc(name, url=f"http://x/{name}.html", host="x", title=name, content=content))
    writer.commit()
    return conf


class TestCommand:
    @pytest.fixture
    def files(self, tmp_path: Path) -> Path:
        (tmp_path / "topics").write_text("1\tneedle\n2\tnothing\n3\thay\n")
        (tmp_path / "qrels").write_text("1 0 b 1\n2 0 a 1\n3 0 a 0\n")
        return tmp_path

    def test_run_and_metrics_have_ids_by_docno(
        self, indexed: Configuration, files: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        arguments = [
            "evaluate", str(files / "topics"), "-qrels", str(files / "qrels"), "-run", str(files / "run"),
            "-docno", r"([^/]+)\.html$", "-tag", "mine",
            "-D", f"storage.data.store={indexed.get('storage.data.store')}",
        ]  # fmt: skip
        assert main([*arguments, "-json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert [*found] == ["1", "2", "all"]  # topic 3 has no relevant document
        assert (found["1"]["recip_rank"], found["2"]["num_ret"]) == (0.5, 0)
        assert (found["all"]["map"], found["all"]["num_q"]) == (0.25, 2)
        lines = (files / "run").read_text().splitlines()
        assert lines[:2] == ["1 Q0 a 1 2 mine", "1 Q0 b 2 1 mine"]
        assert main(arguments) == 0
        table = capsys.readouterr().out.splitlines()
        assert table[0] == (
            "| query | num_ret | num_rel | num_rel_ret | map | Rprec | recip_rank | ndcg_cut_10 | P_10 | recall_10 |"
        )
        assert table[-1].startswith("| **all** | 2 | 2 | 1 | 0.2500 |")

    def test_run_without_judgements_has_urls_page_by_page(
        self, indexed: Configuration, files: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(evaluator, "MAX_ROWS", 1)
        assert run_trec_evaluation(indexed, TrecFiles(files / "topics", run=files / "run"), 5) == 0
        assert capsys.readouterr().out == ""
        documents = [line.split()[2] for line in (files / "run").read_text().splitlines() if line.startswith("1 ")]
        assert documents == ["http://x/a.html", "http://x/b.html"]

    def test_full_disk_is_no_error_of_usage(self, indexed: Configuration, files: Path) -> None:
        with pytest.raises(StoreError, match="no space is left for /dev/full"):
            run_trec_evaluation(indexed, TrecFiles(files / "topics", run=Path("/dev/full")), 5)

    @pytest.mark.parametrize(
        ("changed", "message"),
        [
            ({"docno": "("}, "not a regular expression"),
            ({"docno": "a+"}, "has no group"),
            ({"tag": "two words"}, "one word"),
        ],
    )
    def test_invalid_option_is_rejected(
        self, conf: Configuration, files: Path, changed: dict[str, str], message: str
    ) -> None:
        with pytest.raises(UsageError, match=message):
            run_trec_evaluation(conf, TrecFiles(files / "topics")._replace(**changed), 5)

    def test_kinds_of_judgements_are_not_mixed(self, files: Path, capsys: pytest.CaptureFixture[str]) -> None:
        topics = str(files / "topics")
        assert main(["evaluate", topics]) != 0
        assert "-judgements FILE or -qrels FILE" in capsys.readouterr().err
        assert main(["evaluate", topics, "-qrels", topics, "-judgements", topics]) != 0
        assert "cannot be combined" in capsys.readouterr().err
