"""How tests are divided among workers that run side by side: what shares a server or a module stays together.

A worker takes one group after the other and starts the servers that they use. xdist_group is not used: pytest-xdist 3.8
adds the group to a test's id in a way that pytest 9.2 passes over.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from xdist.scheduler import LoadScopeScheduling

GROUPS = {
    "hadoop": (
        "mapreduce/test_yarn_crawl", "mapreduce/test_yarn_kills", "mapreduce/test_hadoop", "mapreduce/test_archive",
    ),
    "hbase": (
        "jobs/test_hbase_crawl", "jobs/test_recording_hbase", "table/test_hbase", "table/test_hbase_cells",
        "table/test_hbase_dump", "table/test_hbase_failures", "table/test_hbase_services", "jobs/test_beside_hbase",
        # two Sparks at once would see each other's files, and one module uses HBase, too
        "jobs/test_pagerank_runners", "mapreduce/test_spark",
    ),
    "kill": ("jobs/test_kill",),
    "solr": (
        "indexer/test_solr", "indexer/test_solr_crawl", "search/test_near_misses", "search/test_solr_search",
        "server/test_both_indexes", "server/test_browser", "server/test_refusals",
    ),
    "site": ("jobs/test_real_site",),
    "opensearch": ("indexer/test_elastic",),
}  # fmt: skip
"""Modules that stay together. The longest are first: begun last, one of them would keep a worker busy alone at the end.

Every other module is a group of its own.
"""
_GROUP_OF = {f"tests/{module}.py": group for group, modules in GROUPS.items() for module in modules}
_RANK = {group: rank for rank, group in enumerate(GROUPS)}


def group_of(nodeid: str) -> str:
    """Return the group of a test by its id."""
    module = nodeid.partition("::")[0]
    return _GROUP_OF.get(module, module)


def in_order(items: list[pytest.Item]) -> None:
    """Put the tests of the groups above first."""
    items.sort(key=lambda item: _RANK.get(group_of(item.nodeid), len(_RANK)))


class GroupScheduling(LoadScopeScheduling):  # type: ignore[misc]
    """Gives the workers whole groups."""

    _split_scope: Callable[[LoadScopeScheduling, str], str] = staticmethod(group_of)  # type: ignore[assignment]
