"""The OpenAPI document and a page for people, made of the operations."""

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
_RETRY_AFTER = {"description": "seconds after which to ask again", "schema": {"type": "integer", "minimum": 1}}
_REF_TEMPLATE = "#/components/schemas/{name}"
_PATH_PARAM = re.compile(r"{(\w+)(?::\w+)?}")


def build_document(operations: Sequence[Operation]) -> dict[str, Any]:
    """Return the OpenAPI 3.1 document of operations."""
    types = [each for one in operations for each in (one.response_type, one.body_type) if each not in (None, str)]
    queries = [one.query_type for one in operations if one.query_type is not None]
    wanted = [*types, *queries, ProblemDetails, *PATH_PARAM_TYPES.values()]
    schemas, components = msgspec.json.schema_components(wanted, ref_template=_REF_TEMPLATE)
    of = {id(kind): schema for kind, schema in zip(wanted, schemas, strict=True)}
    paths: dict[str, dict[str, Any]] = {}
    for one in operations:
        path = _PATH_PARAM.sub(r"{\1}", one.path)
        paths.setdefault(path, {})[one.method.lower()] = _operation_object(one, of, components)
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


def _operation_object(one: Operation, of: dict[int, Any], components: dict[str, Any]) -> dict[str, Any]:
    """Return what is said of an operation."""
    parameters: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": of[id(PATH_PARAM_TYPES[name])]}
        for name in _PATH_PARAM.findall(one.path)
    ]
    for name, schema in _query_properties(one, of, components).items():
        parameters.append({"name": name, "in": "query", "required": False, "schema": schema})
    problem = {"content": {PROBLEM_MEDIA_TYPE: {"schema": of[id(ProblemDetails)]}}}
    codes = [HTTPStatus.BAD_REQUEST, HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE]
    if one.role > Role.ANONYMOUS:
        codes += [HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN]
    if one.role > Role.SEARCH or _PATH_PARAM.search(one.path):
        codes += [HTTPStatus.NOT_FOUND]
    if one.modifies:
        codes += [HTTPStatus.CONFLICT]
    if one.body_type is not None:
        codes += [HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.UNSUPPORTED_MEDIA_TYPE]
    said: dict[str, Any] = {
        "summary": one.summary,
        "operationId": _operation_id(one),
        "tags": [_tag(one)],
        "x-role": one.role.name.lower(),
        "parameters": parameters,
        "responses": {str(int(code)): {"description": code.phrase, **problem} for code in sorted(codes)},
    }
    for code in (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE):
        said["responses"][str(int(code))]["headers"] = {"Retry-After": _RETRY_AFTER}
    if parameters:
        told = {
            "description": HTTPStatus.REQUEST_URI_TOO_LONG.phrase,
            "content": {"text/plain": {"schema": _STRING_SCHEMA}},
        }
        said["responses"][str(int(HTTPStatus.REQUEST_URI_TOO_LONG))] = told
    status = str(int(one.status if one.response_type is not None else HTTPStatus.NO_CONTENT))
    said["responses"][status] = {"description": "done"}
    if one.response_type is not None:
        schema = _STRING_SCHEMA if one.response_type is str else of[id(one.response_type)]
        said["responses"][status]["content"] = {one.media_type: {"schema": schema}}
    if one.role > Role.ANONYMOUS:
        # the search asks for a key where search.keys.required says so
        said["security"] = [*([{}] if one.role == Role.SEARCH else []), {"token": []}, {"password": []}]
    if one.body_type is not None:
        content = {"application/json": {"schema": of[id(one.body_type)]}}
        if one.accepts_form:
            content["application/x-www-form-urlencoded"] = {"schema": of[id(one.body_type)]}
        said["requestBody"] = {"required": True, "content": content}
    return said


def _query_properties(one: Operation, of: dict[int, Any], components: dict[str, Any]) -> dict[str, Any]:
    if one.query_type is None:
        return {}
    name = of[id(one.query_type)]["$ref"].rpartition("/")[2]
    found: dict[str, Any] = components[name]["properties"]
    return found


def _operation_id(one: Operation) -> str:
    words = re.findall(r"\w+", one.path.removeprefix(_PREFIX))
    return "_".join([one.method.lower(), *words])


def _tag(one: Operation) -> str:
    """Return what an operation is about, by which generated clients group them: ``jobs`` …, ``nutch2``, ``server``."""
    if one.path.startswith(_PREFIX):
        return one.path.removeprefix(_PREFIX).split("/")[1]
    return "server" if one.role == Role.ANONYMOUS or one.path == "/metrics" else "nutch2"


def render_html(operations: Sequence[Operation]) -> str:
    """Return a page that lists the operations, without scripts."""
    rows = "".join(
        f"<tr><td>{one.method}</td><td><code>{escape(one.path)}</code></td><td>{one.role.name.lower()}</td>"
        f"<td>{escape(one.summary)}</td></tr>"
        for one in operations
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>nutch2py: REST</title>'
        '<link rel="stylesheet" href="/style.css"></head><body><main class="single"><h1>REST</h1>'
        '<p>The types are in <a href="/api/openapi.json">openapi.json</a>.</p><table><thead><tr><th>method</th>'
        f"<th>path</th><th>role</th><th></th></tr></thead><tbody>{rows}</tbody></table></main></body></html>\n"
    )
