"""The OpenAPI document and a page for people, made of the operations."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from http import HTTPStatus
from typing import Any

import msgspec

from nutch2py.rest.operation import PARTS, PROBLEM, Operation, Problem
from nutch2py.rest.tokens import Role
from nutch2py.version import __version__

_V1 = "/api/v1"
_TEXT = {"type": "string"}
_RETRY_AFTER = {"description": "seconds after which to ask again", "schema": {"type": "integer", "minimum": 1}}
_TEMPLATE = "#/components/schemas/{name}"
_PART = re.compile(r"{(\w+)(?::\w+)?}")


def document(operations: Sequence[Operation]) -> dict[str, Any]:
    """Return the OpenAPI 3.1 document of operations."""
    types = [each for one in operations for each in (one.answer, one.body) if each not in (None, str)]
    queries = [one.query for one in operations if one.query is not None]
    wanted = [*types, *queries, Problem, *PARTS.values()]
    schemas, components = msgspec.json.schema_components(wanted, ref_template=_TEMPLATE)
    of = {id(kind): schema for kind, schema in zip(wanted, schemas, strict=True)}
    paths: dict[str, dict[str, Any]] = {}
    for one in operations:
        path = _PART.sub(r"{\1}", one.path)
        paths.setdefault(path, {})[one.method.lower()] = _described(one, of, components)
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


def _described(one: Operation, of: dict[int, Any], components: dict[str, Any]) -> dict[str, Any]:
    """Return what is said of an operation."""
    parameters: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": of[id(PARTS[name])]}
        for name in _PART.findall(one.path)
    ]
    for name, schema in _query(one, of, components).items():
        parameters.append({"name": name, "in": "query", "required": False, "schema": schema})
    problem = {"content": {PROBLEM: {"schema": of[id(Problem)]}}}
    codes = [HTTPStatus.BAD_REQUEST, HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE]
    if one.role > Role.NOBODY:
        codes += [HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN]
    if one.role > Role.SEARCH or _PART.search(one.path):
        codes += [HTTPStatus.NOT_FOUND]
    if one.changes:
        codes += [HTTPStatus.CONFLICT]
    if one.body is not None:
        codes += [HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.UNSUPPORTED_MEDIA_TYPE]
    said: dict[str, Any] = {
        "summary": one.summary,
        "operationId": _identifier(one),
        "tags": [_tag(one)],
        "x-role": one.role.name.lower(),
        "parameters": parameters,
        "responses": {str(int(code)): {"description": code.phrase, **problem} for code in sorted(codes)},
    }
    for code in (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE):
        said["responses"][str(int(code))]["headers"] = {"Retry-After": _RETRY_AFTER}
    if parameters:
        told = {"description": HTTPStatus.REQUEST_URI_TOO_LONG.phrase, "content": {"text/plain": {"schema": _TEXT}}}
        said["responses"][str(int(HTTPStatus.REQUEST_URI_TOO_LONG))] = told
    status = str(int(one.status if one.answer is not None else HTTPStatus.NO_CONTENT))
    said["responses"][status] = {"description": "done"}
    if one.answer is not None:
        schema = _TEXT if one.answer is str else of[id(one.answer)]
        said["responses"][status]["content"] = {one.media: {"schema": schema}}
    if one.role > Role.NOBODY:
        # the search asks for a key where search.keys.required says so
        said["security"] = [*([{}] if one.role == Role.SEARCH else []), {"token": []}, {"password": []}]
    if one.body is not None:
        content = {"application/json": {"schema": of[id(one.body)]}}
        if one.form:
            content["application/x-www-form-urlencoded"] = {"schema": of[id(one.body)]}
        said["requestBody"] = {"required": True, "content": content}
    return said


def _query(one: Operation, of: dict[int, Any], components: dict[str, Any]) -> dict[str, Any]:
    if one.query is None:
        return {}
    name = of[id(one.query)]["$ref"].rpartition("/")[2]
    found: dict[str, Any] = components[name]["properties"]
    return found


def _identifier(one: Operation) -> str:
    words = re.findall(r"\w+", one.path.removeprefix(_V1))
    return "_".join([one.method.lower(), *words])


def _tag(one: Operation) -> str:
    """Return what an operation is about, by which generated clients group them: ``jobs`` …, ``nutch2``, ``server``."""
    if one.path.startswith(_V1):
        return one.path.removeprefix(_V1).split("/")[1]
    return "server" if one.role == Role.NOBODY or one.path == "/metrics" else "nutch2"


def page(operations: Sequence[Operation]) -> str:
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
