"""Rebuild the collection of docs/ranking.md and print its tables: scripts/bench ranking FOLDER [--solr].

FOLDER gets the repositories, the crawl and the indexes; what is there is used again. ``--solr`` starts a Solr of its
own, fills it and removes it. ``--unjudged FILE``: also write results that nobody judged there.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench.ranking.crawl import Crawl
from bench.ranking.ranks import WITHOUT_NAVIGATION, all_ranks
from bench.ranking.sites import Collection, all_checked_out, documents
from bench.ranking.solr import cores
from bench.ranking.variants import TEXT, USUAL, WEIGHTS, Solr, Weight, agrees, matches, ranking
from nutch2py.search.measures import Judgements, Scores, gain, mean, read_judgements, read_queries, score

DATA = Path(__file__).parent
HALVES = ("tune", "held-out")
DEFAULT = Weight(0.02, 0.02)
MORE = Weight(0.05, 0.05)
PAPER = Weight(1.0, 1.0)
NUTCH = ("characters", Weight(1.0, 0.0))
"""What Nutch 2 with Solr's usual analysis does: single characters, and the boost as it is."""

Find = Callable[[str], Sequence[str]]


class Report:
    """Measures rankings of both halves of the queries, and prints them as rows of Markdown."""

    def __init__(self, queries: Mapping[str, Sequence[str]], judgements: Judgements) -> None:
        self.queries, self.judgements = queries, judgements
        self.unjudged: dict[tuple[str, str], None] = {}

    def scores(self, find: Find, half: str) -> list[Scores]:
        """Return the measures of each query of a half."""
        found = {query: [*find(query)][:20] for query in self.queries[half]}
        for query, urls in found.items():
            self.unjudged.update({(query, url): None for url in urls if url not in self.judgements.get(query, {})})
        return [score(urls, self.judgements.get(query, {}), 20) for query, urls in found.items()]

    def head(self, *names: str) -> None:
        """Print the head of a table of rankings."""
        columns = [f"{column}, {half}" for half in HALVES for column in ("P@10", "P@20", "quality", "nDCG")]
        print("\n| " + " | ".join([*names, *columns, "unjudged"]) + " |")
        print("|" + "---|" * len(names) + "--:|" * (len(columns) + 1))

    def row(self, *names: str, find: Find) -> None:
        """Print a ranking's measures."""
        halves = [mean(self.scores(find, half)) for half in HALVES]
        measured = [(each.precision[10], each.precision[20], each.quality, each.ndcg) for each in halves]
        values = [f"{value:.3f}" for each in measured for value in each]
        unjudged = sum(each.unjudged for each in halves) / len(halves)
        print("| " + " | ".join([*names, *values, f"{unjudged:.2f}"]) + " |", flush=True)

    def gains(self, pairs: Sequence[tuple[str, Find, Find]]) -> None:
        """Print what one ranking gains on another in the queries held out."""
        print("\n| held out | measure | before | after | gain | 95 % | p |\n|---|---|--:|--:|--:|---|--:|")
        measures: dict[str, Callable[[Scores], float]] = {
            "P@10": lambda each: each.precision[10],
            "P@20": lambda each: each.precision[20],
            "quality": lambda each: each.quality,
            "nDCG": lambda each: each.ndcg,
        }
        for name, before, after in pairs:
            old, new = self.scores(before, "held-out"), self.scores(after, "held-out")
            for measure, value in measures.items():
                first, second = [value(each) for each in old], [value(each) for each in new]
                found = gain(second, first)
                base = sum(first) / len(first)
                probability = f"{found.p:.4f}" if found.p >= 0.0001 else "< 0.0001"
                print(
                    f"| {name} | {measure} | {base:.3f} | {base + found.mean:.3f} | {found.mean / base:+.1%} "
                    f"| {found.low:+.3f} to {found.high:+.3f} | {probability} |"
                )


def main(argv: Sequence[str] | None = None) -> int:
    """Build what is missing, then print the tables."""
    parser = argparse.ArgumentParser(prog="bench ranking", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--solr", action="store_true", help="measure Solr, too")
    parser.add_argument("--unjudged", type=Path, help="write results that nobody judged here")
    options = parser.parse_args(argv)
    folder = options.folder.resolve()
    crawl = Crawl(folder / "work")
    if not (folder / "work" / "crawled").exists():
        pages = documents(Collection(all_checked_out(folder / "checkouts")))
        print(f"{len(pages)} pages", file=sys.stderr)
        crawl.rounds(pages)
        (folder / "work" / "crawled").touch()
    report = Report(
        {half: read_queries(DATA / f"queries-{half}.txt") for half in HALVES}, read_judgements(DATA / "judgements.tsv")
    )
    measure(crawl, report, options.solr)
    if options.unjudged:
        options.unjudged.write_text("".join(f"{query}\t{url}\n" for query, url in sorted(report.unjudged)))
    return 0


def measure(crawl: Crawl, report: Report, with_solr: bool) -> None:
    """Print the tables."""
    queries = [query for half in HALVES for query in report.queries[half]]
    ranks = all_ranks(crawl)
    found = {chinese: matches(crawl, chinese, queries) for chinese in ("characters", "words")}

    def embedded(chinese: str, weight: Weight) -> Find:
        return lambda query: ranking(found[chinese][query], weight, ranks[weight.formula])

    report.head("index", "Chinese", "relevance times")
    for chinese in found:
        for weight in WEIGHTS:
            report.row("embedded", chinese, str(weight), find=embedded(chinese, weight))
    if with_solr:
        with solr(crawl) as servers:
            for chinese, server in servers.items():
                for weight in WEIGHTS:
                    report.row("Solr", chinese, str(weight), find=lambda query: server.ranking(query, weight))  # noqa: B023
    report.head("PageRank", "relevance times")
    for formula in sorted(ranks):
        for weight in (Weight(0.0, 0.05, formula), Weight(0.02, 0.02, formula), Weight(0.25, 0.25, formula)):
            report.row(formula, str(weight), find=embedded("words", weight))
    report.gains(
        [
            ("words instead of characters, text alone", embedded("characters", TEXT), embedded("words", TEXT)),
            (
                "OPIC × PageRank ^ 0.02 (the default) instead of text alone",
                embedded("words", TEXT),
                embedded("words", DEFAULT),
            ),
            ("OPIC × PageRank ^ 0.05 instead of text alone", embedded("words", TEXT), embedded("words", MORE)),
            (
                "the same, PageRank without navigation",
                embedded("words", TEXT),
                embedded("words", MORE._replace(formula=WITHOUT_NAVIGATION)),
            ),
            ("OPIC × PageRank ^ 1, words (the paper) instead of Nutch 2", embedded(*NUTCH), embedded("words", PAPER)),
            ("the default instead of Nutch 2", embedded(*NUTCH), embedded("words", DEFAULT)),
        ]
    )
    same = agrees(crawl, DEFAULT, queries, {query: embedded("words", DEFAULT)(query) for query in queries})
    print(f"\nAn index written with the weights finds the same for {same} of {len(queries)} queries.")
    print(f"PageRank, {USUAL}: {len(ranks[USUAL])} pages.")


@contextmanager
def solr(crawl: Crawl) -> Iterator[dict[str, Solr]]:
    """Start a Solr with a core for characters and one for words, both filled; remove it at the end."""
    with cores(crawl.work) as addresses:
        servers = {chinese: Solr(address) for chinese, address in addresses.items()}
        for server in servers.values():
            server.fill(crawl)
        yield servers


if __name__ == "__main__":
    sys.exit(main())
