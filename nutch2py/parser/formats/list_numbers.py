"""Numbers of Word's lists ([ECMA-376] Part 1, 17.9): counted as Word counts, and written as their level says."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from nutch2py.parser.formats.parsed_document import whole_number
from nutch2py.parser.formats.zip_package import XmlEvent, attribute, xml_events

LEVELS = 9
_MAX_TEXT = 100  # characters of a level's text
_MAX_LETTERS, _MAX_ROMAN = 780, 3999  # numbers above are written with digits
_MAX_STYLES = 20  # that a style is based on
_PLACE = re.compile(r"%([1-9])")
_ROMAN = ((1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"), (40, "xl"), (10, "x"),
          (9, "ix"), (5, "v"), (4, "iv"), (1, "i"))  # fmt: skip
_CHINESE = "〇一二三四五六七八九"
_MANY_CHINESE = re.compile("(?:chinese|taiwanese|japanese|ideograph).*", re.IGNORECASE)


@dataclass
class Level:
    """How a level of a list is numbered. ``text`` has %1 to %9 for the numbers of the levels."""

    start: int = 1
    kind: str = "decimal"
    text: str = ""
    legal: bool = False  # all numbers with digits
    style: str = ""
    restart: int = LEVELS  # it begins anew after an item of a level above this one


@dataclass
class Num:
    """A list: which definition it follows, and where it differs."""

    definition: str = ""
    starts: dict[int, int] = field(default_factory=dict)
    levels: dict[int, Level] = field(default_factory=dict)


class Counter:
    """The numbers of a list so far, those of its upper levels with them."""

    def __init__(self) -> None:
        self._counts: list[int | None] = [None] * LEVELS

    def step(self, levels: dict[int, Level], level: int, restart: int | None = None) -> str:
        """Go to the next item of a level and return its number as it is written."""
        counts = self._counts
        for above in range(level):
            if counts[above] is None:
                counts[above] = levels.get(above, Level()).start
        now = counts[level]
        if restart is not None:
            counts[level] = restart
        else:
            counts[level] = levels.get(level, Level()).start if now is None else now + 1
        for below in range(level + 1, LEVELS):
            if below not in levels or level < levels[below].restart:
                counts[below] = None
        own = levels.get(level)
        if own is None or own.kind in ("bullet", "none"):
            return ""

        def place(match: re.Match[str]) -> str:
            other = int(match[1]) - 1
            count = counts[other]
            kind = levels.get(other, Level()).kind
            if count is None or kind in ("bullet", "none"):
                return ""
            return written(count, "decimal" if own.legal else kind)

        return _PLACE.sub(place, own.text[:_MAX_TEXT])


class Numbering:
    """The lists of a document by name, and the definitions that they follow. Asked paragraph by paragraph, in order."""

    def __init__(self) -> None:
        self.definitions: dict[str, dict[int, Level]] = {}
        self.nums: dict[str, Num] = {}
        self._counters: dict[str, Counter] = {}
        self._begun: set[tuple[str, int]] = set()

    def item(self, num: str, level: int) -> str:
        """Return what stands before the next paragraph of a list, "" when there is no such list."""
        found = self.nums.get(num)
        if found is None:
            return ""
        definition = self.followed(found.definition)
        levels = self.definitions.get(definition, {})
        if found.levels:
            levels = {**levels, **found.levels}
        restart = None
        if level in found.starts and (num, level) not in self._begun:
            self._begun.add((num, level))
            restart = found.starts[level]
        return self._counters.setdefault(definition, Counter()).step(levels, level, restart)

    def followed(self, definition: str) -> str:
        """Return the definition that one stands for."""
        return definition

    def level_of(self, num: str, style: str) -> int:
        """Return the level of a list whose paragraphs have a style, 0 if there is none."""
        found = self.nums.get(num)
        levels = self.definitions.get(found.definition, {}) if found else {}
        return next((at for at, level in levels.items() if level.style == style), 0)


class Lists(Numbering):
    """The lists of a docx package, of its files numbering.xml and styles.xml."""

    def __init__(self, numbering: bytes, styles: bytes) -> None:
        super().__init__()
        self._named: dict[str, str] = {}  # style of a list -> definition
        self._links: dict[str, str] = {}  # definition -> style of the list that it stands for
        self._styles: dict[str, tuple[str, str, str]] = {}  # style -> what it is based on, list, level
        if numbering:
            self._read_numbering(numbering)
            self._read_styles(styles)

    def number(self, num: str, level: str, style: str) -> str:
        """Return what stands before a paragraph, "" without a list. ``num``, ``level``: its own, "" for its style's."""
        for _ in range(_MAX_STYLES):
            if num or style not in self._styles:
                break
            base, num, style_level = self._styles[style]
            if num:
                level = level or style_level or str(self.level_of(num, style))
            style = base
        return self.item(num, min(whole_number(level), LEVELS - 1))

    def followed(self, definition: str) -> str:
        """Return the definition that one stands for: it may name the style of another list."""
        return self._named.get(self._links[definition], definition) if definition in self._links else definition

    def _read_numbering(self, content: bytes) -> None:
        definition = num = ""
        levels: dict[int, Level] = {}
        level = Level()
        at = 0
        for event in xml_events(content):
            if event.kind != "start":
                continue
            name, value = event.name, attribute(event, "val")
            if name == "abstractNum":
                definition, num = attribute(event, "abstractNumId"), ""
                levels = self.definitions[definition] = {}
            elif name == "num":
                num = attribute(event, "numId")
                levels = self.nums.setdefault(num, Num()).levels
            elif name == "abstractNumId" and num:
                self.nums[num].definition = value
            elif name in ("lvl", "lvlOverride"):
                at = min(whole_number(attribute(event, "ilvl")), LEVELS - 1)
                if name == "lvl":
                    level = levels[at] = Level(start=0)
            elif name == "startOverride" and num:
                self.nums[num].starts[at] = whole_number(value)
            elif name == "styleLink":
                self._named[value] = definition
            elif name == "numStyleLink":
                self._links[definition] = value
            else:
                _describe(level, event)

    def _read_styles(self, content: bytes) -> None:
        style = ""
        for event in xml_events(content):
            if event.kind != "start":
                continue
            value = attribute(event, "val")
            if event.name == "style":
                style = attribute(event, "styleId")
                self._styles[style] = ("", "", "")
            elif style and event.name in ("basedOn", "numId", "ilvl"):
                base, num, level = self._styles[style]
                self._styles[style] = (
                    value if event.name == "basedOn" else base,
                    value if event.name == "numId" else num,
                    value if event.name == "ilvl" else level,
                )


def _describe(level: Level, event: XmlEvent) -> None:
    value = attribute(event, "val")
    if event.name == "start":
        level.start = whole_number(value)
    elif event.name == "numFmt":
        level.kind = value
        level.kind = "decimalZero" if attribute(event, "format").startswith("0") else level.kind
    elif event.name == "lvlRestart":
        level.restart = whole_number(value, LEVELS)
    elif event.name == "lvlText":
        level.text = value[:_MAX_TEXT]
    elif event.name == "isLgl":
        level.legal = value not in ("0", "false")
    elif event.name == "pStyle":
        level.style = value


def written(number: int, kind: str) -> str:
    """Return a number in a list's way of writing.

    >>> written(4, "lowerRoman"), written(28, "upperLetter"), written(3, "ordinal"), written(7, "decimalZero")
    ('iv', 'BB', '3rd', '07')
    >>> written(12, "chineseCounting"), written(0, "upperRoman"), written(5, "none")
    ('十二', '0', '')
    """
    lower = kind.lower()
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
    if _MANY_CHINESE.fullmatch(kind) and 0 < number < 100:
        tens, ones = divmod(number, 10)
        return ("" if tens < 2 else _CHINESE[tens]) + ("十" if tens else "") + (_CHINESE[ones] if ones else "")
    return str(number)
