"""What a result can be narrowed by: of the values that an index has counted, those that help."""

from __future__ import annotations

from collections.abc import Mapping

from nutch2py.backends.index_folder import FACET, FACETS, TERMS

Counted = dict[str, list[tuple[str, int]]]
"""Facet -> (value, number of documents)."""

COUNTED = 200
"""Values of a facet that an index counts, the most frequent ones."""
_MOST = 10


def field_of_facet(name: str) -> str:
    """Return the field of a server that has the values of a facet."""
    return f"{TERMS}{FACET}{name}" if name in ("path", "date") else name


def offered(found: Mapping[str, list[tuple[str, int]]], filters: Mapping[str, str]) -> Counted:
    """Return the values to show, the most frequent first, dates by time.

    Of dates the years, and the months of the year by which the result is narrowed. Of folders those at the top of the
    host, where all hits are of one, and those within the folder by which it is narrowed. Of types the whole ones.

    >>> counted = {"date": [("2026", 3), ("2026-11", 2), ("2026-01", 1)]}
    >>> offered(counted, {}), offered(counted, {"date": "2026"})
    ({'date': [('2026', 3)]}, {'date': [('2026', 3), ('2026-11', 2), ('2026-01', 1)]})
    """
    chosen = {
        "path": _folders(found.get("path", []), filters.get("path", ""), [host for host, _ in found.get("host", ())]),
        "date": _dates(found.get("date", []), filters.get("date", "")),
        "type": [pair for pair in found.get("type", ()) if "/" in pair[0]],
    }
    return {name: chosen.get(name, found[name])[:_MOST] for name in FACETS if name in found}


def _dates(counted: list[tuple[str, int]], year: str) -> list[tuple[str, int]]:
    inside = [pair for pair in counted if (pair[0].startswith(f"{year}-") if year else len(pair[0]) == 4)]
    return [*(pair for pair in counted if pair[0] == year), *sorted(inside, reverse=True)]


def _folders(counted: list[tuple[str, int]], folder: str, hosts: list[str]) -> list[tuple[str, int]]:
    if not folder:
        return [pair for pair in counted if pair[0].count("/") == 2] if len(hosts) == 1 else []
    depth = folder.count("/")
    inside = [pair for pair in counted if pair[0].startswith(folder) and pair[0].count("/") == depth + 1]
    return [*(pair for pair in counted if pair[0] == folder), *inside]
