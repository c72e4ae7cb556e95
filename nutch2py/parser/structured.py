"""What a page says of itself for machines: Open Graph, Twitter cards, JSON-LD, microdata, RDFa Lite, related pages.

Each is read within :data:`LIMITS`: what a page has beyond them is left out. Items of microdata and RDFa have the form
of the HTML standard's JSON (section 5.4): ``{"type": […], "id": …, "properties": {name: [value or item, …]}}``,
and ``value``, its text, when it has no properties.
"""

from __future__ import annotations

import html as entities
import json
import re
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from nutch2py.parser.dom import node_text
from nutch2py.url.parts import resolve

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode

Item = dict[str, Any]


class Limits(NamedTuple):
    """How much of each is read.

    ``elements`` that are looked at, ``items`` in all, ``values`` of a property, ``characters`` of a value, those of a
    JSON-LD ``script``, ``depth`` of items in each other.
    """

    elements: int = 20_000
    items: int = 500
    values: int = 100
    characters: int = 10_000
    script: int = 262_144
    depth: int = 16


LIMITS = Limits()
_JSON_LD = re.compile(
    r"<script(?=[\s/])[^>]{0,200}?application/ld\+json[^>]{0,200}>([^<]*+(?:<(?!/script)[^<]*+)*+)", re.IGNORECASE
)
_AROUND = (("<!--", "-->"), ("//<![CDATA[", "//]]>"), ("/*<![CDATA[*/", "/*]]>*/"), ("<![CDATA[", "]]>"))
_STRING = r"\"(?:[^\"\\]++|\\.)*+(?:\"|\Z)"
_COMMENT = re.compile(
    rf"{_STRING}|/\*[^*]*+(?:\*(?!/)[^*]*+)*+(?:\*/|\Z)|<!--[^-]*+(?:-(?!->)[^-]*+)*+(?:-->|\Z)|(?<![:\w])//[^\n]*+",
    re.DOTALL,
)
_TRAILING = re.compile(rf"{_STRING}|,(?=\s{{0,100}}[}}\]])", re.DOTALL)
_URL_ATTRIBUTES = {
    "a": "href", "area": "href", "link": "href", "audio": "src", "embed": "src", "iframe": "src", "img": "src",
    "source": "src", "track": "src", "video": "src", "object": "data",
}  # fmt: skip
_OPEN_GRAPH = re.compile(r"[a-z]{1,20}:[\w:.-]{1,100}", re.IGNORECASE)


def structured_data(tree: LexborHTMLParser, html: str, base: str) -> dict[str, Any]:
    """Return what is there, by kind: ``meta`` (name to values), ``jsonld``, ``microdata``, ``rdfa``, ``links``.

    ``html``: the source of the tree; ``base``: what URLs are resolved against. Kinds that a page has nothing of are
    left out.
    """
    found: dict[str, Any] = {"meta": _meta(tree), "links": _links(tree, base)}
    if "ld+json" in html:
        found["jsonld"] = list(json_ld(html))[: LIMITS.items]
    if "itemscope" in html:
        found["microdata"] = _Microdata(tree, base).items()
    if "typeof" in html:
        found["rdfa"] = _Rdfa(tree, base).items()
    return {kind: values for kind, values in found.items() if values}


def json_ld(html: str) -> Iterator[Any]:
    """Yield the objects of JSON-LD scripts, those of an array one by one; comments and stray commas are passed over."""
    for script in _JSON_LD.finditer(html):
        if len(script[1]) > LIMITS.script:
            continue
        text = script[1].strip()
        for opening, closing in _AROUND:
            text = text.removeprefix(opening).removesuffix(closing).strip()
        for attempt in (text, entities.unescape(text), _bare(script[1])):
            try:
                value = json.loads(attempt, strict=False)
            except (ValueError, RecursionError):
                continue
            yield from [each for each in (value if isinstance(value, list) else [value]) if isinstance(each, dict)]
            break


def _bare(text: str) -> str:
    """Return JSON without comments and without commas before a closing bracket; strings stay as they are."""
    for pattern in (_COMMENT, _TRAILING):
        text = pattern.sub(lambda found: found[0] if found[0].startswith('"') else "", text)
    return text


def _meta(tree: LexborHTMLParser) -> dict[str, list[str]]:
    """Return the properties of Open Graph and of what extends it, and those of Twitter cards, by their names."""
    found: dict[str, list[str]] = {}
    for node in tree.css("meta[content]")[: LIMITS.elements]:
        attributes = node.attributes
        content = (attributes["content"] or "").strip()
        for name in ((attributes.get("property") or "") + " " + (attributes.get("name") or "")).split():
            if content and _OPEN_GRAPH.fullmatch(name) and len(found) < LIMITS.items:
                values = found.setdefault(name.lower(), [])
                if len(values) < LIMITS.values and content not in values:
                    values.append(content[: LIMITS.characters])
    return found


def _links(tree: LexborHTMLParser, base: str) -> dict[str, Any]:
    """Return related pages: ``canonical``, ``next``, ``prev``, and ``hreflang``, language to URL."""
    found: dict[str, Any] = {}
    for node in tree.css("link[rel][href]")[: LIMITS.elements]:
        attributes = node.attributes
        relations = (attributes["rel"] or "").lower().split()
        url = _resolved(base, attributes["href"])
        if not url:
            continue
        language = (attributes.get("hreflang") or "").strip().lower()
        if "alternate" in relations and language and len(languages := found.get("hreflang", {})) < LIMITS.values:
            found["hreflang"] = {**languages, language: url} if language not in languages else languages
        for relation in relations:
            name = "prev" if relation == "previous" else relation
            if name in ("canonical", "next", "prev"):
                found.setdefault(name, url)
    return found


def _resolved(base: str, href: str | None) -> str:
    try:
        return resolve(base, (href or "").strip())[: LIMITS.characters]
    except ValueError:
        return ""


class _Reader:
    """What microdata and RDFa have in common: elements with properties, in elements that are items."""

    scope: str

    def __init__(self, tree: LexborHTMLParser, base: str) -> None:
        self._tree, self._base = tree, base
        self._left, self._items = LIMITS.elements, LIMITS.items

    def items(self) -> list[Item]:
        """Return the items that are no other's property."""
        return [self._item(node, 0) for node in self._tree.css(self.scope) if self._is_top(node) and self._items > 0]

    def _is_top(self, node: LexborNode) -> bool:
        raise NotImplementedError

    def _item(self, node: LexborNode, depth: int) -> Item:
        raise NotImplementedError

    def _value(self, node: LexborNode) -> str:
        attributes, tag = node.attributes, node.tag or ""
        if attributes.get("content") is not None:
            return (attributes["content"] or "").strip()[: LIMITS.characters]
        if tag in _URL_ATTRIBUTES:
            return _resolved(self._base, attributes.get(_URL_ATTRIBUTES[tag]))
        if tag in ("data", "meter") and attributes.get("value") is not None:
            return (attributes["value"] or "")[: LIMITS.characters]
        if tag == "time" and attributes.get("datetime"):
            return (attributes["datetime"] or "")[: LIMITS.characters]
        return " ".join(node_text(node).split())[: LIMITS.characters]

    @staticmethod
    def _add(properties: dict[str, list[Any]], names: str, value: Any) -> None:
        for name in names.split():
            values = properties.setdefault(name[: LIMITS.characters], [])
            if len(values) < LIMITS.values:
                values.append(value)

    def _children(self, node: LexborNode) -> list[LexborNode]:
        return list(node.iter())


class _Microdata(_Reader):
    scope = "[itemscope]"

    @cached_property
    def _ids(self) -> dict[str | None, LexborNode]:
        """The first element of each id."""
        return {node.attributes["id"]: node for node in self._tree.css("[id]")[LIMITS.elements :: -1]}

    def _is_top(self, node: LexborNode) -> bool:
        return "itemprop" not in node.attributes

    def _item(self, node: LexborNode, depth: int) -> Item:
        attributes = node.attributes
        self._items -= 1
        item: Item = {}
        if types := (attributes.get("itemtype") or "").split():
            item["type"] = types[: LIMITS.values]
        if attributes.get("itemid"):
            item["id"] = _resolved(self._base, attributes["itemid"])
        properties: dict[str, list[Any]] = {}
        waiting = self._children(node)[::-1]
        references = (attributes.get("itemref") or "").split()[: LIMITS.values]
        waiting[:0] = [self._ids[name] for name in references[::-1] if name in self._ids]
        while waiting and self._left > 0:
            self._left -= 1
            element = waiting.pop()
            own = element.attributes
            is_item = "itemscope" in own
            if own.get("itemprop"):
                if not is_item:
                    self._add(properties, own["itemprop"] or "", self._value(element))
                elif depth < LIMITS.depth and self._items > 0:
                    self._add(properties, own["itemprop"] or "", self._item(element, depth + 1))
            if not is_item:
                waiting += self._children(element)[::-1]
        if not properties:
            item["value"] = self._value(node)
        item["properties"] = properties
        return item


class _Rdfa(_Reader):
    scope = "[typeof]"

    def _is_top(self, node: LexborNode) -> bool:
        return "property" not in node.attributes

    def _item(self, node: LexborNode, depth: int) -> Item:
        attributes = node.attributes
        self._items -= 1
        vocabulary = self._vocabulary(node)
        item: Item = {}
        if types := (attributes.get("typeof") or "").split():
            item["type"] = [each if ":" in each else vocabulary + each for each in types[: LIMITS.values]]
        if identity := attributes.get("resource") or attributes.get("about"):
            item["id"] = _resolved(self._base, identity)
        properties: dict[str, list[Any]] = {}
        waiting = self._children(node)[::-1]
        while waiting and self._left > 0:
            self._left -= 1
            element = waiting.pop()
            own = element.attributes
            is_item = "typeof" in own
            if own.get("property"):
                if not is_item:
                    value = self._value(element)
                    if own.get("content") is None and own.get("resource"):
                        value = _resolved(self._base, own["resource"])
                    self._add(properties, own["property"] or "", value)
                elif depth < LIMITS.depth and self._items > 0:
                    self._add(properties, own["property"] or "", self._item(element, depth + 1))
            if not is_item:
                waiting += self._children(element)[::-1]
        if not properties:
            item["value"] = self._value(node)
        item["properties"] = properties
        return item

    def _vocabulary(self, node: LexborNode) -> str:
        current: LexborNode | None = node
        while current is not None:
            if named := current.attributes.get("vocab"):
                return named.strip()[: LIMITS.characters]
            current = current.parent
        return ""
