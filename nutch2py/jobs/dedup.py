"""DeduplicationJob: of pages with the same signature one is kept, the others are marked as its duplicates.

The mark is the metadata entry ``_dup_`` (see :func:`nutch2py.indexer.building.duplicate_of`); Nutch 2 leaves entries
that it does not know alone, while Nutch 1's status "duplicate" would stop its schedule. index and clean take the
documents of marked pages out of the index.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cmp_to_key
from itertools import combinations
from typing import Any, NamedTuple
from urllib.parse import unquote_plus

from nutch2py.conf import Configuration
from nutch2py.errors import ConfigurationError
from nutch2py.indexer.building import duplicate_of, should_index
from nutch2py.indexer.filters.index_basic import fetch_time_of
from nutch2py.jobs.beginning import begin
from nutch2py.jobs.job_lines import JobLines
from nutch2py.jobs.works import DEDUP
from nutch2py.mapreduce.driver import JobResult, map_tasks, run_job
from nutch2py.mapreduce.job import Pages, Pair, TableJob
from nutch2py.mapreduce.parameters import JobParameters
from nutch2py.mapreduce.splits import range_splits
from nutch2py.parser.main_text import reading_text
from nutch2py.record import Field
from nutch2py.table import Query, WriteBatch, open_store
from nutch2py.url.keys import unreverse_url
from nutch2py.url.parts import domain_of, host_of
from nutch2py.webpage import CrawlStatus, MetadataKey, WebPage

GROUP_MODES = ("none", "host", "domain")
COMPARISONS = ("score", "fetchTime", "httpsOverHttp", "urlLength")
_NEEDED = frozenset({"score", "fetchTime", "urlLength"})
_LEAST_WORDS = 20  # shorter texts have too few features to be told apart
_FIELDS: frozenset[Field[Any]] = frozenset(
    {
        WebPage.status,
        WebPage.parse_status,
        WebPage.signature,
        WebPage.score,
        WebPage.fetch_time,
        WebPage.prev_fetch_time,
        WebPage.fetch_interval,
        WebPage.markers,
        WebPage.metadata,
    }
)
_BAD_ESCAPE = re.compile("%(?![0-9A-Fa-f]{2})")


class Candidate(NamedTuple):
    """A page among equals: its URL, score, and when it was fetched (ms)."""

    url: str
    score: float
    fetched: int


def loser(one: Candidate, other: Candidate, order: Sequence[str]) -> Candidate | None:
    """Return which of two equal pages is the duplicate, None when ``order`` does not tell.

    The comparisons of Nutch 1's ``DeduplicationJob``: the page with the higher score is kept, that fetched later, that
    with https where the URLs differ in nothing else, that with the shorter URL (percent-escapes decoded).
    """
    for comparison in order:
        better = _compare(comparison, one, other)
        if better:
            return other if better > 0 else one
    return None


def _compare(comparison: str, one: Candidate, other: Candidate) -> float:
    if comparison == "score":
        return one.score - other.score
    if comparison == "fetchTime":
        return one.fetched - other.fetched
    if comparison == "httpsOverHttp":
        (scheme, _, rest), (other_scheme, _, other_rest) = one.url.partition(":"), other.url.partition(":")
        if rest != other_rest or {scheme, other_scheme} != {"http", "https"}:
            return 0
        return 1 if scheme == "https" else -1
    return _length(other.url) - _length(one.url)


def _length(url: str) -> int:
    """Return the length in UTF-16 units of the URL decoded, as it stands when an escape is malformed."""
    decoded = url if _BAD_ESCAPE.search(url) else unquote_plus(url)
    return len(decoded.encode("utf-16-le", "surrogatepass")) // 2


def by_rank(candidates: Iterable[tuple[Candidate, str]], order: Sequence[str]) -> list[tuple[Candidate, str]]:
    """Sort (candidate, row key), the one to keep first; what ``order`` leaves open, the alphabet decides."""

    def compare(one: tuple[Candidate, str], other: tuple[Candidate, str]) -> int:
        worse = loser(one[0], other[0], order)
        if worse is None:
            return (one[1] > other[1]) - (one[1] < other[1])
        return 1 if worse is one[0] else -1

    return sorted(candidates, key=cmp_to_key(compare))


class _Duplicates(TableJob[JobParameters]):
    """What both passes share: which pages take part, in which group, and the mark."""

    def prepare(self) -> None:
        """Read the settings."""
        self.mode, self.order = settings(self.conf)

    def candidates(self, pages: Pages) -> Iterator[tuple[str, WebPage, str]]:
        """Yield row key, page and group of every page that is in the index or may be."""
        for key, page in pages:
            if page.status in (CrawlStatus.FETCHED, CrawlStatus.NOTMODIFIED) and page.signature and should_index(page):
                url = unreverse_url(key)
                group = {"host": host_of, "domain": domain_of}.get(self.mode, lambda _: "")(url)
                yield key, page, group

    def candidate(self, key: str, score: float, fetched: int) -> Candidate:
        """Return what is compared of a row."""
        return Candidate(unreverse_url(key), score, fetched)


def mark(batch: WriteBatch, key: str, signature: str, kept: str | None) -> None:
    """Mark a row as a duplicate of the row ``kept``, or take its mark away."""
    page = WebPage({}, frozenset())
    if kept is None:
        page.metadata.pop(MetadataKey.DUPLICATE)
    else:
        page.metadata[MetadataKey.DUPLICATE] = f"{signature} {kept}".encode()
    batch.put(key, page)


class DeduplicationJob(_Duplicates):
    """Pages by signature; the reducer marks all but the best of each group, and takes old marks away."""

    fields = _FIELDS

    def map_pages(self, pages: Pages) -> Iterator[Pair]:
        """Give each page to the group of its signature."""
        for key, page, group in self.candidates(pages):
            old = page.metadata.get(MetadataKey.DUPLICATE)
            text = None if old is None else old.decode("utf-8", "replace")
            assert page.signature is not None
            yield f"{page.signature.hex()} {group}", [key, page.score, fetch_time_of(page), text]

    def reduce_groups(self, groups: Iterator[tuple[str, Iterator[Any]]]) -> Iterator[Pair]:
        """Mark the duplicates of each group."""
        with self.writing() as batch:
            for group_key, values in groups:
                signature = group_key.partition(" ")[0]
                old: dict[str, str | None] = {}
                rows = []
                for key, score, fetched, text in values:
                    old[key] = text
                    rows.append((self.candidate(key, score, fetched), key))
                ranked = [key for _, key in by_rank(rows, self.order)]
                if old[ranked[0]] is not None:
                    mark(batch, ranked[0], signature, None)
                    self.count("DeduplicationJob", "freed")
                for key in ranked[1:]:
                    if old[key] != f"{signature} {ranked[0]}":
                        mark(batch, key, signature, ranked[0])
                if len(ranked) > 1:
                    self.count("DeduplicationJob", "duplicates", len(ranked) - 1)
        yield from ()


class NearDuplicatesJob(_Duplicates):
    """Pages by parts of the SimHash of their texts; the reducer gives pairs that differ in few enough bits.

    Two hashes that differ in at most ``threshold`` bits have one of ``threshold`` + 1 parts in common.
    """

    fields = _FIELDS | {WebPage.text}

    def prepare(self) -> None:
        """Load the analyzer."""
        super().prepare()
        from nutch2py.backends.analysis import Analyzer

        self.threshold = self.conf.get_int("deduplication.simhash.threshold", 3)
        self.analyzer = Analyzer.of(self.conf)

    def map_pages(self, pages: Pages) -> Iterator[Pair]:
        """Give each page, but for those that the first pass has marked, to the groups of its parts."""
        from nutch2py.parser.simhash import bands, simhash

        for key, page, group in self.candidates(pages):
            if duplicate_of(page) is not None:
                continue
            words = self.analyzer.words(reading_text(page))
            if len(words) < _LEAST_WORDS:
                continue
            value = simhash(words)
            assert page.signature is not None
            row = [key, page.score, fetch_time_of(page), page.signature.hex(), f"{value:016x}"]
            for band, part in enumerate(bands(value, self.threshold + 1)):
                yield f"{band}:{part:x} {group}", row

    def reduce_groups(self, groups: Iterator[tuple[str, Iterator[Any]]]) -> Iterator[Pair]:
        """Give pairs; of pages with one and the same hash only the best is compared with others."""
        from nutch2py.parser.simhash import distance

        for _, values in groups:
            by_hash: dict[int, list[list[Any]]] = {}
            for row in values:
                by_hash.setdefault(int(row[4], 16), []).append(row)
            best: dict[int, list[Any]] = {}
            for value, rows in by_hash.items():
                known = {row[0]: row for row in rows}
                ranked = by_rank(((self.candidate(*row[:3]), row[0]) for row in rows), self.order)
                best[value] = known[ranked[0][1]]
                for _, key in ranked[1:]:
                    yield best[value][0], [best[value][:4], known[key][:4]]
            for one, other in combinations(sorted(best), 2):
                if distance(one, other) <= self.threshold:
                    yield best[one][0], [best[one][:4], best[other][:4]]


def settings(conf: Configuration) -> tuple[str, list[str]]:
    """Return the group mode and the order of comparisons; ConfigurationError when they are not known."""
    mode = conf.get_trimmed("deduplication.group.mode", "none")
    if mode not in GROUP_MODES:
        raise ConfigurationError(f"deduplication.group.mode is {mode!r}: write {', '.join(GROUP_MODES)}")
    order = conf.get_strings("deduplication.compare.order", ("score", "fetchTime", "urlLength"))
    if not _NEEDED <= set(order) <= set(COMPARISONS):
        raise ConfigurationError(
            f"deduplication.compare.order is {','.join(order)!r}: "
            "it must contain score, fetchTime and urlLength, and may contain httpsOverHttp"
        )
    return mode, order


def dedup(conf: Configuration, near: bool = False) -> JobResult:
    """Mark duplicates, with ``near`` also pages whose texts are nearly the same; return the counters."""
    conf = conf.copy()
    settings(conf)
    conf.check_numbers()
    log = JobLines("DeduplicationJob", announce=False)
    log.line("starting")
    with begin(conf, DEDUP) as tables:
        store = tables.store
        expected = store.row_estimate()
        splits = range_splits(store, Query(_FIELDS), map_tasks(conf))
        result = run_job(DeduplicationJob, conf, splits, title="DeduplicationJob", expected=expected)
        log.raw(f"Deduplication: {result.count('DeduplicationJob', 'duplicates')} documents marked as duplicates")
        if near:
            pairs = run_job(
                NearDuplicatesJob, conf, splits, title="DeduplicationJob: near-duplicates", expected=expected
            )
            count = _mark_near(conf, pairs.output, tables.check)
            result.counters.setdefault("DeduplicationJob", {})["near_duplicates"] = count
            log.raw(f"Deduplication: {count} documents marked as near-duplicates")
        log.finished("Deduplication", "elapsed")
        return result


def _mark_near(conf: Configuration, pairs: list[tuple[str, Any]], check: Callable[[], None]) -> int:
    """Go through pages from the best down: one that is near a page already kept is its duplicate; return how many."""
    _, order = settings(conf)
    rows: dict[str, list[Any]] = {}
    near: dict[str, set[str]] = {}
    for _, (one, other) in pairs:
        rows[one[0]], rows[other[0]] = one, other
        near.setdefault(one[0], set()).add(other[0])
        near.setdefault(other[0], set()).add(one[0])
    ranked = by_rank(((Candidate(unreverse_url(row[0]), row[1], row[2]), row[0]) for row in rows.values()), order)
    kept: dict[str, int] = {}
    count = 0
    with open_store(conf, WebPage).batch(check) as batch:
        for _, key in ranked:
            stands = near[key] & kept.keys()
            if stands:
                mark(batch, key, rows[key][3], min(stands, key=kept.__getitem__))
                count += 1
            else:
                kept[key] = len(kept)
    return count
