"""The OpenAPI document is complete and documented, and matches the server."""

from __future__ import annotations

import re

from nutch2py.rest.api_routes import OPERATIONS
from tests.conftest import ROOT
from tests.rest.conftest import Client


def test_openapi_lists_every_operation(client: Client) -> None:
    found = client.get("/api/openapi.json")
    described = {(method.upper(), path) for path, methods in found["paths"].items() for method in methods}
    assert described == {(one.method, re.sub(r":\w+}", "}", one.path)) for one in OPERATIONS}
    referred = set(re.findall(r"#/components/schemas/([^\"']+)", str(found)))
    assert referred <= found["components"]["schemas"].keys()
    named = [each["operationId"] for methods in found["paths"].values() for each in methods.values()]
    assert len(named) == len(set(named))


def test_docs_describe_every_operation(client: Client) -> None:
    shown, documentation = client.get("/api/docs"), (ROOT / "docs" / "rest.md").read_text("utf-8")
    for one in OPERATIONS:
        assert one.path in shown
        assert f"| {one.method} | `{one.path}` | {one.role.name.lower()} |" in documentation


def test_unknown_path_returns_json_error(client: Client) -> None:
    assert client.request("GET", "/api/v1/nothing") == (
        404, {"title": "Not Found", "status": 404, "detail": "Not Found", "error": "Not Found"}
    )  # fmt: skip
    assert client.request("PATCH", "/api/v1/jobs")[0] == 405


def test_metrics_count_requests(client: Client) -> None:
    client.get("/api/v1/jobs")
    text = client.get("/metrics")
    assert 'nutch2py_requests_total{method="GET",path="/api/v1/jobs",status="200"} 1.0\n' in text
    assert 'nutch2py_jobs{state="running"} 0.0\n' in text
