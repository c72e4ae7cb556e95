"""No decision is made by the words of an exception: types, numbers and the servers' own names for errors decide.

What a library tells in words only is translated once, in a function named here; all else that looks for words in the
text of an exception is found by its syntax tree.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import nutch2py

PACKAGE = Path(nutch2py.__file__).parent
TRANSLATED = {
    "fetcher/protocols/curl_errors.py:get_retry_hint": "libcurl has one code for several malformed headers",
    "table/hbase/thrift_client/hbase_errors.py:error_conditions": "HBase throws DoNotRetryIOException for many things",
    "backends/servers/elastic_client.py:ElasticClient._to_failure": "shortens OpenSSL's message, decides nothing",
}
"""Places that examine the text of an error, with the reason why nothing else identifies it."""

_TEXTS = frozenset({"str", "repr", "format", "message_of", "first_line"})
_PARTS = frozenset({"args", "strerror", "message", "reason", "text", "msg"})
_QUESTIONS = frozenset({"startswith", "endswith", "find", "rfind", "index", "count", "__contains__"})
_PATTERNS = frozenset({"search", "match", "fullmatch", "findall", "finditer"})
Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


class Words(ast.NodeVisitor):
    """Finds questions to the texts of exceptions; ``found``: function and line of each."""

    def __init__(self) -> None:
        self.found: list[tuple[str, int]] = []
        self._where: list[str] = []
        self._errors: set[str] = set()
        self._texts: set[str] = set()

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._where.append(node.name)
        self.generic_visit(node)
        self._where.pop()

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        errors, texts = set(self._errors), set(self._texts)
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        for argument in arguments:
            self._errors.discard(argument.arg)
            self._texts.discard(argument.arg)
            if argument.annotation is not None and _is_error(ast.unparse(argument.annotation)):
                self._errors.add(argument.arg)
        if {"code", "message"} <= {argument.arg for argument in arguments}:  # libcurl's end of a transfer
            self._texts.add("message")
        self._where.append(node.name)
        self.generic_visit(node)
        self._where.pop()
        self._errors, self._texts = errors, texts

    visit_FunctionDef = visit_AsyncFunctionDef = _function  # noqa: N815

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        if node.name:
            self._errors.add(node.name)
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        self.generic_visit(node)
        for name in (name for target in node.targets for name in ast.walk(target) if isinstance(name, ast.Name)):
            self._texts.discard(name.id)
            if self._is_text(node.value):
                self._texts.add(name.id)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self.generic_visit(node)
        if self._is_text(node.value):
            self._texts.add(node.target.id)

    def _comprehension(self, node: ast.GeneratorExp | ast.ListComp | ast.SetComp) -> None:
        for generator in node.generators:
            if isinstance(generator.target, ast.Name) and self._is_text(generator.iter):
                self._texts.add(generator.target.id)
        self.generic_visit(node)

    visit_GeneratorExp = visit_ListComp = visit_SetComp = _comprehension  # noqa: N815

    def visit_Compare(self, node: ast.Compare) -> None:
        if any(self._is_text(side) for side in (node.left, *node.comparators)):
            self._note(node)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Attribute):
            asked = node.func.attr in _QUESTIONS and self._is_text(node.func.value)
            matched = node.func.attr in _PATTERNS and any(map(self._is_text, node.args))
            if asked or matched:
                self._note(node)
        self.generic_visit(node)

    def visit_Match(self, node: ast.Match) -> None:
        if self._is_text(node.subject):
            self._note(node)
        self.generic_visit(node)

    def _note(self, node: ast.expr | ast.stmt) -> None:
        self.found.append((".".join(self._where), node.lineno))

    def _is_text(self, node: ast.AST) -> bool:
        """Return whether an expression is the text of an exception, or is made of one."""
        match node:
            case ast.Name(id=name):
                return name in self._texts
            case ast.Call(func=ast.Name(id=name), args=arguments) if name in _TEXTS:
                return any(self._is_error(argument) or self._is_text(argument) for argument in arguments)
            case ast.Call(func=ast.Attribute(value=value, attr=name), args=arguments):
                return self._is_text(value) or (
                    name in {"join", "sub", "format"} and any(map(self._is_text, arguments))
                )
            case ast.Attribute(value=value, attr=name):
                failure = ast.unparse(value).endswith("failure") and name == "text"
                return failure or (name in _PARTS and self._is_error(value)) or self._is_text(value)
            case ast.Subscript(value=value):
                return self._is_text(value)
            case ast.JoinedStr(values=values):
                return any(map(self._is_text, values))
            case ast.FormattedValue(value=value):
                return self._is_error(value) or self._is_text(value)
            case ast.NamedExpr(value=value):
                return self._is_text(value)
            case ast.BoolOp(values=values):
                return any(map(self._is_text, values))
            case ast.BinOp(left=left, right=right):
                return self._is_text(left) or self._is_text(right)
            case ast.IfExp(body=body, orelse=orelse):
                return self._is_text(body) or self._is_text(orelse)
        return False

    def _is_error(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Attribute) and node.attr in {"__cause__", "__context__"}:
            return self._is_error(node.value)
        return isinstance(node, ast.Name) and node.id in self._errors


def _is_error(annotation: str) -> bool:
    return annotation.partition("[")[0].endswith(("Exception", "Error", "Refusal", "Failure"))


def questions(source: str) -> Iterator[tuple[str, int]]:
    finder = Words()
    finder.visit(ast.parse(source))
    yield from finder.found


def test_no_code_decides_by_exception_text() -> None:
    found: dict[str, list[int]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        for where, line in questions(path.read_text(encoding="utf-8")):
            found.setdefault(f"{path.relative_to(PACKAGE).as_posix()}:{where}", []).append(line)
    assert found.keys() - TRANSLATED.keys() == set(), found
    assert TRANSLATED.keys() - found.keys() == set(), "no longer examines text: take it off the list"


@pytest.mark.parametrize(
    "question",
    [
        '"excluded" in str(error)',
        '"x" not in f"{error}"',
        'str(error).startswith("x")',
        'str(error).lower().strip() == "x"',
        'error.args[0] == "x"',
        '"x" in error.args[0]',
        '"x" in error.strerror',
        'error.args[0].startswith("x")',
        '"x" in repr(error.__cause__)',
        're.search("x", str(error))',
        'PATTERN.match(" ".join(str(error).split()))',
        "any(word in str(error) for word in WORDS)",
        'any(word.startswith("x") for word in str(error).split())',
        '"x" in (text := str(error))',
        'message_of(error).count("x")',
    ],
)  # fmt: skip
def test_scanner_finds_decisions_by_exception_text(question: str) -> None:
    handler = f"def f():\n    try:\n        g()\n    except OSError as error:\n        return {question}\n"
    assert [*questions(handler)] == [("f", 5)]
    parameter = f"class A:\n    def f(self, error: BaseException):\n        return {question}\n"
    assert [*questions(parameter)] == [("A.f", 3)]
    asked = question.replace("str(error)", "asked")
    named = f"def f(error: OSError):\n    asked = str(error)\n    if {asked}:\n        pass\n"
    assert [*questions(named)] == [("f", 3)]


@pytest.mark.parametrize(
    "harmless",
    [
        "isinstance(error, TimeoutError)",
        "error.errno == 5",
        "error.status in (401, 403)",
        '"x" in refusal.kinds',
        'print(f"cannot: {error}")',
        "log(str(error)[:300])",
        '"x" in other',
    ],
)
def test_scanner_accepts_decisions_by_type_and_number(harmless: str) -> None:
    assert [*questions(f"def f(error: OSError, other: str):\n    return {harmless}\n")] == []


def test_scanner_treats_failure_text_and_curl_message_as_exception_text() -> None:
    assert [*questions("def f(answer):\n    return 'x' in answer.failure.text\n")] == [("f", 2)]
    assert [*questions("def f(code: int, message: str):\n    return 'ssl' in message.lower()\n")] == [("f", 2)]
