"""DeduplicationJob: keeps one page of each signature and marks the others as its duplicates.

The mark is the metadata entry ``_dup_`` (see :func:`nutch2py.indexer.document_builder.duplicate_of`). Nutch 2 ignores
unknown entries, while Nutch 1's status "duplicate" would stop its schedule. index and clean delete the documents of
marked pages from the index.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cmp_to_key
from itertools import combinations
from typing import Any, NamedTuple
from urllib.parse import unquote_plus

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError
from nutch2py.indexer.document_builder import duplicate_of, should_index
from nutch2py.indexer.filters.index_basic import page_fetch_time
from nutch2py.jobs.job_context import open_job
from nutch2py.jobs.locking.lock_scopes import DEDUP
from nutch2py.jobs.nutch_log_lines import JobLogger
from nutch2py.mapreduce.driver import JobResult, map_task_count, run_job
from nutch2py.mapreduce.input_splits import range_splits
from nutch2py.mapreduce.job_parameters import JobParameters
from nutch2py.mapreduce.table_job import GroupedValues, KeyValuePair, Pages, TableJob
from nutch2py.parser.html.main_text import main_or_full_text
from nutch2py.records.record import RecordField
from nutch2py.records.webpage import FETCHED_STATUSES, MetadataKey, WebPage
from nutch2py.support.invariants import not_none
from nutch2py.table import TableQuery, WriteBatch, open_store
from nutch2py.url.keys import unreverse_url
from nutch2py.url.url_parts import domain_of, host_of

GROUP_MODES = ("none", "host", "domain")
COMPARISONS = ("score", "fetchTime", "httpsOverHttp", "urlLength")
_REQUIRED_COMPARISONS = frozenset({"score", "fetchTime", "urlLength"})
_MIN_WORDS = 20  # shorter texts have too few features to be distinguished
_FIELDS: frozenset[RecordField] = frozenset(
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


class DuplicateCandidate(NamedTuple):
    """A page of a duplicate group: URL, score and fetch time (ms)."""

    url: str
    score: float
    fetch_time: int


def pick_duplicate(
    one: DuplicateCandidate, other: DuplicateCandidate, comparison_order: Sequence[str]
) -> DuplicateCandidate | None:
    """Return which of two equal pages is the duplicate; None if ``comparison_order`` does not decide.

    The comparisons of Nutch 1's ``DeduplicationJob`` keep the page with the higher score, the later fetch time, the
    https URL of two otherwise equal URLs, or the shorter URL (percent-escapes decoded).
    """
    for comparison in comparison_order:
        better = _compare(comparison, one, other)
        if better:
            return other if better > 0 else one
    return None


def _compare(comparison: str, one: DuplicateCandidate, other: DuplicateCandidate) -> float:
    if comparison == "score":
        return one.score - other.score
    if comparison == "fetchTime":
        return one.fetch_time - other.fetch_time
    if comparison == "httpsOverHttp":
        (scheme, _, rest), (other_scheme, _, other_rest) = one.url.partition(":"), other.url.partition(":")
        if rest != other_rest or {scheme, other_scheme} != {"http", "https"}:
            return 0
        return 1 if scheme == "https" else -1
    return _decoded_length(other.url) - _decoded_length(one.url)


def _decoded_length(url: str) -> int:
    """Return the length in UTF-16 units of the decoded URL; with a malformed escape of the URL itself."""
    decoded = url if _BAD_ESCAPE.search(url) else unquote_plus(url)
    return len(decoded.encode("utf-16-le", "surrogatepass")) // 2


def sort_by_preference(
    candidates: Iterable[tuple[DuplicateCandidate, str]], comparison_order: Sequence[str]
) -> list[tuple[DuplicateCandidate, str]]:
    """Sort (candidate, row key), the one to keep first; ties of ``comparison_order`` in alphabetical order."""

    def compare(one: tuple[DuplicateCandidate, str], other: tuple[DuplicateCandidate, str]) -> int:
        worse = pick_duplicate(one[0], other[0], comparison_order)
        if worse is None:
            return (one[1] > other[1]) - (one[1] < other[1])
        return 1 if worse is one[0] else -1

    return sorted(candidates, key=cmp_to_key(compare))


class _DedupJobBase(TableJob[JobParameters]):
    """Base of both passes: selects the candidates and their groups."""

    def prepare(self) -> None:
        """Read the settings."""
        self.group_mode, self.comparison_order = read_dedup_settings(self.conf)

    def iter_candidates(self, pages: Pages) -> Iterator[tuple[str, WebPage, str]]:
        """Yield row key, page and group of every page that can be in the index."""
        for key, page in pages:
            if page.status in FETCHED_STATUSES and page.signature and should_index(page):
                url = unreverse_url(key)
                group = {"host": host_of, "domain": domain_of}.get(self.group_mode, lambda _: "")(url)
                yield key, page, group

    def make_candidate(self, key: str, score: float, fetch_time: int) -> DuplicateCandidate:
        """Return the compared values of a row."""
        return DuplicateCandidate(unreverse_url(key), score, fetch_time)


def mark_duplicate(batch: WriteBatch, key: str, signature: str, kept_key: str | None) -> None:
    """Mark a row as a duplicate of the row ``kept_key``; None removes the mark."""
    page = WebPage({}, frozenset())
    if kept_key is None:
        page.metadata.pop(MetadataKey.DUPLICATE)
    else:
        page.metadata[MetadataKey.DUPLICATE] = f"{signature} {kept_key}".encode()
    batch.put(key, page)


class DeduplicationJob(_DedupJobBase):
    """Groups pages by signature; the reducer marks all but the best of each group, and removes old marks."""

    fields = _FIELDS

    def map_pages(self, pages: Pages) -> Iterator[KeyValuePair]:
        """Yield each page under its signature and group."""
        for key, page, group in self.iter_candidates(pages):
            old = page.metadata.get(MetadataKey.DUPLICATE)
            text = None if old is None else old.decode("utf-8", "replace")
            signature = not_none(page.signature, "signature")
            yield f"{signature.hex()} {group}", [key, page.score, page_fetch_time(page), text]

    def reduce_groups(self, groups: GroupedValues) -> Iterator[KeyValuePair]:
        """Mark the duplicates of each group."""
        with self.write_batch() as batch:
            for group_key, values in groups:
                signature = group_key.partition(" ")[0]
                old: dict[str, str | None] = {}
                rows = []
                for key, score, fetched, text in values:
                    old[key] = text
                    rows.append((self.make_candidate(key, score, fetched), key))
                ranked = [key for _, key in sort_by_preference(rows, self.comparison_order)]
                if old[ranked[0]] is not None:
                    mark_duplicate(batch, ranked[0], signature, None)
                    self.count("DeduplicationJob", "freed")
                for key in ranked[1:]:
                    if old[key] != f"{signature} {ranked[0]}":
                        mark_duplicate(batch, key, signature, ranked[0])
                if len(ranked) > 1:
                    self.count("DeduplicationJob", "duplicates", len(ranked) - 1)
        yield from ()


class NearDuplicatesJob(_DedupJobBase):
    """Groups pages by bands of the SimHash of their texts; the reducer yields pairs that differ in few bits.

    Two hashes that differ in at most ``threshold`` bits have one of ``threshold`` + 1 bands in common.
    """

    fields = _FIELDS | {WebPage.text}

    def prepare(self) -> None:
        """Load the analyzer."""
        super().prepare()
        from nutch2py.backends.analysis.analyzer import Analyzer

        self.threshold = self.conf.get_int("deduplication.simhash.threshold", 3)
        self.analyzer = Analyzer.from_conf(self.conf)

    def map_pages(self, pages: Pages) -> Iterator[KeyValuePair]:
        """Yield each page without a mark of the first pass under each of its bands."""
        from nutch2py.parser.signatures.simhash import simhash, split_bands

        for key, page, group in self.iter_candidates(pages):
            if duplicate_of(page) is not None:
                continue
            words = self.analyzer.index_terms(main_or_full_text(page))
            if len(words) < _MIN_WORDS:
                continue
            value = simhash(words)
            signature = not_none(page.signature, "signature")
            row = [key, page.score, page_fetch_time(page), signature.hex(), f"{value:016x}"]
            for band, part in enumerate(split_bands(value, self.threshold + 1)):
                yield f"{band}:{part:x} {group}", row

    def reduce_groups(self, groups: GroupedValues) -> Iterator[KeyValuePair]:
        """Yield pairs; only the best of the pages with the same hash is compared with others."""
        from nutch2py.parser.signatures.simhash import hamming_distance

        for _, values in groups:
            by_hash: dict[int, list[list[Any]]] = {}
            for row in values:
                by_hash.setdefault(int(row[4], 16), []).append(row)
            best: dict[int, list[Any]] = {}
            for value, rows in by_hash.items():
                known = {row[0]: row for row in rows}
                ranked = sort_by_preference(
                    ((self.make_candidate(*row[:3]), row[0]) for row in rows), self.comparison_order
                )
                best[value] = known[ranked[0][1]]
                for _, key in ranked[1:]:
                    yield best[value][0], [best[value][:4], known[key][:4]]
            for one, other in combinations(sorted(best), 2):
                if hamming_distance(one, other) <= self.threshold:
                    yield best[one][0], [best[one][:4], best[other][:4]]


def read_dedup_settings(conf: Configuration) -> tuple[str, list[str]]:
    """Return the group mode and the order of comparisons; raise ConfigurationError for unknown values."""
    mode = conf.get_trimmed("deduplication.group.mode", "none")
    if mode not in GROUP_MODES:
        raise ConfigurationError(f"deduplication.group.mode is {mode!r}: write {', '.join(GROUP_MODES)}")
    order = conf.get_strings("deduplication.compare.order", ("score", "fetchTime", "urlLength"))
    if not _REQUIRED_COMPARISONS <= set(order) <= set(COMPARISONS):
        raise ConfigurationError(
            f"deduplication.compare.order is {','.join(order)!r}: "
            "it must contain score, fetchTime and urlLength, and may contain httpsOverHttp"
        )
    return mode, order


def dedup(conf: Configuration, include_near_duplicates: bool = False) -> JobResult:
    """Mark duplicates, and with ``include_near_duplicates`` pages with similar texts; return the counters."""
    conf = conf.copy()
    read_dedup_settings(conf)
    conf.check_numbers()
    log = JobLogger("DeduplicationJob", announce=False)
    log.log("starting")
    with open_job(conf, DEDUP) as tables:
        store = tables.store
        expected = store.row_estimate()
        splits = range_splits(store, TableQuery(_FIELDS), map_task_count(conf))
        result = run_job(DeduplicationJob, conf, splits, title="DeduplicationJob", expected_rows=expected)
        log.log_raw(f"Deduplication: {result.count('DeduplicationJob', 'duplicates')} documents marked as duplicates")
        if include_near_duplicates:
            pairs = run_job(
                NearDuplicatesJob, conf, splits, title="DeduplicationJob: near-duplicates", expected_rows=expected
            )
            count = _mark_near_duplicates(conf, pairs.output, tables.check_lock)
            result.counters.setdefault("DeduplicationJob", {})["near_duplicates"] = count
            log.log_raw(f"Deduplication: {count} documents marked as near-duplicates")
        log.log_finished("Deduplication", "elapsed")
        return result


def _mark_near_duplicates(conf: Configuration, pairs: list[tuple[str, Any]], check_lock: Callable[[], None]) -> int:
    """Mark each page, in order of preference, as duplicate if it is near a kept page; return the number of marks."""
    _, order = read_dedup_settings(conf)
    rows: dict[str, list[Any]] = {}
    near: dict[str, set[str]] = {}
    for _, (one, other) in pairs:
        rows[one[0]], rows[other[0]] = one, other
        near.setdefault(one[0], set()).add(other[0])
        near.setdefault(other[0], set()).add(one[0])
    ranked = sort_by_preference(
        ((DuplicateCandidate(unreverse_url(row[0]), row[1], row[2]), row[0]) for row in rows.values()), order
    )
    kept: dict[str, int] = {}
    count = 0
    with open_store(conf, WebPage).batch(check_lock) as batch:
        for _, key in ranked:
            near_kept = near[key] & kept.keys()
            if near_kept:
                mark_duplicate(batch, key, rows[key][3], min(near_kept, key=kept.__getitem__))
                count += 1
            else:
                kept[key] = len(kept)
    return count
