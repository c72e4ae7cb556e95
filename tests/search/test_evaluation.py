"""Ranking metrics against numbers computed by hand, and the command on an index."""

import doctest
import json
import math

import pytest

from nutch2py.cli import main
from nutch2py.errors import InputError
from nutch2py.indexer.filters import index_creativecommons as creativecommons
from nutch2py.indexer.writers.embedded_writer import EmbeddedIndexWriter
from nutch2py.parser.filters import language_identifier
from nutch2py.search.engines import solr_edismax_searcher
from nutch2py.search.evaluation import ranking_metrics as evaluation
from nutch2py.search.evaluation.ranking_metrics import (
    Judgement,
    MetricDifference,
    best_metrics,
    compare_rankings,
    format_metrics_table,
    mean_metrics,
    measure_ranking,
    merge_judgements,
    ndcg,
    ranking_quality,
    read_judgements,
    read_queries,
)
from nutch2py.search.query import query_plan
from tests.indexer.pages import doc


@pytest.mark.parametrize(
    "module", [creativecommons, evaluation, language_identifier, solr_edismax_searcher, query_plan]
)
def test_docstring_examples_hold(module):
    results = doctest.testmod(module)
    assert results.attempted > 0
    assert results.failed == 0


def test_quality_matches_paper():
    assert ranking_quality([Judgement(1, 1)] * 20, 20) == pytest.approx(
        sum(range(1, 21)) / 20
    )  # 10.5, the most there can be
    judged = [Judgement(0.5, 0.3), Judgement(0, 1), Judgement(1, 1)]
    assert ranking_quality(judged, 20) == pytest.approx(0.5 * 0.3 * 1 + 1 * 1 * 18 / 20)
    assert ranking_quality(judged, 2) == pytest.approx(0.15)


def test_ndcg_matches_definition():
    assert ndcg([1, 0.5, 0], [1, 0.5], 10) == 1.0
    assert ndcg([0, 1], [1], 10) == pytest.approx(1 / math.log2(3))
    assert ndcg([0], [0], 10) == 0.0
    assert ndcg([1], [1, 1, 1], 1) == 1.0


def test_precision_and_reciprocal_rank_match_definition():
    known = {"a": Judgement(0.1, 1), "b": Judgement(0.5, 0.3), "c": Judgement(1, 1)}
    found = measure_ranking(["a", "x", "b", "c"], known)
    assert found.precision == {5: 2 / 5, 10: 2 / 10, 20: 2 / 20}
    assert (found.reciprocal_rank, found.unjudged) == (1 / 3, 1)
    nothing = measure_ranking([], known)
    assert (nothing.quality, nothing.ndcg, nothing.reciprocal_rank) == (0, 0, 0)
    average = mean_metrics([found, nothing])
    assert (average.precision[5], average.reciprocal_rank) == (1 / 5, 1 / 6)


def test_judgement_files_are_read(tmp_path):
    (tmp_path / "q").write_text("\ufeff# comment\n\nfirst  \n")
    assert read_queries(tmp_path / "q") == ["first"]
    (tmp_path / "j").write_text("# c\nfirst\thttp://a/\t1\t1\nfirst\thttp://b/\t.5\n")
    assert read_judgements(tmp_path / "j") == {"first": {"http://a/": (1.0, 1.0), "http://b/": (0.5, 0.3)}}


def test_several_judges_are_averaged(tmp_path):
    lines = ["http://a/\t1\t1", "http://a/\t1\t.3", "http://a/\t0\t.3", "http://b/\t1", "http://b/\t.1"]
    (tmp_path / "j").write_text("".join(f"q\t{line}\n" for line in lines))
    assert read_judgements(tmp_path / "j") == {"q": {"http://a/": (1.0, 0.3), "http://b/": (0.1, 0.3)}}
    assert merge_judgements([Judgement(r) for r in (0, 1, 0.5, 1, 1)]) == Judgement(1)


def test_each_judge_may_have_own_file(tmp_path):
    for name, relevance in (("one", 1), ("two", 0.1), ("three", 0.1)):
        (tmp_path / name).write_text(f"q\thttp://a/\t{relevance}\n")
    paths = [tmp_path / name for name in ("one", "two", "three")]
    assert read_judgements(*paths) == {"q": {"http://a/": (0.1, 0.3)}}
    (tmp_path / "three").write_text("q\n")
    with pytest.raises(InputError, match="three:1"):
        read_judgements(*paths)


def test_ceiling_is_best_order_of_each_measure():
    known = {"a": Judgement(0.5, 1), "b": Judgement(1, 0.3), "c": Judgement(0.1, 1)}
    best = best_metrics(known, 5)
    assert best.precision == {5: 2 / 5}
    assert best.quality == pytest.approx(0.5 + 0.3 * 4 / 5 + 0.1 * 3 / 5)
    assert (best.ndcg, best.reciprocal_rank, best.unjudged) == (1.0, 1.0, 0.0)
    assert best_metrics({}, 5).quality == 0.0


@pytest.mark.parametrize("line", ["q\tu", "q\tu\tx\t1", "q\tu\t2\t1", "q\tu\t1\t1\t1", "q", "q\tu\t\t\t# text"])
def test_invalid_line_is_named_in_error(tmp_path, line):
    (tmp_path / "j").write_text(f"# c\n{line}\n")
    with pytest.raises(InputError, match="j:2"):
        read_judgements(tmp_path / "j")


def test_missing_files_are_named_in_error(tmp_path):
    with pytest.raises(InputError, match="none"):
        read_queries(tmp_path / "none")


def test_table_has_row_per_query_and_mean():
    found = measure_ranking(["u"], {"u": Judgement(1, 1)})
    lines = format_metrics_table({"a|b": found}, found).splitlines()
    assert lines[0] == "| query | P@5 | P@10 | P@20 | quality | nDCG | MRR | unjudged |"
    assert lines[2:] == [
        "| a b | 0.200 | 0.100 | 0.050 | 1.000 | 1.000 | 1.000 | 0 |",
        "| **mean** | 0.200 | 0.100 | 0.050 | 1.000 | 1.000 | 1.000 | 0 |",
        "| **ceiling** | 0.200 | 0.100 | 0.050 | 1.000 | 1.000 | 1.000 | 0 |",
    ]


def test_evaluate_command_prints_table(conf, tmp_path, capsys):
    writer = EmbeddedIndexWriter(conf)
    writer.prepare(conf, {}, False)
    writer.open(conf, {})
    for name, content in (("a", "needle needle"), ("b", "needle in much hay " + "hay " * 50), ("c", "hay")):
        writer.write(doc(name, url=f"http://x/{name}", host="x", title=name, content=content))
    writer.commit()
    queries, judgements, pool = tmp_path / "q", tmp_path / "j", tmp_path / "pool"
    queries.write_text("needle\nnothing\n")
    judgements.write_text("needle\thttp://x/a\t1\t1\n")
    arguments = ["evaluate", str(queries), "-judgements", str(judgements), "-unjudged", str(pool),
                 "-D", f"storage.data.store={conf.get('storage.data.store')}"]  # fmt: skip
    assert main([*arguments, "-json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["needle"] == {
        "precision": {"5": 0.2, "10": 0.1, "20": 0.05}, "quality": 1.0, "ndcg": 1.0, "reciprocal_rank": 1.0,
        "unjudged": 1.0,
    }  # fmt: skip
    assert found["mean"]["reciprocal_rank"] == 0.5
    assert found["ceiling"]["precision"]["5"] == 0.1
    assert main(arguments) == 0
    assert "| **mean** |" in capsys.readouterr().out
    (line,) = pool.read_text().splitlines()
    assert line.startswith("needle\thttp://x/b\t\t\t# b — ")


class TestGain:
    def test_identical_rankings_have_no_gain(self):
        assert compare_rankings([1.0, 0.5], [1.0, 0.5]) == MetricDifference(0.0, 0.0, 0.0, 1.0)

    def test_p_value_is_share_of_permutations(self):
        found = compare_rankings([0.5, 0.75, 1.0], [0.0, 0.0, 0.0])
        assert found.mean == 0.75
        assert found.p_value == pytest.approx(2 / 8, abs=0.02)  # all three alike, of eight ways to toss
        assert compare_rankings([0.0, 0.0, 0.0], [0.5, 0.75, 1.0]).p_value == found.p_value

    def test_confidence_interval_is_within_differences(self):
        found = compare_rankings([0.5, 0.75, 1.0], [0.0, 0.0, 0.0])
        assert 0.5 <= found.ci_low < found.mean < found.ci_high <= 1

    def test_no_queries_give_no_gain(self):
        assert compare_rankings([], []) == MetricDifference(0.0, 0.0, 0.0, 1.0)
