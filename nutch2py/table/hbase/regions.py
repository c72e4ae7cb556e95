"""Splits a table into key ranges for tasks: its regions, merged or split to about the requested number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from nutch2py.records.cells import encode_text
from nutch2py.table.hbase.thrift_client.hbase_errors import SERVER_ERRORS, to_store_error
from nutch2py.table.hbase.thrift_client.hbase_scan import KeySpan, RowBudget, TableScanner
from nutch2py.table.hbase.thrift_client.thrift_gateway_pool import ThriftGatewayPool
from nutch2py.table.hbase.thrift_client.thrift_types import ThriftRegion
from nutch2py.table.table_query import KeyRange

_SAMPLE_FILTER = b"RowFilter(=,'regexstring:(?:7\\D*|^(?:.{16})*.{3})$') AND FirstKeyOnlyFilter() AND KeyOnlyFilter()"
"""Server-side filter for a pseudo-random sample of rows, by the last digit of the key or its length."""
KEYS_ONLY_FILTER = b"FirstKeyOnlyFilter() AND KeyOnlyFilter()"
"""Server-side filter that returns one cell per row, without its value."""
_KEYS_PER_RANGE = 16
"""Sampled keys per range, for ranges of similar size."""
_MAX_KEYS = 100_000


def to_key_span(key_range: KeyRange) -> KeySpan:
    """Return the range in bytes."""
    return KeySpan(encode_text(key_range.start), encode_text(key_range.stop))


def region_spans(gateways: ThriftGatewayPool, table: bytes, within: KeySpan) -> list[KeySpan]:
    """Return the parts of ``within`` by region, in order; regions may be split or moved at any time."""
    cuts = {region.startKey for region in _fetch_regions(gateways, table) if region.startKey > within.start}
    inner = sorted(cut for cut in cuts if not within.stop or cut < within.stop)
    return [KeySpan(*ends) for ends in pairwise([within.start, *inner, within.stop])]


def region_hosts(gateways: ThriftGatewayPool, table: bytes, within: Sequence[KeySpan]) -> list[str]:
    """Return for each span the host of the region server with most of its regions."""
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


def _fetch_regions(gateways: ThriftGatewayPool, table: bytes) -> list[ThriftRegion]:
    """Return the regions of a table from the gateway."""
    try:
        found: list[ThriftRegion] = gateways.call(lambda link: link.client.getTableRegions(table))
    except SERVER_ERRORS as error:
        raise to_store_error(error, gateways.table, gateways.where) from error
    return found


def split_points(
    gateways: ThriftGatewayPool, table: bytes, within: KeySpan, count: int, family: bytes | None
) -> list[bytes]:
    """Return up to ``count - 1`` keys that split ``within`` into ranges of similar size.

    If there are at least ``count`` regions, adjacent ones are merged; fewer are split at quantiles of a key sample.
    ``family`` is the family to sample keys from: a small one with a cell in nearly every row.
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
    gateways: ThriftGatewayPool, table: bytes, within: KeySpan, columns: list[bytes] | None, filter_string: bytes
) -> list[bytes]:
    """Return keys in order, thinned out to every second, fourth, … key if there are very many."""
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
