"""Responses of the search have a limit of bytes, whatever documents hold and requests ask for."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.indexer.index_writers import IndexWriters
from nutch2py.search.results.response_limit import ResponseBudget
from nutch2py.url.keys import reverse_url
from tests.indexer.pages import doc
from tests.server.conftest import Running, running
from tests.server.test_serve import get

LIMIT = 200_000
HITS = 30
LONG_FIELDS: dict[str, Any] = {
    "content": "plankton " + "word " * 8_000,
    "anchor": [f"anchor {number} of a page" for number in range(800)],
    "meta_long": '\u202e中"' * 3_000,
    "meta_one": "small",
    "type": ["text/html", *(f"text/{'x' * 500}{number}" for number in range(20))],
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Yield a server of an index of pages with long fields."""
    conf = Configuration.load(
        overrides={
            "storage.data.store": f"embedded:{tmp_path_factory.mktemp('limit') / 'crawldata'}",
            "storage.embedded.map.size": str(1 << 30),
            "search.response.max.bytes": str(LIMIT),
        }
    )
    with IndexWriters(conf) as writers:
        writers.prepare()
        for number in range(HITS):
            url = f"http://h{number}.test/{'p' * 1000}"
            writers.write(doc(reverse_url(url), url=url, host=f"h{number}.test", title="Plankton", **LONG_FIELDS))
        writers.commit()
    with running(conf) as made:
        yield made


def search(server: Running, path: str, **arguments: Any) -> tuple[int, dict[str, Any]]:
    """Return the bytes of a response, and it as JSON."""
    response, body = get(server, f"{path}?{urlencode({'q': 'plankton', **arguments})}")
    assert response.status == 200, body
    return len(body.encode()), json.loads(body)


@pytest.mark.parametrize("rows", [1, HITS])
@pytest.mark.parametrize(
    "fields", ["content", "anchor", "meta_long,meta_one", "content,anchor,meta_long,meta_one,type"]
)
def test_bytes_of_api_response_are_limited(server: Running, fields: str, rows: int) -> None:
    size, found = search(server, "/api/v1/search", fields=fields, rows=rows, facets="host,type")
    assert len(found["hits"]) == rows
    assert size <= LIMIT
    assert rows == 1 or (size > LIMIT / 3 and found["isCut"])
    assert found["isCut"] == any(hit["cutFields"] for hit in found["hits"])
    for hit in found["hits"]:
        assert hit["url"].endswith("p" * 1000)
        assert hit["snippet"].startswith("plankton")
        for name, values in hit["fields"].items():
            whole = LONG_FIELDS[name] if isinstance(LONG_FIELDS[name], list) else [LONG_FIELDS[name]]
            assert (values == whole) == (name not in hit["cutFields"]), name
            assert all(full.startswith(value) for value, full in zip(values, whole, strict=False))
        assert hit["fields"].get("meta_one", ["small"]) == ["small"]


@pytest.mark.parametrize("rows", [1, HITS])
def test_bytes_of_json_response_are_limited(server: Running, rows: int) -> None:
    size, found = search(server, "/search.json", rows=rows, fields="content")
    assert size <= LIMIT
    if rows == 1:
        assert "is_cut" not in found
        return
    assert found["is_cut"]
    for hit in found["hits"]:
        assert {"anchor", "meta_long"} & {*hit["cut_fields"]}
        assert hit["fields"]["meta_one"] == "small"


def test_response_within_limit_is_whole(server: Running) -> None:
    _, found = search(server, "/api/v1/search", fields="meta_one,host", rows=100)
    assert not found["isCut"]
    assert {hit["fields"]["meta_one"][0] for hit in found["hits"]} == {"small"}
    assert all(hit["cutFields"] == [] for hit in found["hits"])


def test_cursor_reads_every_hit_although_values_are_cut(server: Running) -> None:
    ids, cursor = list[str](), "*"
    while cursor:
        _, found = search(server, "/api/v1/search", fields="content", rows=25, cursor=cursor)
        ids += [hit["id"] for hit in found["hits"]]
        cursor = found["cursor"]
    assert len({*ids}) == len(ids) == HITS


@pytest.mark.parametrize("limit", [1, 100, 5_000])
@pytest.mark.parametrize("value", ["x" * 9_000, "\x00" * 9_000, "🦀" * 9_000, ["y" * 10] * 999, ["z" * 9_000] * 2, []])
def test_cut_values_fit_into_budget(limit: int, value: object) -> None:
    budget = ResponseBudget(limit, 3)
    size = 0
    for _ in range(3):
        kept, cut = budget.cut_fields({"long": value, "short": "s"}, "")
        assert budget.is_cut or not cut
        size += len(json.dumps(kept, ensure_ascii=False, separators=(",", ":")).encode())
    assert size <= limit + 3 * len('{"long":[],"short":""}')


def test_large_documents_are_cut_as_they_are_read(server: Running, tmp_path: Path) -> None:
    with server.app.state.search.searchers.acquire() as index:
        from nutch2py.search.query.query_plan import SearchOptions

        cut = index.search("plankton", rows=30, options=SearchOptions(max_characters=1_000)).hits
        whole = index.search("plankton", rows=1).hits[0]
    assert max(len(str(value)) for hit in cut for name, value in hit.fields.items() if name != "url") < 2_000
    assert whole.fields["content"] == LONG_FIELDS["content"]


def test_value_that_was_cut_as_it_was_read_is_named() -> None:
    budget = ResponseBudget(100_000, 2, max_characters=1_000)
    assert budget.cut_fields({"a": "x" * 999, "b": ["y"] * 10}, "")[1] == []
    assert budget.cut_fields({"a": "x" * 1_000, "b": ["y" * 500] * 2}, "")[1] == ["a", "b"]
    assert budget.is_cut
