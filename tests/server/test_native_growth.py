"""CPU time of what anybody may request, with that of native code (tantivy, lxml): it grows no faster than the input.

tests/server/test_anonymous_growth.py counts calls of Python functions, which native code does not show. Here all
threads of the process are measured, by ratios (:mod:`tests.growth`); nothing is compared with a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path

import pytest

from tests.groups import SEARCH_PATHS
from tests.growth import assert_linear
from tests.server.conftest import Running
from tests.server.test_anonymous_growth import KEY, QUERIES, page_text, request, server_of, words

QUERY_CHARACTERS = 1_000
"""Longest query that is read."""
PATHS = ("/", *SEARCH_PATHS)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Yield a server of an index of some hundred pages, whose searches all run in this process."""
    texts = [words(number, 300) for number in range(300)]
    with server_of(tmp_path_factory.mktemp("queries"), texts, search_worker_processes="0") as (served, _):
        yield served


def cut_query(query: str) -> Callable[[int], str]:
    """Return the start of a query, repeated where it is too short, as a shape; parentheses stay balanced."""

    def start(length: int) -> str:
        half = min(length, QUERY_CHARACTERS) // 2
        if set(query) >= {"(", ")"}:
            return "(" * half + "plankton" + ")" * half
        repeated = f"{query} " * (length // len(query) + 1)
        return repeated[: min(length, QUERY_CHARACTERS)]

    return start


@pytest.mark.parametrize("path", PATHS)
def test_cpu_time_is_linear_in_length_of_query(server: Running, path: str) -> None:
    def send(query: str) -> None:
        assert request(server, path, q=query, id=KEY)[0] in (200, 400, 404)

    for name, query in QUERIES.items():
        assert_linear(send, {name: cut_query(query)}, QUERY_CHARACTERS // 2, of_process=True)


LONGEST_PAGE = 4_000_000


def test_cpu_time_is_linear_in_size_of_pages(tmp_path: Path) -> None:
    with ExitStack() as stack:

        @cache
        def server_for(size: int) -> Running:
            folder = tmp_path / str(size)
            folder.mkdir()
            made = server_of(folder, [page_text(size)] * 2, search_worker_processes="0")
            return stack.enter_context(made)[0]

        def send(given: tuple[Running, str]) -> None:
            served, path = given
            status, _ = request(served, path, q="plankton whal", id=KEY)
            assert status in (200, 404)

        shapes = {path: lambda size, path=path: (server_for(size), path) for path in PATHS}
        for name, shape in shapes.items():
            assert_linear(send, {name: shape}, LONGEST_PAGE, of_process=True)
