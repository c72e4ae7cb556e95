"""OpenAPI document and HTML overview of the operations."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from http import HTTPStatus
from typing import Any

import msgspec

from nutch2py.rest.access.tokens import Role
from nutch2py.rest.dispatch.operation import PATH_PARAM_TYPES, PROBLEM_MEDIA_TYPE, Operation, ProblemDetails
from nutch2py.version import __version__

_PREFIX = "/api/v1"
_STRING_SCHEMA = {"type": "string"}
_RETRY_AFTER = {"description": "seconds after which to retry", "schema": {"type": "integer", "minimum": 1}}
_REF_TEMPLATE = "#/components/schemas/{name}"
_PATH_PARAM = re.compile(r"{(\w+)(?::\w+)?}")


def build_document(operations: Sequence[Operation]) -> dict[str, object]:
    """Return the OpenAPI 3.1 document of operations."""
    types = [each for one in operations for each in (one.response_type, one.body_type) if each not in (None, str)]
    queries = [one.query_type for one in operations if one.query_type is not None]
    described = [*types, *queries, ProblemDetails, *PATH_PARAM_TYPES.values()]
    schemas, components = msgspec.json.schema_components(described, ref_template=_REF_TEMPLATE)
    schema_of = {id(kind): schema for kind, schema in zip(described, schemas, strict=True)}
    paths: dict[str, dict[str, object]] = {}
    for one in operations:
        path = _PATH_PARAM.sub(r"{\1}", one.path)
        paths.setdefault(path, {})[one.method.lower()] = _operation_object(one, schema_of, components)
    return {
        "openapi": "3.1.0",
        "info": {"title": "nutch2py", "version": __version__, "license": {"name": "Apache-2.0"},
                 "description": "Jobs, schedules, settings and tables of crawls. See docs/rest.md."},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"},
                                "password": {"type": "http", "scheme": "basic"}},
        },
    }  # fmt: skip


def _operation_object(operation: Operation, schema_of: dict[int, Any], components: dict[str, Any]) -> dict[str, Any]:
    """Return the OpenAPI Operation Object. ``schema_of``: schemas by the ``id`` of their type."""
    parameters: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": schema_of[id(PATH_PARAM_TYPES[name])]}
        for name in _PATH_PARAM.findall(operation.path)
    ]
    for name, schema in _query_properties(operation, schema_of, components).items():
        parameters.append({"name": name, "in": "query", "required": False, "schema": schema})
    problem = {"content": {PROBLEM_MEDIA_TYPE: {"schema": schema_of[id(ProblemDetails)]}}}
    codes = [HTTPStatus.BAD_REQUEST, HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE]
    if operation.role > Role.ANONYMOUS:
        codes += [HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN]
    # what a body names may not exist, or be switched off
    if operation.role > Role.SEARCH or _PATH_PARAM.search(operation.path) or operation.body_type is not None:
        codes += [HTTPStatus.NOT_FOUND]
    if operation.modifies:
        codes += [HTTPStatus.CONFLICT]
    if operation.body_type is not None:
        codes += [HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.UNSUPPORTED_MEDIA_TYPE]
    described: dict[str, Any] = {
        "summary": operation.summary,
        "operationId": _operation_id(operation),
        "tags": [_tag(operation)],
        "x-role": operation.role.name.lower(),
        "parameters": parameters,
        "responses": {str(int(code)): {"description": code.phrase, **problem} for code in sorted(codes)},
    }
    for code in (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE):
        described["responses"][str(int(code))]["headers"] = {"Retry-After": _RETRY_AFTER}
    if parameters:
        described["responses"][str(int(HTTPStatus.REQUEST_URI_TOO_LONG))] = {
            "description": HTTPStatus.REQUEST_URI_TOO_LONG.phrase,
            "content": {"text/plain": {"schema": _STRING_SCHEMA}},
        }
    status = str(int(operation.status if operation.response_type is not None else HTTPStatus.NO_CONTENT))
    described["responses"][status] = {"description": HTTPStatus(int(status)).phrase}
    if operation.response_type is not None:
        schema = _STRING_SCHEMA if operation.response_type is str else schema_of[id(operation.response_type)]
        described["responses"][status]["content"] = {operation.media_type: {"schema": schema}}
    if operation.role > Role.ANONYMOUS:
        # the search API requires a key only if search.keys.required is set
        described["security"] = [*([{}] if operation.role == Role.SEARCH else []), {"token": []}, {"password": []}]
    if operation.body_type is not None:
        content = {"application/json": {"schema": schema_of[id(operation.body_type)]}}
        if operation.accepts_form:
            content["application/x-www-form-urlencoded"] = {"schema": schema_of[id(operation.body_type)]}
        described["requestBody"] = {"required": True, "content": content}
    return described


def _query_properties(operation: Operation, schema_of: dict[int, Any], components: dict[str, Any]) -> dict[str, Any]:
    if operation.query_type is None:
        return {}
    name = schema_of[id(operation.query_type)]["$ref"].rpartition("/")[2]
    properties: dict[str, Any] = components[name]["properties"]
    return properties


def _operation_id(operation: Operation) -> str:
    words = re.findall(r"\w+", operation.path.removeprefix(_PREFIX))
    return "_".join([operation.method.lower(), *words])


def _tag(operation: Operation) -> str:
    """Return the tag by which generated clients group operations: ``jobs``, …, ``nutch2`` or ``server``."""
    if operation.path.startswith(_PREFIX):
        return operation.path.removeprefix(_PREFIX).split("/")[1]
    return "server" if operation.role == Role.ANONYMOUS or operation.path == "/metrics" else "nutch2"


def render_html(operations: Sequence[Operation]) -> str:
    """Return an HTML page that lists the operations."""
    rows = "".join(
        f"<tr><td>{one.method}</td><td><code>{escape(one.path)}</code></td><td>{one.role.name.lower()}</td>"
        f"<td>{escape(one.summary)}</td></tr>"
        for one in operations
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>nutch2py: REST API</title>'
        '<link rel="stylesheet" href="/style.css"></head><body><main class="single"><h1>REST API</h1>'
        '<p>Types are described in <a href="/api/openapi.json">openapi.json</a>.</p><table><thead><tr><th>Method</th>'
        f"<th>Path</th><th>Role</th><th>Summary</th></tr></thead><tbody>{rows}</tbody></table></main></body></html>\n"
    )
