"""The command evaluate: measures the results of queries by relevance judgements, its own or TREC's."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import InputError, UsageError
from nutch2py.search.evaluation.ranking_metrics import (
    best_metrics,
    evaluate_queries,
    format_metrics_table,
    mean_metrics,
    read_judgements,
    read_queries,
)
from nutch2py.search.evaluation.trec_files import format_run, read_qrels, read_topics
from nutch2py.search.evaluation.trec_metrics import format_trec_table, mean_trec_metrics, trec_metrics
from nutch2py.search.results.search_results import MAX_ROWS, MAX_START, SearchResult
from nutch2py.search.search_backends import open_search_backend
from nutch2py.support.disk_errors import raise_disk_error


def run_evaluation(
    conf: Configuration, queries: Path, judgements: Path, n: int, as_json: bool = False, unjudged: Path | None = None
) -> int:
    """Print the metrics of every query, their means, and the means of the best possible order.

    Args:
        conf: The configuration.
        queries: File of queries.
        judgements: File of judgements.
        n: Number of results to evaluate.
        as_json: Print JSON instead of a table.
        unjudged: File to which unjudged results are appended, with title and snippet, in the form of a judgement file.

    """
    if n < 1:
        raise UsageError("-n: the number of results must be at least 1")
    known = read_judgements(judgements)
    searcher = open_search_backend(conf)
    query_texts = read_queries(queries)
    missing: dict[tuple[str, str], str] = {}

    def urls(query: str, rows: int) -> list[str]:
        result: SearchResult = searcher.search(query, 0, rows)
        for hit in result.hits:
            if hit.url not in known.get(query, {}):
                text = " ".join(f"{hit.title.text} — {hit.snippet.text}".split())
                missing[query, hit.url] = f"{query}\t{hit.url}\t\t\t# {text}"
        return [hit.url for hit in result.hits]

    scores = evaluate_queries(query_texts, known, urls, n)
    best = mean_metrics([best_metrics(known.get(query, {}), n) for query in query_texts])
    if unjudged is not None:
        _append_missing(unjudged, missing)
    if as_json:
        import orjson

        everything = {**scores, "mean": mean_metrics([*scores.values()]), "ceiling": best}
        plain = {
            name: {**each._asdict(), "precision": {str(rank): value for rank, value in each.precision.items()}}
            for name, each in everything.items()
        }
        print(orjson.dumps(plain).decode())
    else:
        print(format_metrics_table(scores, best), end="")
    return 0


class TrecFiles(NamedTuple):
    """Files and names of an evaluation in the form of TREC.

    ``qrels``: the judgements, None to write a run only. ``run``: the run file to write. ``docno``: a regular expression
    whose first group in a URL is the document's id; without it the URL is the id.
    """

    topics: Path
    qrels: Path | None = None
    run: Path | None = None
    tag: str = "nutch2py"
    docno: str = ""


def run_trec_evaluation(conf: Configuration, files: TrecFiles, n: int, as_json: bool = False) -> int:
    """Search for the topics, write a run file, and print the metrics of trec_eval for every query and their means.

    Topics without a relevant document are not measured. One without results counts as 0, as with ``trec_eval -c``.
    """
    if n < 1:
        raise UsageError("-n: the number of results must be at least 1")
    if len(files.tag.split()) != 1:
        raise UsageError("-tag: write one word")
    topics = read_topics(files.topics)
    grades = None if files.qrels is None else read_qrels(files.qrels)
    rankings = _search_topics(conf, topics, _docno_pattern(files.docno), n)
    if files.run is not None:
        _write_run(files.run, rankings, files.tag)
    if grades is None:
        return 0
    scores = {
        query: trec_metrics(ranking, grades[query])
        for query, ranking in rankings.items()
        if any(grade > 0 for grade in grades.get(query, {}).values())
    }
    if as_json:
        import orjson

        print(orjson.dumps({**scores, "all": mean_trec_metrics([*scores.values()])}).decode())
    else:
        print(format_trec_table(scores), end="")
    return 0


def _search_topics(
    conf: Configuration, topics: Mapping[str, str], docno: re.Pattern[str] | None, n: int
) -> dict[str, list[str]]:
    """Return the ids of the first ``n`` documents of each topic."""
    searcher = open_search_backend(conf)
    rankings: dict[str, list[str]] = {}
    for key, query in topics.items():
        urls: list[str] = []
        while len(urls) < n and len(urls) <= MAX_START:
            hits = searcher.search(query, len(urls), min(n - len(urls), MAX_ROWS)).hits
            if not hits:
                break
            urls += [hit.url for hit in hits]
        # a run has a document once: its first URL counts
        rankings[key] = list(dict.fromkeys(_document_id(url, docno) for url in urls))
    return rankings


def _document_id(url: str, docno: re.Pattern[str] | None) -> str:
    found = docno.search(url) if docno else None
    return found[1] if found else url


def _docno_pattern(expression: str) -> re.Pattern[str] | None:
    if not expression:
        return None
    try:
        pattern = re.compile(expression)
    except re.error as error:
        raise UsageError(f"-docno: {expression!r} is not a regular expression: {error}") from error
    if not pattern.groups:
        raise UsageError(f"-docno: {expression!r} has no group: put the document's id into parentheses")
    return pattern


def _write_run(path: Path, rankings: Mapping[str, list[str]], tag: str) -> None:
    try:
        with path.open("w", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in format_run(rankings, tag))
    except OSError as error:
        raise_disk_error(error, path, "name another file")
        raise InputError(f"cannot write {path}: {error}") from error


def _append_missing(path: Path, missing: dict[tuple[str, str], str]) -> None:
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    before = {tuple(line.split("\t")[:2]) for line in text.splitlines()}
    with path.open("a", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for pair, line in missing.items() if pair not in before)
