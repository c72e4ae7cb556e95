"""Valid and invalid requests generated from the OpenAPI document cause no server error."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote, urlencode

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nutch2py import Crawl
from nutch2py.indexer.writers.embedded_writer import EmbeddedIndexWriter
from nutch2py.rest.api_routes import OPERATIONS
from nutch2py.rest.dispatch.openapi import build_document
from tests.indexer.pages import doc
from tests.rest.conftest import Client

DOCUMENT = json.loads(json.dumps(build_document(OPERATIONS)))
TEXT = st.text(max_size=20) | st.sampled_from(
    ["", "default", "..", "a", "-all", "0", "true", "http://a.test/", "\x00", "${x}"]
)
ANYTHING = st.none() | st.booleans() | st.integers() | st.floats() | TEXT | st.lists(TEXT, max_size=2)
NEVER = {"/admin/stop"}
"""Operations that would stop the server."""


def values(schema: dict[str, Any], depth: int = 0) -> st.SearchStrategy[Any]:
    """Return a strategy for values of a schema, with occasional invalid ones."""
    if "$ref" in schema:
        return values(DOCUMENT["components"]["schemas"][schema["$ref"].rpartition("/")[2]], depth)
    if depth > 4:
        return ANYTHING
    several = schema.get("anyOf") or schema.get("oneOf")
    if several:
        return st.one_of([values(each, depth + 1) for each in several])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    right: st.SearchStrategy[Any] = TEXT
    match schema.get("type"):
        case "integer" | "number":
            right = st.integers(schema.get("minimum", -5), min(schema.get("maximum", 2**31), 2**31))
        case "boolean":
            right = st.booleans()
        case "array":
            right = st.lists(values(schema.get("items", {}), depth + 1), max_size=2)
        case "object":
            properties = {name: values(each, depth + 1) for name, each in schema.get("properties", {}).items()}
            needed = {name: each for name, each in properties.items() if name in schema.get("required", ())}
            others = {name: each for name, each in properties.items() if name not in needed}
            right = st.fixed_dictionaries(needed, optional=others)
    return right | ANYTHING if depth else right


@st.composite
def requests(draw: st.DrawFn) -> tuple[str, str, Any]:
    """Draw method, path with query, and body."""
    path = draw(st.sampled_from(sorted(DOCUMENT["paths"].keys() - NEVER)))
    method = draw(st.sampled_from(sorted(DOCUMENT["paths"][path])))
    described = DOCUMENT["paths"][path][method]
    query = {}
    for parameter in described["parameters"]:
        if parameter["in"] == "path":
            text = str(draw(TEXT)).encode("utf-8", "replace").decode()
            path = path.replace(f"{{{parameter['name']}}}", quote(text or "a", safe=""))
        elif draw(st.booleans()):
            query[parameter["name"]] = str(draw(values(parameter["schema"], 1))).encode("utf-8", "replace")
    schemas = described.get("requestBody", {}).get("content", {})
    body = draw(values(schemas["application/json"]["schema"])) if schemas else None
    if isinstance(body, dict) and body.get("job") == "crawl":
        body["job"] = "inject"  # a job that finishes by itself
    return method.upper(), f"{path}?{urlencode(query)}" if query else path, body


def test_generated_requests_cause_no_server_error(client: Client) -> None:
    authorizer = client.server.app.state.authorizer
    with Crawl(authorizer.context.conf) as crawl:
        crawl.inject(["http://a.test/"])
    writer = EmbeddedIndexWriter(authorizer.context.conf)  # without a document, searches are a server error
    writer.open(authorizer.context.conf, {})
    writer.write(doc("test.a:http/", url="http://a.test/", host="a.test", title="A", content="a", lang="en"))
    writer.close()
    authorizer.rate_limiter.per_second = 0.0
    authorizer.context.jobs.max_running = 0  # jobs are rejected, after all other checks
    statuses: set[int] = set()

    @settings(max_examples=200, deadline=None, derandomize=True, database=None,
              suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])  # fmt: skip
    @given(requests())
    def ask(request: tuple[str, str, Any]) -> None:
        method, path, body = request
        sent = None if body is None else json.dumps(body).encode()
        status, body = client.request(method, path, sent, **({"Content-Type": "application/json"} if sent else {}))
        statuses.add(status)
        assert status < 500, (request, body)

    ask()
    assert {200, 400, 404} <= statuses
