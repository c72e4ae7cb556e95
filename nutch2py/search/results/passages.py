"""Passages: selects the parts of a text that show best how it matches a query, preferably whole sentences."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

_SENTENCE_REACH = 400  # characters before and after a match to search for the ends of its sentence
_MAX_MATCHES = 300  # matches of a text that are scored
_MIN_SENTENCE_LENGTH = 12  # characters; a shorter part is a number or an abbreviation ("5.1. The", "Dr. Who")
_CONTEXT = 40  # characters before a match in a sentence that is too long
_LEAD_CHARACTERS = 8_000  # characters to search for a first sentence of prose
_SENTENCE_END = re.compile("[.!?…][\"'”’)\\]]*\\s+|[。！？][\"'”’」』）]*\\s*|\\n\\s*")
_LETTERS = re.compile(r"[^\W\d_]+")
_WORD = re.compile(r"\w+")
_MAX_GAP = 8  # characters between two words of a title, and around it
_HAN = re.compile("[\u3400-\u9fff]")
_FINAL_PUNCTUATION = tuple('.!?…:。！？"”’)」』）')
_CHINESE_PUNCTUATION = re.compile("[，。、；]")
_TITLE_SEPARATOR = re.compile(r"\s[|–—·:»-]\s")

TermMatch = tuple[int, int, str]
"""A matching word, ``text[start:end]``, and its term."""


class Passage(NamedTuple):
    """A part of a text. ``is_complete``: it ends at the end of a sentence or line; ``score``: relevance."""

    start: int
    end: int
    is_complete: bool
    score: float


def select_passages(text: str, matches: Sequence[TermMatch], length: int, title: str = "") -> list[Passage]:
    """Return one or two disjoint passages, in the order of the text, of about ``length`` characters in total.

    The score of a passage is its number of different terms, more for prose and less for a repetition of the title. The
    second passage has terms that the first lacks, or is prose with the same terms.

    Args:
        text: The text.
        matches: Matching words in the order of the text.
        length: Characters of all passages.
        title: Title of the page.

    """
    heading = _TitleMatcher.from_title(title)
    if len(text) <= length and (heading is None or heading.remove_from(text) == text):
        return [Passage(0, len(text), True, 0.0)]
    candidates = [*_iter_candidates(text, matches[:_MAX_MATCHES], length, heading)]
    if not candidates:
        return [_lead_passage(text, length, heading)]
    best, terms = max(candidates, key=lambda each: (each[0].score, -each[0].start))
    if _is_title_only(text, best, heading):
        lead = _lead_passage(text, length, heading)
        return [best if _is_title_only(text, lead, heading) else lead]
    left = length - (best.end - best.start)
    if left < length // 4:
        return [best]
    best_text = _normalize(text[best.start : best.end])
    others = [
        (len(other_terms - terms) + other.score - len(other_terms), other)
        for other, other_terms in candidates
        if (other.end <= best.start or other.start >= best.end)
        and other.end - other.start <= left
        and _normalize(text[other.start : other.end]) not in best_text
    ]
    value, second = max(others, key=lambda pair: (pair[0], -pair[1].start), default=(0.0, best))
    return sorted((best, second)) if value > _PROSE_BONUS - 0.01 else [_extend_passage(text, best, length)]


# Scores in units of a term: prose, adjacent words, a repeated term, a repetition of the title.
_PROSE_BONUS, _ADJACENT_BONUS, _REPEAT_BONUS, _TITLE_PENALTY = 0.75, 0.4, 0.1, -2.0


def _iter_candidates(
    text: str, matches: Sequence[TermMatch], length: int, heading: _TitleMatcher | None
) -> Iterator[tuple[Passage, frozenset[str]]]:
    """Yield passages with a match, each with its terms."""
    borders = _borders_near_matches(text, matches)
    start, end, after = 0, -1, -1
    for number, (begin, stop, _) in enumerate(matches):
        if begin < after:
            continue
        if begin >= end:
            start, end = _find_sentence(text, begin, stop, borders, heading)
        a, b, whole = _fit_sentence(text, start, end, begin, length)
        after = b if whole else begin + length // 4  # the next passage of this sentence
        first = last = number
        while first and matches[first - 1][0] >= a:
            first -= 1
        while last < len(matches) and matches[last][1] <= b:
            last += 1
        inside = [term for start_of_word, _, term in matches[first:last] if start_of_word >= a]
        if not inside:  # the match is in a title at the start of the sentence
            continue
        terms = frozenset(inside)
        value = len(terms) + _REPEAT_BONUS * min(len(inside) - len(terms), 3)
        if any(one[2] != two[2] and 0 < two[0] - one[1] <= 2 for one, two in pairwise(matches[first:last])):
            value += _ADJACENT_BONUS
        if _is_prose(text[a:b], whole):
            value += _PROSE_BONUS
        passage = Passage(a, b, whole, value)
        if _is_title_only(text, passage, heading):
            passage = passage._replace(score=value + _TITLE_PENALTY)
        yield passage, terms


def _is_title_only(text: str, passage: Passage, heading: _TitleMatcher | None) -> bool:
    """Return whether a passage has nothing but the title."""
    if heading is None:
        return False
    return len(_normalize(heading.remove_from(text[passage.start : passage.end]))) < _MIN_SENTENCE_LENGTH


def _borders_near_matches(text: str, matches: Sequence[TermMatch]) -> list[int]:
    """Return the starts of sentences and lines near the matches."""
    if not matches:
        return []
    low, high = max(0, matches[0][0] - _SENTENCE_REACH), min(len(text), matches[-1][1] + _SENTENCE_REACH)
    return [*_iter_borders(text, low, high)]


def _find_sentence(
    text: str, begin: int, stop: int, borders: list[int], heading: _TitleMatcher | None
) -> tuple[int, int]:
    """Return the span of the sentence or line with ``text[begin:stop]``, without a title at its start."""
    low, high = max(0, begin - _SENTENCE_REACH), min(len(text), stop + _SENTENCE_REACH)
    number = bisect_right(borders, begin)
    start = max(low, borders[number - 1]) if number else low
    number = bisect_left(borders, stop)
    end = min(high, borders[number]) if number < len(borders) else high
    if low and start == low:  # a sentence longer than the reach: start at a word
        start = text.find(" ", low, begin) + 1 or low
    while heading is not None and start < end:
        title_end = heading.match_end(text, start)
        if title_end <= start or text[title_end : title_end + 1].islower():
            break
        if title_end > begin and end - title_end < _MIN_SENTENCE_LENGTH:
            break
        start = title_end
    while start < begin and text[start].isspace():
        start += 1
    return start, start + len(text[start:end].rstrip())


def _iter_borders(text: str, low: int, high: int) -> Iterator[int]:
    """Yield the starts of sentences and lines of ``text[low:high]``, without the first."""
    last = low
    for match in _SENTENCE_END.finditer(text, low, high):
        at = match.end()
        following = text[at : at + 1]
        if match.group()[0] == "\n":
            if "a" <= following <= "z":  # a wrapped line
                continue
        elif text[match.start()] in ".!?…" and (
            following.islower() or (match.start() - last < _MIN_SENTENCE_LENGTH and "\n" not in match.group())
        ):
            continue
        yield at
        last = at


def _fit_sentence(text: str, start: int, end: int, begin: int, length: int) -> tuple[int, int, bool]:
    """Return the span of a sentence, truncated around ``begin`` to ``length`` characters; and whether it fits."""
    if end - start <= length:
        return start, end, True
    a = start if begin - start <= length - 2 * _CONTEXT else _word_start(text, begin - _CONTEXT, begin)
    b = min(end, a + length)
    if b < end:
        space = text.rfind(" ", max(a, b - _CONTEXT // 2), b)
        b = space if space > begin else b
    return a, b, b == end


def _extend_passage(text: str, passage: Passage, length: int) -> Passage:
    """Return a passage of prose extended by the following sentences, up to ``length`` characters."""
    start, end = passage.start, passage.end
    if passage.is_complete and _is_prose(text[start:end], True):
        for border in [*_iter_borders(text, start, min(len(text), start + length + _MIN_SENTENCE_LENGTH))]:
            if border > end + 1 and not text[end:border].isspace():
                if border - start > length or not _is_prose(text[end:border], True):
                    break
                end = start + len(text[start:border].rstrip())
    return passage._replace(end=end)


def _word_start(text: str, low: int, high: int) -> int:
    space = text.find(" ", low, min(high, low + _CONTEXT // 2))
    return space + 1 if space >= 0 else low


def _lead_passage(text: str, length: int, heading: _TitleMatcher | None) -> Passage:
    """Return the first sentence of prose with the following text, else the start of the text."""
    lead = text[:_LEAD_CHARACTERS]
    start = 0
    for border in [*_iter_borders(lead, 0, len(lead)), len(lead)]:
        line = text[start:border].strip()
        is_title = heading is not None and heading.remove_from(line).strip() == ""
        if not is_title and _is_prose(line, True):
            break
        start = border
    else:
        start = 0
    start = _skip_title(text, start, heading)
    begin, end = start, min(len(text), start + length)
    if end < len(text):
        space = text.rfind(" ", max(begin, end - _CONTEXT // 2), end)
        end = space if space > begin else end
    return Passage(begin, end, end == len(text), 0.0)


def _skip_title(text: str, start: int, heading: _TitleMatcher | None) -> int:
    """Return the end of the titles that start at ``start``; ``start`` itself when nothing else follows."""
    at = start
    while heading is not None and (end := heading.match_end(text, at)) > at and not text[end : end + 1].islower():
        at = end
    return at if text[at : at + _MIN_SENTENCE_LENGTH].strip() else start


def _is_prose(text: str, is_complete: bool) -> bool:
    """Return whether a part of a text is prose, not a heading, a menu or a row of a table."""
    if len(_HAN.findall(text[:200])) >= 2 * _MIN_SENTENCE_LENGTH:
        return len(_CHINESE_PUNCTUATION.findall(text)) >= 1
    if is_complete and not text.rstrip().endswith(_FINAL_PUNCTUATION):
        return False
    words = _LETTERS.findall(text)
    return len(words) >= 6 and sum(word.islower() or not word.isascii() for word in words) >= 0.6 * len(words)


class _TitleMatcher:
    """Finds a title, or its first part, in a text, with the separators within and around it.

    It compares words instead of compiling a pattern, which would be the most expensive step of each hit.
    """

    def __init__(self, word_lists: list[list[str]]) -> None:
        self._word_lists = word_lists

    @classmethod
    def from_title(cls, title: str) -> _TitleMatcher | None:
        """Return the matcher of a title; None for a title of one word."""
        word_lists = []
        for part in dict.fromkeys([title, _TITLE_SEPARATOR.split(title.strip())[0]]):
            words = [word.lower() for word in _WORD.findall(part[:200])]
            if len(words) > 1 or (words and len(part) >= _MIN_SENTENCE_LENGTH):
                word_lists.append(words)
        return cls(word_lists) if word_lists else None

    def match_end(self, text: str, start: int) -> int:
        """Return the end of the title that starts at ``start``, -1 when it does not start there."""
        first = _skip_gap(text, start)
        for words in self._word_lists:
            at = first
            for number, word in enumerate(words):
                if number and (at := _skip_gap(text, gap := at)) == gap:
                    break
                if text[at : at + len(word)].lower() != word:
                    break
                at += len(word)
            else:
                return _skip_gap(text, at)
        return -1

    def remove_from(self, text: str) -> str:
        """Return a text with the title replaced by a space."""
        lowered = text.lower()
        if not any(words[0] in lowered for words in self._word_lists):
            return text
        kept, at = list[str](), 0
        for word in _WORD.finditer(text):
            if word.start() >= at and (end := self.match_end(text, word.start())) >= 0:
                kept += [text[at : word.start()].rstrip(), " "]
                at = end
        return "".join([*kept, text[at:]])


def _skip_gap(text: str, start: int) -> int:
    """Return the end of characters that belong to no word, after at most ``_MAX_GAP`` characters."""
    end = start
    while end < len(text) and end - start < _MAX_GAP and not (text[end].isalnum() or text[end] == "_"):
        end += 1
    return end


def _normalize(text: str) -> str:
    return " ".join(text.lower().split())
