"""The media type table: names, aliases, supertypes, file extensions and magic bytes, from a file in Tika's format."""

from __future__ import annotations

import re
from collections.abc import Callable
from fnmatch import translate
from xml.etree import ElementTree as ET

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError

OCTET_STREAM = "application/octet-stream"
PLAIN_TEXT = "text/plain"
DEFAULT_MIME_TYPES_FILE = "mime-types.xml"

_TYPE_NAME = re.compile(r"[a-z0-9!#$&^_.+-]+/[a-z0-9!#$&^_.+-]+")
_ESCAPE = re.compile(rb"\\(?:x([0-9a-fA-F]{2})|([0-7]{1,3})|(.))", re.DOTALL)
_ESCAPED_LETTERS = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"\\": b"\\"}
_NUMBER_TYPE = re.compile(r"(big|little)(16|32)")
MagicMatcher = Callable[[bytes], bool]
MagicRule = tuple[int, str, MagicMatcher]
"""Priority, type name, and the test of a page's first bytes."""


class MimeTable:
    """Contents of the table file; :mod:`nutch2py.parser.mime.mime_types` combines them to a decision."""

    def __init__(self) -> None:
        self.aliases: dict[str, str] = {}
        self.supertypes: dict[str, str] = {}
        self.extensions: dict[str, str] = {}  # ".tar.gz" -> type
        self.patterns: list[tuple[re.Pattern[str], str]] = []
        self.magic: list[MagicRule] = []  # highest priority first
        self._possible_first_bytes: dict[MagicMatcher, frozenset[int]] = {}  # required first byte, where there is one
        self._magic_by_first_byte: dict[int, list[MagicRule]] = {}
        self.root_elements: dict[tuple[str, str], str] = {}  # (namespace, local name) of the root element -> type
        self.known_types: set[str] = set()

    @classmethod
    def load(cls, conf: Configuration) -> MimeTable:
        """Read the file in ``mime.types.file``, by default the shipped one."""
        name = conf.get_trimmed("mime.types.file", DEFAULT_MIME_TYPES_FILE)
        root = conf.resource_xml(name)
        if root is None:
            raise ConfigurationError(
                f"mime.types.file names {name}, which no configuration folder contains: correct it"
            )
        table = cls()
        for element in root.iter("mime-type"):
            table._add_mime_type(element)
        table.magic.sort(key=lambda entry: -entry[0])
        return table

    def _add_mime_type(self, element: ET.Element) -> None:
        name = element.get("type", "").lower()
        self.known_types.add(name)
        for alias in element.iter("alias"):
            self.aliases[alias.get("type", "").lower()] = name
        for parent in element.iter("sub-class-of"):
            self.supertypes[name] = parent.get("type", "").lower()
        for glob in element.iter("glob"):
            pattern = glob.get("pattern", "")
            if glob.get("isregex") == "true":
                self.patterns.append((re.compile(pattern), name))
            elif re.fullmatch(r"\*\.[^*?\[]+", pattern):
                self.extensions.setdefault(pattern[1:].lower(), name)
            else:
                self.patterns.append((re.compile(translate(pattern)), name))
        for magic in element.iter("magic"):
            for match in magic.findall("match"):
                matcher = _build_matcher(match)
                if matcher is not None:
                    self.magic.append((int(magic.get("priority", "50")), name, matcher))
                    if first := _first_bytes(match):
                        self._possible_first_bytes[matcher] = first
        for root in element.iter("root-XML"):
            self.root_elements.setdefault((root.get("namespaceURI", ""), root.get("localName", "")), name)

    def magic_for_first_byte(self, first: int) -> list[MagicRule]:
        """Return the rules of ``magic``, in order, that can match a page with this first byte."""
        found = self._magic_by_first_byte.get(first)
        if found is None:
            firsts = self._possible_first_bytes
            found = [each for each in self.magic if each[2] not in firsts or first in firsts[each[2]]]
            self._magic_by_first_byte[first] = found
        return found

    def canonical_name(self, name: str) -> str | None:
        """Return the canonical name of a type (an unknown one is its own), None when the name is invalid."""
        name = name.strip().lower()
        if not _TYPE_NAME.fullmatch(name):
            return None
        return self.aliases.get(name, name)

    def supertype(self, name: str) -> str | None:
        """Return the supertype: from the file, else by suffix and main type; None for the most general type."""
        if name in self.supertypes:
            return self.supertypes[name]
        if name.endswith("+xml"):
            return "application/xml"
        if name.endswith("+json"):
            return "application/json"
        if name.endswith("+zip"):
            return "application/zip"
        if name.startswith("text/") and name != PLAIN_TEXT:
            return PLAIN_TEXT
        return None if name == OCTET_STREAM else OCTET_STREAM

    def is_instance_of(self, name: str, general: str) -> bool:
        """Return whether ``name`` equals ``general`` or is a subtype of it."""
        current: str | None = name
        for _ in range(16):  # bounded: a cyclic file must not hang the fetcher
            if current == general:
                return True
            current = self.supertype(current) if current else None
            if current is None:
                break
        return False

    def type_by_file_name(self, name: str) -> str | None:
        """Return the type of a file name by its longest known extension."""
        start = name.find(".")
        while start >= 0:
            found = self.extensions.get(name[start:].lower())
            if found:
                return found
            start = name.find(".", start + 1)
        return next((kind for pattern, kind in self.patterns if pattern.fullmatch(name)), None)


def unescape_magic(value: str) -> bytes:
    r"""Return the bytes of a ``match`` value, in which ``\x``, octal numbers and C letters are escapes."""

    def replace(match: re.Match[bytes]) -> bytes:
        if match[1]:
            return bytes([int(match[1], 16)])
        if match[2]:
            return bytes([int(match[2], 8) & 255])
        return _ESCAPED_LETTERS.get(match[3], match[3])

    return _ESCAPE.sub(replace, value.encode("latin-1", "replace"))


def _first_bytes(element: ET.Element) -> frozenset[int]:
    """Return the possible first bytes of a matching page; empty where any byte may match."""
    kind = element.get("type", "string")
    if element.get("offset", "0") not in ("0", "0:0") or kind not in ("string", "stringignorecase"):
        return frozenset()
    first = unescape_magic(element.get("value", ""))[:1]
    return frozenset(first + first.swapcase() if kind == "stringignorecase" else first)


def _build_matcher(element: ET.Element) -> MagicMatcher | None:
    """Return a test of a page's first bytes; None for unsupported rules: masks, UTF-16 strings, Java-only patterns."""
    kind, value = element.get("type", "string"), element.get("value", "")
    first, _, last = element.get("offset", "0").partition(":")
    start, stop = int(first), int(last or first)
    number = _NUMBER_TYPE.fullmatch(kind)
    own: MagicMatcher
    if element.get("mask") or not value:
        return None
    if kind == "regex":
        try:
            pattern = re.compile(value.encode("latin-1", "replace"))
        except re.error:  # some patterns of Tika's table are valid only in Java
            return None
        own = lambda data: any(pattern.match(data, at) for at in range(start, min(stop, len(data)) + 1))  # noqa: E731
    elif kind in ("string", "stringignorecase") or number:
        wanted = unescape_magic(value)
        if number:
            order = "big" if number[1] == "big" else "little"
            octal = value.startswith("0") and value.isdigit()  # as in C
            wanted = int(value, 8 if octal else 0).to_bytes(int(number[2]) // 8, order)  # type: ignore[arg-type]
        ignore_case = kind == "stringignorecase"
        wanted = wanted.lower() if ignore_case else wanted
        end = stop + len(wanted)

        def own(data: bytes) -> bool:
            return wanted in data[start:end].lower() if ignore_case else data.find(wanted, start, end) >= 0

    else:
        return None
    nested = [_build_matcher(child) for child in element.findall("match")]
    if not nested:
        return own
    inner = [matcher for matcher in nested if matcher is not None]
    return lambda data: own(data) and any(matcher(data) for matcher in inner)
