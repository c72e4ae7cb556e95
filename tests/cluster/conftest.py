"""The cluster of the tests in this folder: three nodes, started once."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.cluster.nodes import HERE
from tests.cluster.servers import Cluster

collect_ignore = [] if HERE in os.environ else ["test_crawl.py"]
"""Tests that run by ``scripts/test cluster`` only."""


@pytest.fixture(scope="session")
def three_nodes() -> Iterator[Cluster]:
    """Give a running cluster."""
    cluster = Cluster()
    try:
        cluster.start()
        yield cluster
    except BaseException:
        print(cluster.logs())
        raise
    finally:
        cluster.stop()
