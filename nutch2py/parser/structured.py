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
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from nutch2py.parser.dom import node_text, value_of
from nutch2py.parser.references import reference
from nutch2py.url.parts import resolve

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode

Item = dict[str, Any]


class Limits(NamedTuple):
    """How much of each is read.

    ``elements`` that are looked at, ``items`` in all, ``values`` of a property, ``characters`` of a value, those of a
    JSON-LD ``script``, ``depth`` of items in each other. ``kept``: characters of all names and values of a kind;
    ``read``: those of the elements that have them, of which one may lie in thousands of others.
    """

    elements: int = 20_000
    items: int = 500
    values: int = 100
    characters: int = 10_000
    script: int = 262_144
    depth: int = 16
    kept: int = 1_000_000
    read: int = 4_000_000


LIMITS = Limits()
_VALUE = 4  # characters around a value
_ELEMENT = 100  # characters that an element counts for that is read, with those in it
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
# what an input asks for, as schema.org names it for actions (PropertyValueSpecification)
_INPUT = {
    "max": "maxValue", "min": "minValue", "step": "stepValue", "maxlength": "valueMaxLength",
    "minlength": "valueMinLength", "multiple": "multipleValues", "name": "valueName", "pattern": "valuePattern",
    "readonly": "readonlyValue", "required": "valueRequired", "value": "defaultValue",
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
    room = LIMITS.kept
    for node in tree.css("meta[content]")[: LIMITS.elements]:
        attributes = node.attributes
        content = value_of(attributes, "content").strip()
        for name in ((attributes.get("property") or "") + " " + (attributes.get("name") or "")).split():
            if content and _OPEN_GRAPH.fullmatch(name) and len(found) < LIMITS.items and room > 0:
                values = found.setdefault(name.lower(), [])
                if len(values) < LIMITS.values and content not in values:
                    values.append(content[: LIMITS.characters])
                    room -= len(name) + len(values[-1])
    return found


def _links(tree: LexborHTMLParser, base: str) -> dict[str, Any]:
    """Return related pages: ``canonical``, ``next``, ``prev``, and ``hreflang``, language to URL."""
    found: dict[str, Any] = {}
    for node in tree.css("link[rel][href]")[: LIMITS.elements]:
        attributes = node.attributes
        relations = value_of(attributes, "rel").lower().split()
        url = _resolved(base, value_of(attributes, "href"))
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
        return resolve(base, reference((href or "").strip()))[: LIMITS.characters]
    except ValueError:
        return ""


class _Reader:
    """What microdata and RDFa have in common: elements with properties, in elements that are items.

    Which attributes say so is data of the class; the walk over an item is here, once.
    """

    item_attribute: ClassVar[str]
    property_attribute: ClassVar[str]
    type_attribute: ClassVar[str]
    id_attributes: ClassVar[tuple[str, ...]]

    def __init__(self, tree: LexborHTMLParser, base: str) -> None:
        self._tree, self._base = tree, base
        self._left, self._items = LIMITS.elements, LIMITS.items
        self._room, self._unread = LIMITS.kept, LIMITS.read

    def items(self) -> list[Item]:
        """Return the items that are no other's property."""
        nodes = self._tree.css(f"[{self.item_attribute}]:not([{self.property_attribute}])")
        return [self._item(node, 0) for node in nodes if self._items > 0]

    def _item(self, node: LexborNode, depth: int) -> Item:
        """Return an item. An item within it is a property when it has the name of one, and is not looked into."""
        self._items -= 1
        item: Item = {}
        attributes = node.attributes
        if types := (attributes.get(self.type_attribute) or "").split():
            item["type"] = [self._kept(each) for each in self._types(node, types[: LIMITS.values]) if self._room > 0]
        if identity := next(filter(None, map(attributes.get, self.id_attributes)), None):
            item["id"] = self._kept(_resolved(self._base, identity))
        properties: dict[str, list[Any]] = {}
        waiting = [*self._references(node), *list(node.iter())[::-1]]
        while waiting and self._left > 0:
            self._left -= 1
            element = waiting.pop()
            own = element.attributes
            is_item = self.item_attribute in own
            if (names := own.get(self.property_attribute)) and self._room > 0:
                if not is_item:
                    value = self._value(element)
                    self._add(properties, names, value, _length(value))
                elif depth < LIMITS.depth and self._items > 0:
                    before = self._room
                    inner = self._item(element, depth + 1)
                    length, self._room = before - self._room, before
                    self._add(properties, names, inner, length)
            if not is_item:
                waiting += list(element.iter())[::-1]
        if not properties:
            item["value"] = self._kept(self._value(node))
        item["properties"] = properties
        return item

    def _types(self, node: LexborNode, names: list[str]) -> list[str]:
        """Return the types of an item by their names in its attribute."""
        return names

    def _references(self, node: LexborNode) -> list[LexborNode]:
        """Return elements outside an item that belong to it, the last first."""
        return []

    def _value(self, node: LexborNode) -> Any:
        attributes, tag = node.attributes, node.tag or ""
        if attributes.get("content") is not None:
            return (attributes["content"] or "").strip()[: LIMITS.characters]
        if tag in _URL_ATTRIBUTES:
            return _resolved(self._base, value_of(attributes, _URL_ATTRIBUTES[tag]))
        if tag in ("data", "meter") and attributes.get("value") is not None:
            return (attributes["value"] or "")[: LIMITS.characters]
        if tag == "time" and attributes.get("datetime"):
            return (attributes["datetime"] or "")[: LIMITS.characters]
        if tag == "input":
            asked = {_INPUT[name]: value for name, value in attributes.items() if name in _INPUT}
            return {name: value[: LIMITS.characters] if value else True for name, value in asked.items()} or ""
        return self._text(node)

    def _text(self, node: LexborNode) -> str:
        """Return the text of an element, "" once too much was read."""
        if self._unread <= 0:
            return ""
        text = node_text(node)
        self._unread -= len(text) + _ELEMENT
        return " ".join(text.split())[: LIMITS.characters]

    def _kept(self, value: Any) -> Any:
        """Count what is kept; return it."""
        self._room -= _length(value)
        return value

    def _add(self, properties: dict[str, list[Any]], names: str, value: Any, length: int) -> None:
        """Add a value under each of its names; what it has within it is there as often."""
        for name in names.split()[: LIMITS.values]:
            values = properties.setdefault(self._kept(name[: LIMITS.characters]), [])
            if len(values) < LIMITS.values and self._room > length:
                self._room -= length
                values.append(value)


def _length(value: Any) -> int:
    """Return about how many characters a value takes."""
    texts = value.values() if isinstance(value, dict) else (value,)
    return _VALUE + sum(len(text) for text in texts if isinstance(text, str))


class _Microdata(_Reader):
    item_attribute, property_attribute = "itemscope", "itemprop"
    type_attribute, id_attributes = "itemtype", ("itemid",)

    @cached_property
    def _ids(self) -> dict[str, LexborNode]:
        """The first element of each id."""
        return {value_of(node.attributes, "id"): node for node in self._tree.css("[id]")[LIMITS.elements :: -1]}

    def _references(self, node: LexborNode) -> list[LexborNode]:
        names = (node.attributes.get("itemref") or "").split()[: LIMITS.values]
        return [self._ids[name] for name in names[::-1] if name in self._ids]


class _Rdfa(_Reader):
    item_attribute, property_attribute = "typeof", "property"
    type_attribute, id_attributes = "typeof", ("resource", "about")

    def _types(self, node: LexborNode, names: list[str]) -> list[str]:
        vocabulary = self._vocabulary(node)
        return [each if ":" in each else vocabulary + each for each in names]

    def _value(self, node: LexborNode) -> Any:
        attributes = node.attributes
        if attributes.get("content") is None and attributes.get("resource"):
            return _resolved(self._base, attributes["resource"])
        return super()._value(node)

    def _vocabulary(self, node: LexborNode) -> str:
        current: LexborNode | None = node
        while current is not None:
            if named := current.attributes.get("vocab"):
                return named.strip()[: LIMITS.characters]
            current = current.parent
        return ""
