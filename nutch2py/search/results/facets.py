"""Facets: selects from the counted values of an index those that are useful as filters."""

from __future__ import annotations

from collections.abc import Mapping

from nutch2py.backends.index_fields import FACET_NAMES, FACET_PREFIX, TERMS_PREFIX

FacetCounts = dict[str, list[tuple[str, int]]]
"""Facet -> (value, number of documents)."""

MAX_COUNTED_VALUES = 200
"""Number of values of a facet that an index counts, the most frequent ones."""
_MAX_SHOWN_VALUES = 10


def server_facet_field(name: str) -> str:
    """Return the field of a server with the values of a facet."""
    return f"{TERMS_PREFIX}{FACET_PREFIX}{name}" if name in ("path", "date") else name


def select_facets(counts: Mapping[str, list[tuple[str, int]]], filters: Mapping[str, str]) -> FacetCounts:
    """Return the values to offer, the most frequent first, and dates by time.

    Dates: the years, and the months of the year in ``filters``. Paths: the top folders if all hits are of one host,
    and the folders within the path in ``filters``. Types: only complete ones.

    >>> counts = {"date": [("2026", 3), ("2026-11", 2), ("2026-01", 1)]}
    >>> select_facets(counts, {}), select_facets(counts, {"date": "2026"})
    ({'date': [('2026', 3)]}, {'date': [('2026', 3), ('2026-11', 2), ('2026-01', 1)]})
    """
    selected = {
        "path": _select_paths(
            counts.get("path", []), filters.get("path", ""), [host for host, _ in counts.get("host", ())]
        ),
        "date": _select_dates(counts.get("date", []), filters.get("date", "")),
        "type": [pair for pair in counts.get("type", ()) if "/" in pair[0]],
    }
    return {name: selected.get(name, counts[name])[:_MAX_SHOWN_VALUES] for name in FACET_NAMES if name in counts}


def _select_dates(counted: list[tuple[str, int]], year: str) -> list[tuple[str, int]]:
    inside = [pair for pair in counted if (pair[0].startswith(f"{year}-") if year else len(pair[0]) == 4)]
    return [*(pair for pair in counted if pair[0] == year), *sorted(inside, reverse=True)]


def _select_paths(counted: list[tuple[str, int]], folder: str, hosts: list[str]) -> list[tuple[str, int]]:
    if not folder:
        return [pair for pair in counted if pair[0].count("/") == 2] if len(hosts) == 1 else []
    depth = folder.count("/")
    inside = [pair for pair in counted if pair[0].startswith(folder) and pair[0].count("/") == depth + 1]
    return [*(pair for pair in counted if pair[0] == folder), *inside]
