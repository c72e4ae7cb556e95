"""Key ranges: the regions of a table, joined or split further so that there are about as many as were asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from nutch2py.records.cells import encode_text
from nutch2py.table.hbase.thrift_client.gateways import Gateways
from nutch2py.table.hbase.thrift_client.hbase_errors import SERVER_ERRORS, to_store_error
from nutch2py.table.hbase.thrift_client.hbase_scan import RowBudget, TableScanner
from nutch2py.table.table_query import KeyRange

_SAMPLE_FILTER = b"RowFilter(=,'regexstring:(?:7\\D*|^(?:.{16})*.{3})$') AND FirstKeyOnlyFilter() AND KeyOnlyFilter()"
"""Chooses rows by what is as good as chance: the last digit of the key, or its length. The server sends only those."""
KEYS_ONLY_FILTER = b"FirstKeyOnlyFilter() AND KeyOnlyFilter()"
"""Lets the server send of each row one cell, without its value."""
_KEYS_PER_RANGE = 16
"""Sampled keys for each range, for the ranges to be of like size."""
_MAX_KEYS = 100_000


class KeySpan(NamedTuple):
    """Keys in bytes from ``start`` (included) to ``stop`` (excluded); empty: that end is open."""

    start: bytes
    stop: bytes


def to_key_span(key_range: KeyRange) -> KeySpan:
    """Return the range in bytes."""
    return KeySpan(encode_text(key_range.start), encode_text(key_range.stop))


def region_spans(gateways: Gateways, table: bytes, within: KeySpan) -> list[KeySpan]:
    """Return the parts of ``within`` that lie in one region each, in order; regions may be split or moved any time."""
    cuts = {region.startKey for region in _fetch_regions(gateways, table) if region.startKey > within.start}
    inner = sorted(cut for cut in cuts if not within.stop or cut < within.stop)
    return [KeySpan(*ends) for ends in pairwise([within.start, *inner, within.stop])]


def region_hosts(gateways: Gateways, table: bytes, within: Sequence[KeySpan]) -> list[str]:
    """Return for each span the region server that holds most of its regions, of equal ones the first."""
    regions = sorted(_fetch_regions(gateways, table), key=lambda region: region.startKey)
    found = []
    for span in within:
        counts = Counter(
            (region.serverName or b"").decode("ascii", "replace")
            for region in regions
            if (not span.stop or region.startKey < span.stop) and (not region.endKey or region.endKey > span.start)
        )
        found.append(counts.most_common(1)[0][0] if counts else "")
    return found


def _fetch_regions(gateways: Gateways, table: bytes) -> list[Any]:
    """Return the regions of a table as the gateway tells them."""
    try:
        found: list[Any] = gateways.call(lambda link: link.client.getTableRegions(table))
    except SERVER_ERRORS as error:
        raise to_store_error(error, gateways.table, gateways.where) from error
    return found


def split_points(gateways: Gateways, table: bytes, within: KeySpan, count: int, family: bytes | None) -> list[bytes]:
    """Return up to ``count - 1`` keys that cut ``within`` into ranges of like size.

    Of at least ``count`` regions, neighbours are joined; fewer are split at quantiles of a sample of the keys.
    ``family`` is one that holds little and has a cell in nearly every row: only it is read for the sample.
    """
    if count <= 1:
        return []
    spans = region_spans(gateways, table, within)
    if len(spans) >= count:
        return [spans[len(spans) * part // count].start for part in range(1, count)]
    columns = None if family is None else [family]
    keys: list[bytes] = []
    for condition in (_SAMPLE_FILTER, KEYS_ONLY_FILTER):
        keys = _sample_keys(gateways, table, within, columns, condition)
        if len(keys) >= count * _KEYS_PER_RANGE:
            break
    cuts = {keys[len(keys) * part // count] for part in range(1, count)} if keys else set()
    return sorted(cut for cut in cuts if cut > within.start)


def _sample_keys(
    gateways: Gateways, table: bytes, within: KeySpan, columns: list[bytes] | None, filter_string: bytes
) -> list[bytes]:
    """Return keys in order; of very many, every second, fourth, … only."""
    keys: list[bytes] = []
    step = at = 1
    rows_at_once = gateways.settings.scan_rows
    budget = RowBudget(rows_at_once, gateways.settings.scan_bytes, rows_at_once)
    for rows in TableScanner(gateways, table, within, budget, columns, filter_string):
        for row in rows:
            at -= 1
            if not at:
                keys.append(row.row)
                at = step
        if len(keys) > _MAX_KEYS:
            keys, step = keys[::2], step * 2
    return keys
