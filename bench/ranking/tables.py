"""The tables of docs/measurements/2026-11-27-ranking.md, in Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from bench.ranking.choice import BEFORE, TEXT, Tried, default
from bench.ranking.collection import HALVES, HELD_OUT
from bench.ranking.measured import PLACES, PRECISION, QUALITY, Measure, Measured, N, Way
from bench.ranking.ranks import Formula
from bench.ranking.variants import Text, Weight
from nutch2py.search.evaluation.ranking_metrics import MetricDifference, RankingMetrics, compare_rankings


def head(*names: str, left: int = 1) -> None:
    """Print the header of a table; the first ``left`` columns are text."""
    print("\n| " + " | ".join(names) + " |\n|" + "---|" * left + "--:|" * (len(names) - left))


def row(*cells: str) -> None:
    """Print a row."""
    print("| " + " | ".join(cells) + " |", flush=True)


def collections(those: Sequence[Measured]) -> None:
    """Print a description of the collections."""
    head("collection", "authority planted or copied", "pages", "queries", "relevant pages, at least", "made of", left=2)
    for each in those:
        is_ = each.collection
        row(
            is_.name, "yes" if is_.authority else "no", str(len(is_.pages)),
            " + ".join(str(len(is_.queries[half])) for half in HALVES), str(is_.fewest_relevant()), is_.origin,
        )  # fmt: skip


def choice(found: Sequence[Tried], most: int = 12) -> None:
    """Print the best candidates by the tuning halves."""
    names = [*found[0].shares]
    head("tuning halves: quality as a share of its ceiling", "mean", *names)
    for each in found[:most]:
        settings = ", ".join(f"{name} {value}" for name, value in each.way.text.settings)
        name = f"{each.way.weight}{', ' if settings else ''}{settings}"
        row(name, f"{each.value:.4f}", *(f"{each.shares[collection]:.3f}" for collection in names))


def parts() -> dict[str, tuple[Way, Way]]:
    """Return each part of the ranking: its name, the ranking without it and with it."""
    now = default()
    power, formula = now.weight.pagerank or 0.25, now.weight.formula
    no_anchors = Text(settings=(("index.search.fields", "title^3 content url^1.5 host^2"),))
    no_phrase = Text(settings=(("index.search.together", "0"),))
    three_in_four = Text(settings=(("index.search.minimum", "3<75%"),))

    def ranked(kind: Formula) -> Way:
        return Way(weight=Weight(0.0, power, kind))

    return {
        "words instead of characters": (Way(Text("characters")), TEXT),
        "words side by side": (Way(no_phrase), TEXT),
        "anchors": (Way(no_anchors), TEXT),
        "two words of long questions instead of three in four": (Way(three_in_four), TEXT),
        "OPIC ^ 0.02": (TEXT, Way(weight=Weight(0.02))),
        "OPIC ^ 1": (TEXT, Way(weight=Weight(1.0))),
        f"classic PageRank ^ {power:g}": (TEXT, ranked(Formula(-1.0))),
        f"PageRank ^ {power:g}, a = 0.5": (TEXT, ranked(Formula(0.5))),
        f"the same, a = {formula.external:g} instead": (ranked(Formula(0.5)), ranked(Formula(formula.external))),
        "the same, navigation ignored": (ranked(Formula(formula.external)), ranked(formula)),
        "one page of a host": (now, now._replace(weight=now.weight._replace(hosts=True))),
        f"**the default**, {now.weight}, instead of text alone": (TEXT, now),
        "the default instead of the one before, OPIC × PageRank ^ 0.02": (BEFORE, now),
        "the paper, OPIC × PageRank ^ 1, instead of OPIC ^ 1": (Way(weight=Weight(1.0)), Way(weight=Weight(1.0, 1.0))),
    }  # fmt: skip


def worth(those: Sequence[Measured]) -> None:
    """Print the gain of each part in quality and precision, with interval and p."""
    for name, measure in (("quality", QUALITY), (f"P@{N}", PRECISION)):
        head(f"{name}, held out", *(each.collection.name for each in those))
        for part, (before, after) in parts().items():
            row(part, *(_gained(each, after, before, measure) for each in those))


def _gained(measured: Measured, after: Way, before: Way, measure: Measure) -> str:
    return _said(*measured.compare(after, before, measure))


def _said(base: float, found: MetricDifference) -> str:
    """Return a gain relative to a mean in percent, with interval and p."""
    if not base:
        return "–"
    low, high = (f"{bound / base:+.0%}" for bound in (found.ci_low, found.ci_high))
    probability = f"p = {found.p_value:.2g}" if found.p_value >= 0.0001 else "p < 0.0001"
    return f"{found.mean / base:+.1%} ({low} to {high}, {probability})"


WAYS = {"text alone": TEXT, "the default": default()}


def places(those: Sequence[Measured]) -> None:
    """Print precision and quality for each number of results in the paper, with the ceilings."""
    for each in those:
        _places(each.collection.name, [(each, each.collection.queries[HELD_OUT])])


def together(those: Sequence[Measured]) -> None:
    """Print the same for queries of all collections with at least as many relevant pages as the paper's."""
    asked = [(each, each.enough(HELD_OUT, max(PLACES))) for each in those]
    count = sum(len(queries) for _, queries in asked)
    if count:
        _places(f"the {count} queries with {max(PLACES)} relevant pages or more", asked)


Asked = Sequence[tuple[Measured, Sequence[str]]]


def _places(title: str, asked: Asked) -> None:
    for name, measure in (("P", PRECISION), ("quality", QUALITY)):
        head(f"{title}, {name}, held out", *(f"N = {n}" for n in PLACES), "mean")
        found = {
            way: _columns([each.of(queries, kind) for each, queries in asked], measure) for way, kind in WAYS.items()
        }
        best = _columns([each.of(queries, None) for each, queries in asked], measure)
        for way, columns in (*found.items(), ("ceiling", best)):
            row(way, *(f"{fmean(column):.3f}" for column in columns))
        pairs = zip(found["the default"], found["text alone"], strict=True)
        differences = (_said(fmean(old), compare_rankings(new, old)) for new, old in pairs)
        row("the default instead of text alone", *differences)


def _columns(found: Sequence[Mapping[int, Sequence[RankingMetrics]]], measure: Measure) -> list[list[float]]:
    """Return the metric of each query for each number of results, as means over these numbers."""
    columns = [[measure(score) for each in found for score in each[n]] for n in PLACES]
    return [*columns, [fmean(values) for values in zip(*columns, strict=True)]]


def shares(those: Sequence[Measured]) -> None:
    """Print metrics as shares of their ceilings."""
    head("share of the ceiling, held out", *(each.collection.name for each in those))
    for name, measure in (("quality", QUALITY), ("P", PRECISION)):
        for n in (10, 20, 60):
            for way, asked in WAYS.items():
                row(f"{name}, N = {n}, {way}", *(f"{each.share(asked, HELD_OUT, measure, n):.1%}" for each in those))
