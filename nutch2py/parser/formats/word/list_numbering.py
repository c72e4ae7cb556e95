"""List numbering of Word ([ECMA-376] Part 1, 17.9): counts items and formats their numbers."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from nutch2py.parser.formats.containers.zip_package import XmlEvent, get_attribute, xml_events
from nutch2py.parser.formats.document_parser import parse_int

MAX_LEVELS = 9
_MAX_TEXT_CHARS = 100  # of a level's text
_MAX_LETTERS, _MAX_ROMAN = 780, 3999  # larger numbers are formatted as digits
_MAX_STYLE_DEPTH = 20  # of styles based on others
_LEVEL_REFERENCE = re.compile(r"%([1-9])")
_ROMAN = ((1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"), (40, "xl"), (10, "x"),
          (9, "ix"), (5, "v"), (4, "iv"), (1, "i"))  # fmt: skip
_CHINESE_DIGITS = "〇一二三四五六七八九"
_CHINESE_FORMATS = re.compile("(?:chinese|taiwanese|japanese|ideograph).*", re.IGNORECASE)


@dataclass
class ListLevel:
    """Numbering of one list level. ``text`` contains %1 to %9 for the numbers of the levels."""

    start: int = 1
    number_format: str = "decimal"
    text: str = ""
    is_legal: bool = False  # format all numbers as digits
    style: str = ""
    restart: int = MAX_LEVELS  # the count restarts after an item of a level above this one


@dataclass
class NumberingInstance:
    """A list: its definition, and its overrides."""

    definition: str = ""
    starts: dict[int, int] = field(default_factory=dict)
    levels: dict[int, ListLevel] = field(default_factory=dict)


class ListCounter:
    """Current numbers of a list at all levels."""

    def __init__(self) -> None:
        self._counts: list[int | None] = [None] * MAX_LEVELS

    def advance(self, levels: dict[int, ListLevel], level: int, restart: int | None = None) -> str:
        """Advance to the next item of a level and return its formatted number."""
        counts = self._counts
        for above in range(level):
            if counts[above] is None:
                counts[above] = levels.get(above, ListLevel()).start
        now = counts[level]
        if restart is not None:
            counts[level] = restart
        else:
            counts[level] = levels.get(level, ListLevel()).start if now is None else now + 1
        for below in range(level + 1, MAX_LEVELS):
            if below not in levels or level < levels[below].restart:
                counts[below] = None
        own = levels.get(level)
        if own is None or own.number_format in ("bullet", "none"):
            return ""

        def substitute(match: re.Match[str]) -> str:
            other = int(match[1]) - 1
            count = counts[other]
            kind = levels.get(other, ListLevel()).number_format
            if count is None or kind in ("bullet", "none"):
                return ""
            return format_number(count, "decimal" if own.is_legal else kind)

        return _LEVEL_REFERENCE.sub(substitute, own.text[:_MAX_TEXT_CHARS])


class ListNumbering:
    """The lists of a document by name, and their definitions. Call it for each paragraph in order."""

    def __init__(self) -> None:
        self.definitions: dict[str, dict[int, ListLevel]] = {}
        self.instances: dict[str, NumberingInstance] = {}
        self._counters: dict[str, ListCounter] = {}
        self._started: set[tuple[str, int]] = set()

    def next_number(self, num: str, level: int) -> str:
        """Return the number before the next paragraph of a list, "" when the list is unknown."""
        found = self.instances.get(num)
        if found is None:
            return ""
        definition = self.resolve_definition(found.definition)
        levels = self.definitions.get(definition, {})
        if found.levels:
            levels = {**levels, **found.levels}
        restart = None
        if level in found.starts and (num, level) not in self._started:
            self._started.add((num, level))
            restart = found.starts[level]
        return self._counters.setdefault(definition, ListCounter()).advance(levels, level, restart)

    def resolve_definition(self, definition: str) -> str:
        """Return the definition that applies for a definition."""
        return definition

    def level_of_style(self, num: str, style: str) -> int:
        """Return the level of a list whose paragraphs have a style, 0 when there is none."""
        found = self.instances.get(num)
        levels = self.definitions.get(found.definition, {}) if found else {}
        return next((at for at, level in levels.items() if level.style == style), 0)


class DocxLists(ListNumbering):
    """The lists of a docx package, from numbering.xml and styles.xml."""

    def __init__(self, numbering: bytes, styles: bytes) -> None:
        super().__init__()
        self._definitions_by_style: dict[str, str] = {}  # list style -> definition
        self._style_links: dict[str, str] = {}  # definition -> list style that it refers to
        self._styles: dict[str, tuple[str, str, str]] = {}  # style -> base style, list, level
        if numbering:
            self._read_numbering(numbering)
            self._read_styles(styles)

    def paragraph_number(self, num: str, level: str, style: str) -> str:
        """Return the number before a paragraph, "" for none. ``num``, ``level``: its own, or "" for its style's."""
        for _ in range(_MAX_STYLE_DEPTH):
            if num or style not in self._styles:
                break
            base, num, style_level = self._styles[style]
            if num:
                level = level or style_level or str(self.level_of_style(num, style))
            style = base
        return self.next_number(num, min(parse_int(level), MAX_LEVELS - 1))

    def resolve_definition(self, definition: str) -> str:
        """Return the definition that applies for a definition, which may refer to the style of another list."""
        return (
            self._definitions_by_style.get(self._style_links[definition], definition)
            if definition in self._style_links
            else definition
        )

    def _read_numbering(self, content: bytes) -> None:
        definition = num = ""
        levels: dict[int, ListLevel] = {}
        level = ListLevel()
        at = 0
        for event in xml_events(content):
            if event.kind != "start":
                continue
            name, value = event.name, get_attribute(event, "val")
            if name == "abstractNum":
                definition, num = get_attribute(event, "abstractNumId"), ""
                levels = self.definitions[definition] = {}
            elif name == "num":
                num = get_attribute(event, "numId")
                levels = self.instances.setdefault(num, NumberingInstance()).levels
            elif name == "abstractNumId" and num:
                self.instances[num].definition = value
            elif name in ("lvl", "lvlOverride"):
                at = min(parse_int(get_attribute(event, "ilvl")), MAX_LEVELS - 1)
                if name == "lvl":
                    level = levels[at] = ListLevel(start=0)
            elif name == "startOverride" and num:
                self.instances[num].starts[at] = parse_int(value)
            elif name == "styleLink":
                self._definitions_by_style[value] = definition
            elif name == "numStyleLink":
                self._style_links[definition] = value
            else:
                _apply_level_element(level, event)

    def _read_styles(self, content: bytes) -> None:
        style = ""
        for event in xml_events(content):
            if event.kind != "start":
                continue
            value = get_attribute(event, "val")
            if event.name == "style":
                style = get_attribute(event, "styleId")
                self._styles[style] = ("", "", "")
            elif style and event.name in ("basedOn", "numId", "ilvl"):
                base, num, level = self._styles[style]
                self._styles[style] = (
                    value if event.name == "basedOn" else base,
                    value if event.name == "numId" else num,
                    value if event.name == "ilvl" else level,
                )


def _apply_level_element(level: ListLevel, event: XmlEvent) -> None:
    value = get_attribute(event, "val")
    if event.name == "start":
        level.start = parse_int(value)
    elif event.name == "numFmt":
        level.number_format = value
        level.number_format = "decimalZero" if get_attribute(event, "format").startswith("0") else level.number_format
    elif event.name == "lvlRestart":
        level.restart = parse_int(value, MAX_LEVELS)
    elif event.name == "lvlText":
        level.text = value[:_MAX_TEXT_CHARS]
    elif event.name == "isLgl":
        level.is_legal = value not in ("0", "false")
    elif event.name == "pStyle":
        level.style = value


def format_number(number: int, number_format: str) -> str:
    """Return a number in a list's number format.

    >>> format_number(4, "lowerRoman"), format_number(28, "upperLetter"), format_number(3, "ordinal")
    ('iv', 'BB', '3rd')
    >>> format_number(7, "decimalZero"), format_number(12, "chineseCounting"), format_number(5, "none")
    ('07', '十二', '')
    """
    lower = number_format.lower()
    if lower == "none":
        return ""
    if lower.endswith("roman") and 0 < number <= _MAX_ROMAN:
        text, left = "", number
        for value, letters in _ROMAN:
            text += letters * (left // value)
            left %= value
        return text.upper() if lower.startswith("upper") else text
    if lower in ("upperletter", "lowerletter") and 0 < number <= _MAX_LETTERS:
        letter = chr(ord("a") + (number - 1) % 26) * ((number - 1) // 26 + 1)
        return letter.upper() if lower.startswith("upper") else letter
    if lower == "ordinal":
        return f"{number}{'th' if 10 < number % 100 < 14 else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"
    if lower == "decimalzero":
        return f"{number:02d}"
    if _CHINESE_FORMATS.fullmatch(number_format) and 0 < number < 100:
        tens, ones = divmod(number, 10)
        return (
            ("" if tens < 2 else _CHINESE_DIGITS[tens])
            + ("十" if tens else "")
            + (_CHINESE_DIGITS[ones] if ones else "")
        )
    return str(number)
