"""Extract structured data: Open Graph, Twitter cards, JSON-LD, microdata, RDFa Lite, related pages.

:data:`STRUCTURED_DATA_LIMITS` bounds each kind; data beyond a limit is dropped. Items of microdata and RDFa have the
form of the HTML standard's JSON (section 5.4): ``{"type": […], "id": …, "properties": {name: [value or item, …]}}``,
and ``value``, the text, when an item has no properties.
"""

from __future__ import annotations

import html as entities
import json
import re
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from nutch2py.parser.html.dom import attribute_value, node_text
from nutch2py.parser.links.url_reference import clean_reference
from nutch2py.url.url_parts import resolve_url

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode

StructuredItem = dict[str, object]


class StructuredDataLimits(NamedTuple):
    """Limits of each kind of structured data.

    Attributes:
        elements: Elements visited.
        items: Items in all.
        values: Values of a property.
        value_chars: Characters of a value.
        script_chars: Characters of a JSON-LD script.
        depth: Nesting depth of items.
        kept_chars: Characters of all names and values of a kind.
        read_chars: Characters of elements read for values; elements may nest, so one text may count thousands of times.
    """

    elements: int = 20_000
    items: int = 500
    values: int = 100
    value_chars: int = 10_000
    script_chars: int = 262_144
    depth: int = 16
    kept_chars: int = 1_000_000
    read_chars: int = 4_000_000


STRUCTURED_DATA_LIMITS = StructuredDataLimits()
_VALUE_COST = 4  # characters of JSON syntax per value
_ELEMENT_COST = 100  # characters that each read element counts for besides its text
_JSON_LD_SCRIPT = re.compile(
    r"<script(?=[\s/])[^>]{0,200}?application/ld\+json[^>]{0,200}>([^<]*+(?:<(?!/script)[^<]*+)*+)", re.IGNORECASE
)
_SCRIPT_WRAPPERS = (("<!--", "-->"), ("//<![CDATA[", "//]]>"), ("/*<![CDATA[*/", "/*]]>*/"), ("<![CDATA[", "]]>"))
_JSON_STRING = r"\"(?:[^\"\\]++|\\.)*+(?:\"|\Z)"
_JSON_COMMENT = re.compile(
    rf"{_JSON_STRING}|/\*[^*]*+(?:\*(?!/)[^*]*+)*+(?:\*/|\Z)|<!--[^-]*+(?:-(?!->)[^-]*+)*+(?:-->|\Z)|(?<![:\w])//[^\n]*+",
    re.DOTALL,
)
_TRAILING_COMMA = re.compile(rf"{_JSON_STRING}|,(?=\s{{0,100}}[}}\]])", re.DOTALL)
_URL_ATTRIBUTES = {
    "a": "href", "area": "href", "link": "href", "audio": "src", "embed": "src", "iframe": "src", "img": "src",
    "source": "src", "track": "src", "video": "src", "object": "data",
}  # fmt: skip
# schema.org's names of an input's constraints (PropertyValueSpecification)
_INPUT_PROPERTIES = {
    "max": "maxValue", "min": "minValue", "step": "stepValue", "maxlength": "valueMaxLength",
    "minlength": "valueMinLength", "multiple": "multipleValues", "name": "valueName", "pattern": "valuePattern",
    "readonly": "readonlyValue", "required": "valueRequired", "value": "defaultValue",
}  # fmt: skip
_PROPERTY_NAME = re.compile(r"[a-z]{1,20}:[\w:.-]{1,100}", re.IGNORECASE)


def extract_structured_data(tree: LexborHTMLParser, html: str, base: str) -> dict[str, object]:
    """Return the data by kind: ``meta`` (name to values), ``jsonld``, ``microdata``, ``rdfa``, ``links``.

    ``html``: the source of the tree; ``base``: the URL to resolve against. Empty kinds are omitted.
    """
    found: dict[str, object] = {"meta": _read_meta(tree), "links": _read_links(tree, base)}
    if "ld+json" in html:
        found["jsonld"] = list(read_json_ld(html))[: STRUCTURED_DATA_LIMITS.items]
    if "itemscope" in html:
        found["microdata"] = _MicrodataReader(tree, base).read_items()
    if "typeof" in html:
        found["rdfa"] = _RdfaReader(tree, base).read_items()
    return {kind: values for kind, values in found.items() if values}


def read_json_ld(html: str) -> Iterator[object]:
    """Yield the objects of JSON-LD scripts, array elements one by one; tolerates comments and trailing commas."""
    for script in _JSON_LD_SCRIPT.finditer(html):
        if len(script[1]) > STRUCTURED_DATA_LIMITS.script_chars:
            continue
        text = script[1].strip()
        for opening, closing in _SCRIPT_WRAPPERS:
            text = text.removeprefix(opening).removesuffix(closing).strip()
        for attempt in (text, entities.unescape(text), _strip_json_comments(script[1])):
            try:
                value = json.loads(attempt, strict=False)
            except (ValueError, RecursionError):
                continue
            yield from [each for each in (value if isinstance(value, list) else [value]) if isinstance(each, dict)]
            break


def _strip_json_comments(text: str) -> str:
    """Return JSON without comments and trailing commas; strings stay unchanged."""
    for pattern in (_JSON_COMMENT, _TRAILING_COMMA):
        text = pattern.sub(lambda found: found[0] if found[0].startswith('"') else "", text)
    return text


def _read_meta(tree: LexborHTMLParser) -> dict[str, list[str]]:
    """Return the properties of Open Graph, its extensions and Twitter cards by name."""
    found: dict[str, list[str]] = {}
    room = STRUCTURED_DATA_LIMITS.kept_chars
    for node in tree.css("meta[content]")[: STRUCTURED_DATA_LIMITS.elements]:
        attributes = node.attributes
        content = attribute_value(attributes, "content").strip()
        for name in ((attributes.get("property") or "") + " " + (attributes.get("name") or "")).split():
            if content and _PROPERTY_NAME.fullmatch(name) and len(found) < STRUCTURED_DATA_LIMITS.items and room > 0:
                values = found.setdefault(name.lower(), [])
                if len(values) < STRUCTURED_DATA_LIMITS.values and content not in values:
                    values.append(content[: STRUCTURED_DATA_LIMITS.value_chars])
                    room -= len(name) + len(values[-1])
    return found


def _read_links(tree: LexborHTMLParser, base: str) -> dict[str, Any]:
    """Return related pages: ``canonical``, ``next``, ``prev``, and ``hreflang``, language to URL."""
    found: dict[str, Any] = {}
    for node in tree.css("link[rel][href]")[: STRUCTURED_DATA_LIMITS.elements]:
        attributes = node.attributes
        relations = attribute_value(attributes, "rel").lower().split()
        url = _resolve_href(base, attribute_value(attributes, "href"))
        if not url:
            continue
        language = (attributes.get("hreflang") or "").strip().lower()
        if (
            "alternate" in relations
            and language
            and len(languages := found.get("hreflang", {})) < STRUCTURED_DATA_LIMITS.values
        ):
            found["hreflang"] = {**languages, language: url} if language not in languages else languages
        for relation in relations:
            name = "prev" if relation == "previous" else relation
            if name in ("canonical", "next", "prev"):
                found.setdefault(name, url)
    return found


def _resolve_href(base: str, href: str | None) -> str:
    try:
        return resolve_url(base, clean_reference((href or "").strip()))[: STRUCTURED_DATA_LIMITS.value_chars]
    except ValueError:
        return ""


class _ItemReader:
    """Reader of items (elements with properties) shared by microdata and RDFa.

    Subclasses name the attributes; this class walks over an item.
    """

    item_attribute: ClassVar[str]
    property_attribute: ClassVar[str]
    type_attribute: ClassVar[str]
    id_attributes: ClassVar[tuple[str, ...]]

    def __init__(self, tree: LexborHTMLParser, base: str) -> None:
        self._tree, self._base = tree, base
        self._elements_left, self._items_left = STRUCTURED_DATA_LIMITS.elements, STRUCTURED_DATA_LIMITS.items
        self._kept_chars_left, self._read_chars_left = (
            STRUCTURED_DATA_LIMITS.kept_chars,
            STRUCTURED_DATA_LIMITS.read_chars,
        )

    def read_items(self) -> list[StructuredItem]:
        """Return the top-level items."""
        nodes = self._tree.css(f"[{self.item_attribute}]:not([{self.property_attribute}])")
        return [self._read_item(node, 0) for node in nodes if self._items_left > 0]

    def _read_item(self, node: LexborNode, depth: int) -> StructuredItem:
        """Return an item. A nested item with a property name becomes a value of this one; others are not visited."""
        self._items_left -= 1
        item: StructuredItem = {}
        attributes = node.attributes
        if types := (attributes.get(self.type_attribute) or "").split():
            item["type"] = [
                self._count_kept(each)
                for each in self._resolve_types(node, types[: STRUCTURED_DATA_LIMITS.values])
                if self._kept_chars_left > 0
            ]
        if identity := next(filter(None, map(attributes.get, self.id_attributes)), None):
            item["id"] = self._count_kept(_resolve_href(self._base, identity))
        properties: dict[str, list[object]] = {}
        waiting = [*self._referenced_elements(node), *list(node.iter())[::-1]]
        while waiting and self._elements_left > 0:
            self._elements_left -= 1
            element = waiting.pop()
            own = element.attributes
            is_item = self.item_attribute in own
            if (names := own.get(self.property_attribute)) and self._kept_chars_left > 0:
                if not is_item:
                    value = self._read_value(element)
                    self._add_value(properties, names, value, _text_length(value))
                elif depth < STRUCTURED_DATA_LIMITS.depth and self._items_left > 0:
                    before = self._kept_chars_left
                    inner = self._read_item(element, depth + 1)
                    length, self._kept_chars_left = before - self._kept_chars_left, before
                    self._add_value(properties, names, inner, length)
            if not is_item:
                waiting += list(element.iter())[::-1]
        if not properties:
            item["value"] = self._count_kept(self._read_value(node))
        item["properties"] = properties
        return item

    def _resolve_types(self, node: LexborNode, names: list[str]) -> list[str]:
        """Return the types of an item from the words of its type attribute."""
        return names

    def _referenced_elements(self, node: LexborNode) -> list[LexborNode]:
        """Return elements outside an item that belong to it, in reverse order."""
        return []

    def _read_value(self, node: LexborNode) -> object:
        attributes, tag = node.attributes, node.tag or ""
        if attributes.get("content") is not None:
            return (attributes["content"] or "").strip()[: STRUCTURED_DATA_LIMITS.value_chars]
        if tag in _URL_ATTRIBUTES:
            return _resolve_href(self._base, attribute_value(attributes, _URL_ATTRIBUTES[tag]))
        if tag in ("data", "meter") and attributes.get("value") is not None:
            return (attributes["value"] or "")[: STRUCTURED_DATA_LIMITS.value_chars]
        if tag == "time" and attributes.get("datetime"):
            return (attributes["datetime"] or "")[: STRUCTURED_DATA_LIMITS.value_chars]
        if tag == "input":
            asked = {_INPUT_PROPERTIES[name]: value for name, value in attributes.items() if name in _INPUT_PROPERTIES}
            return {
                name: value[: STRUCTURED_DATA_LIMITS.value_chars] if value else True for name, value in asked.items()
            } or ""
        return self._read_text(node)

    def _read_text(self, node: LexborNode) -> str:
        """Return the text of an element, "" when the limit of read characters is used up."""
        if self._read_chars_left <= 0:
            return ""
        text = node_text(node)
        self._read_chars_left -= len(text) + _ELEMENT_COST
        return " ".join(text.split())[: STRUCTURED_DATA_LIMITS.value_chars]

    def _count_kept(self, value: Any) -> Any:
        """Subtract a value from the limit of kept characters; return it."""
        self._kept_chars_left -= _text_length(value)
        return value

    def _add_value(self, properties: dict[str, list[object]], names: str, value: object, length: int) -> None:
        """Add a value under each of its names; its length counts once per name."""
        for name in names.split()[: STRUCTURED_DATA_LIMITS.values]:
            values = properties.setdefault(self._count_kept(name[: STRUCTURED_DATA_LIMITS.value_chars]), [])
            if len(values) < STRUCTURED_DATA_LIMITS.values and self._kept_chars_left > length:
                self._kept_chars_left -= length
                values.append(value)


def _text_length(value: object) -> int:
    """Return the approximate length of a value in characters."""
    texts = value.values() if isinstance(value, dict) else (value,)
    return _VALUE_COST + sum(len(text) for text in texts if isinstance(text, str))


class _MicrodataReader(_ItemReader):
    item_attribute, property_attribute = "itemscope", "itemprop"
    type_attribute, id_attributes = "itemtype", ("itemid",)

    @cached_property
    def _elements_by_id(self) -> dict[str, LexborNode]:
        """The first element with each id."""
        return {
            attribute_value(node.attributes, "id"): node
            for node in self._tree.css("[id]")[STRUCTURED_DATA_LIMITS.elements :: -1]
        }

    def _referenced_elements(self, node: LexborNode) -> list[LexborNode]:
        names = (node.attributes.get("itemref") or "").split()[: STRUCTURED_DATA_LIMITS.values]
        return [self._elements_by_id[name] for name in names[::-1] if name in self._elements_by_id]


class _RdfaReader(_ItemReader):
    item_attribute, property_attribute = "typeof", "property"
    type_attribute, id_attributes = "typeof", ("resource", "about")

    def _resolve_types(self, node: LexborNode, names: list[str]) -> list[str]:
        vocabulary = self._find_vocabulary(node)
        return [each if ":" in each else vocabulary + each for each in names]

    def _read_value(self, node: LexborNode) -> object:
        attributes = node.attributes
        if attributes.get("content") is None and attributes.get("resource"):
            return _resolve_href(self._base, attributes["resource"])
        return super()._read_value(node)

    def _find_vocabulary(self, node: LexborNode) -> str:
        current: LexborNode | None = node
        while current is not None:
            if named := current.attributes.get("vocab"):
                return named.strip()[: STRUCTURED_DATA_LIMITS.value_chars]
            current = current.parent
        return ""
