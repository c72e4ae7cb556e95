"""The command evaluate: measures the results of queries by relevance judgements."""

from __future__ import annotations

from pathlib import Path

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import UsageError
from nutch2py.search.engines.embedded_searcher import EmbeddedSearcher
from nutch2py.search.evaluation.ranking_metrics import (
    best_metrics,
    evaluate_queries,
    format_metrics_table,
    mean_metrics,
    read_judgements,
    read_queries,
)
from nutch2py.search.results.search_results import SearchResult
from nutch2py.search.search_service import search, search_backend_name


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
    searcher = EmbeddedSearcher(conf) if search_backend_name(conf) == "embedded" else None
    query_texts = read_queries(queries)
    missing: dict[tuple[str, str], str] = {}

    def urls(query: str, rows: int) -> list[str]:
        result: SearchResult = search(conf, query, 0, rows, searcher)
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


def _append_missing(path: Path, missing: dict[tuple[str, str], str]) -> None:
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    before = {tuple(line.split("\t")[:2]) for line in text.splitlines()}
    with path.open("a", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for pair, line in missing.items() if pair not in before)
