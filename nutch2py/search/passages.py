"""The passages of a text that say best what it has of a query: sentences where there are some, headings where not."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

_REACH = 400  # characters before and behind a word in which the ends of its sentence are looked for
_MOST = 300  # words of a text that are weighed; more of them say no more
_SHORTEST = 12  # characters: what ends sooner is a number or an abbreviation ("5.1. The", "Dr. Who"), no sentence
_CONTEXT = 40  # characters before a word, within a sentence that is longer than what is shown
_LOOKED_AT = 8_000  # characters in which a first sentence is looked for
_END = re.compile("[.!?…][\"'”’)\\]]*\\s+|[。！？][\"'”’」』）]*\\s*|\\n\\s*")
_WORD = re.compile(r"[^\W\d_]+")
_WORDS = re.compile(r"\w+")
_GAP = 8  # characters between two words of a title, and about it
_HAN = re.compile("[\u3400-\u9fff]")
_FINAL = tuple('.!?…:。！？"”’)」』）')
_CLAUSE = re.compile("[，。、；]")
_PARTS_OF_TITLE = re.compile(r"\s[|–—·:»-]\s")

Match = tuple[int, int, str]
"""Where a word stands that was asked for, ``text[start:end]``, and its term."""


class Passage(NamedTuple):
    """A part of a text. ``whole``: it ends where a sentence or a line does; ``value``: how well it fits."""

    start: int
    end: int
    whole: bool
    value: float


def best_passages(text: str, matches: Sequence[Match], length: int, title: str = "") -> list[Passage]:
    """Return one or two passages of ``text``, in its order and apart, of about ``length`` characters together.

    ``matches``: where the words stand that were asked for, in order. A passage is worth the number of different ones
    that it has, more when it is prose and less when it says what the title says. The second has words that the
    first lacks, or is prose about the same.
    """
    heading = _Heading.of(title)
    if len(text) <= length and (heading is None or heading.without(text) == text):
        return [Passage(0, len(text), True, 0.0)]
    found = [*_candidates(text, matches[:_MOST], length, heading)]
    if not found:
        return [_beginning(text, length, heading)]
    best = max(found, key=lambda each: (each[0].value, -each[0].start))
    chosen, terms = best
    left = length - (chosen.end - chosen.start)
    if left < length // 4:
        return [chosen]
    shown = _plain(text[chosen.start : chosen.end])
    others = [
        (len(has - terms) + other.value - len(has), other)
        for other, has in found
        if (other.end <= chosen.start or other.start >= chosen.end)
        and other.end - other.start <= left
        and _plain(text[other.start : other.end]) not in shown
    ]
    value, second = max(others, key=lambda pair: (pair[0], -pair[1].start), default=(0.0, chosen))
    return sorted((chosen, second)) if value > _PROSE - 0.01 else [_filled(text, chosen, length)]


# what they are worth, in words: prose, words side by side, a repetition, the title once more
_PROSE, _TOGETHER, _OFTEN, _SAID = 0.75, 0.4, 0.1, -2.0


def _candidates(
    text: str, matches: Sequence[Match], length: int, heading: _Heading | None
) -> Iterator[tuple[Passage, frozenset[str]]]:
    """Yield passages that have a match, and the terms that each has."""
    borders = _borders_about(text, matches)
    start, end, after = 0, -1, -1
    for number, (begin, stop, _) in enumerate(matches):
        if begin < after:
            continue
        if begin >= end:
            start, end = _sentence(text, begin, stop, borders, heading)
        a, b, whole = _fitted(text, start, end, begin, length)
        after = b if whole else begin + length // 4  # further on in it
        first = last = number
        while first and matches[first - 1][0] >= a:
            first -= 1
        while last < len(matches) and matches[last][1] <= b:
            last += 1
        inside = [term for _, _, term in matches[first:last]]
        terms = frozenset(inside)
        value = len(terms) + _OFTEN * min(len(inside) - len(terms), 3)
        if any(one[2] != two[2] and 0 < two[0] - one[1] <= 2 for one, two in pairwise(matches[first:last])):
            value += _TOGETHER
        if _is_prose(text[a:b], whole):
            value += _PROSE
        if heading is not None and len(_plain(heading.without(text[a:b]))) < _SHORTEST:
            value += _SAID
        yield Passage(a, b, whole, value), terms


def _borders_about(text: str, matches: Sequence[Match]) -> list[int]:
    """Return where sentences and lines begin about the matches."""
    if not matches:
        return []
    low, high = max(0, matches[0][0] - _REACH), min(len(text), matches[-1][1] + _REACH)
    return [*_borders(text, low, high)]


def _sentence(text: str, begin: int, stop: int, borders: list[int], heading: _Heading | None) -> tuple[int, int]:
    """Return where the sentence or line begins and ends that has ``text[begin:stop]``, titles before it left out."""
    low, high = max(0, begin - _REACH), min(len(text), stop + _REACH)
    number = bisect_right(borders, begin)
    start = max(low, borders[number - 1]) if number else low
    number = bisect_left(borders, stop)
    end = min(high, borders[number]) if number < len(borders) else high
    if low and start == low:  # a sentence longer than the reach: from a blank on
        start = text.find(" ", low, begin) + 1 or low
    while heading is not None and start < begin:
        said = heading.match(text, start)
        if said < 0 or said > begin or text[said : said + 1].islower():
            break
        start = said
    while start < begin and text[start].isspace():
        start += 1
    return start, start + len(text[start:end].rstrip())


def _borders(text: str, low: int, high: int) -> Iterator[int]:
    """Yield where sentences and lines of ``text[low:high]`` begin but the first."""
    last = low
    for match in _END.finditer(text, low, high):
        at = match.end()
        following = text[at : at + 1]
        if match.group()[0] == "\n":
            if "a" <= following <= "z":  # a line that was broken for its width
                continue
        elif text[match.start()] in ".!?…" and (
            following.islower() or (match.start() - last < _SHORTEST and "\n" not in match.group())
        ):
            continue
        yield at
        last = at


def _fitted(text: str, start: int, end: int, begin: int, length: int) -> tuple[int, int, bool]:
    """Return a sentence, one that is longer than ``length`` characters cut about ``begin``; and whether it is whole."""
    if end - start <= length:
        return start, end, True
    a = start if begin - start <= length - 2 * _CONTEXT else _blank(text, begin - _CONTEXT, begin)
    b = min(end, a + length)
    if b < end:
        space = text.rfind(" ", max(a, b - _CONTEXT // 2), b)
        b = space if space > begin else b
    return a, b, b == end


def _filled(text: str, passage: Passage, length: int) -> Passage:
    """Return prose with the sentences that follow it, up to ``length`` characters."""
    start, end = passage.start, passage.end
    if passage.whole and _is_prose(text[start:end], True):
        for border in [*_borders(text, start, min(len(text), start + length + _SHORTEST))]:
            if border > end + 1 and not text[end:border].isspace():
                if border - start > length or not _is_prose(text[end:border], True):
                    break
                end = start + len(text[start:border].rstrip())
    return passage._replace(end=end)


def _blank(text: str, low: int, high: int) -> int:
    space = text.find(" ", low, min(high, low + _CONTEXT // 2))
    return space + 1 if space >= 0 else low


def _beginning(text: str, length: int, heading: _Heading | None) -> Passage:
    """Return the first sentence of prose with what follows it, else the beginning of the text."""
    looked_at = text[:_LOOKED_AT]
    start = 0
    for border in [*_borders(looked_at, 0, len(looked_at)), len(looked_at)]:
        line = text[start:border].strip()
        said = heading is not None and heading.without(line).strip() == ""
        if not said and _is_prose(line, True):
            break
        start = border
    else:
        start = 0
    begin, end = start, min(len(text), start + length)
    if end < len(text):
        space = text.rfind(" ", max(begin, end - _CONTEXT // 2), end)
        end = space if space > begin else end
    return Passage(begin, end, end == len(text), 0.0)


def _is_prose(text: str, whole: bool) -> bool:
    """Tell whether a part of a text is what somebody wrote, no heading, menu or row of a table."""
    if len(_HAN.findall(text[:200])) >= 2 * _SHORTEST:
        return len(_CLAUSE.findall(text)) >= 1
    if whole and not text.rstrip().endswith(_FINAL):
        return False
    words = _WORD.findall(text)
    return len(words) >= 6 and sum(word.islower() or not word.isascii() for word in words) >= 0.6 * len(words)


class _Heading:
    """Finds the words of a title, or of its first part, in a text, with what parts and surrounds them.

    No pattern is made of the words: that would take longer than all else, once for each hit.
    """

    def __init__(self, ways: list[list[str]]) -> None:
        self._ways = ways

    @classmethod
    def of(cls, title: str) -> _Heading | None:
        """Return it for a title; None for one that is one word."""
        ways = []
        for part in dict.fromkeys([title, _PARTS_OF_TITLE.split(title.strip())[0]]):
            words = [word.lower() for word in _WORDS.findall(part[:200])]
            if len(words) > 1 or (words and len(part) >= _SHORTEST):
                ways.append(words)
        return cls(ways) if ways else None

    def match(self, text: str, start: int) -> int:
        """Return where it ends that begins at ``start``, -1 when it does not begin there."""
        begun = _end_of_gap(text, start)
        for words in self._ways:
            at = begun
            for number, word in enumerate(words):
                if number and (at := _end_of_gap(text, gap := at)) == gap:
                    break
                if text[at : at + len(word)].lower() != word:
                    break
                at += len(word)
            else:
                return _end_of_gap(text, at)
        return -1

    def without(self, text: str) -> str:
        """Return a text with a blank where it was."""
        lowered = text.lower()
        if not any(words[0] in lowered for words in self._ways):
            return text
        kept, at = list[str](), 0
        for word in _WORDS.finditer(text):
            if word.start() >= at and (end := self.match(text, word.start())) >= 0:
                kept += [text[at : word.start()].rstrip(), " "]
                at = end
        return "".join([*kept, text[at:]])


def _end_of_gap(text: str, start: int) -> int:
    """Return where what is no word ends, after ``_GAP`` characters at the latest."""
    end = start
    while end < len(text) and end - start < _GAP and not (text[end].isalnum() or text[end] == "_"):
        end += 1
    return end


def _plain(text: str) -> str:
    return " ".join(text.lower().split())
