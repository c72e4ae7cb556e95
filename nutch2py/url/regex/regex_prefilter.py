"""Builds prefilters: cheap tests for required literals that show for most URLs that a rule cannot match.

The rules of a crawl search for rare texts, such as session ids or image suffixes, but each one scans every URL. This
module extracts literals from the parsed expression of which a match must contain one, start with one or end with one,
and a minimum number of slashes. A prefilter may pass URLs that do not match, but never rejects a match.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from nutch2py.url.regex.regex_complexity import ParsedItem, ParsedPattern

_MAX_CHOICES = 64
_parser: Any = importlib.import_module("re._parser")
_constants: Any = importlib.import_module("re._constants")
_LITERAL, _IN, _RANGE = _constants.LITERAL, _constants.IN, _constants.RANGE
_BRANCH, _SUBPATTERN, _AT = _constants.BRANCH, _constants.SUBPATTERN, _constants.AT
_REPEATS = {_constants.MAX_REPEAT, _constants.MIN_REPEAT, _constants.POSSESSIVE_REPEAT}
_GROUPREF = _constants.GROUPREF

Prefilter = Callable[[str, str], bool]
"""Called with a URL and its lower-case form; returns False if the pattern cannot match it."""


class RequiredLiterals(NamedTuple):
    """Requirements of a match: one of ``words`` (at its start or end if anchored), and at least ``slashes`` slashes."""

    words: tuple[str, ...] | None
    at_start: bool
    at_end: bool
    slashes: int


def build_prefilter(pattern: re.Pattern[str]) -> Prefilter:
    """Return the prefilter of a pattern that is used with ``search``."""
    need = _required_literals(pattern)
    words, slashes = need.words, need.slashes
    if words is not None and need.at_end:
        with_newline = (*words, *(f"{word}\n" for word in words))  # "$" also matches before a last newline
        return lambda _url, low: low.endswith(with_newline)
    if words is not None and need.at_start:
        return lambda _url, low: low.startswith(words)
    if words is not None and len(words) == 1:
        (word,) = words
        return lambda _url, low: word in low
    if words is not None:
        return lambda _url, low: any(map(low.__contains__, words))
    if slashes > 2:  # every URL has two
        return lambda url, _low: url.count("/") >= slashes
    return _may_always_match


def _may_always_match(_url: str, _low: str) -> bool:
    return True


def _required_literals(pattern: re.Pattern[str]) -> RequiredLiterals:
    tree = list(_parser.parse(pattern.pattern, pattern.flags & ~re.DEBUG))
    while len(tree) == 1 and tree[0][0] == _SUBPATTERN:
        tree = list(tree[0][1][3])
    slashes = _count_slashes(tree, {})
    if pattern.flags & re.MULTILINE or re.search(r"\(\?[a-z]*m", pattern.pattern):
        return RequiredLiterals(_best_words(tree), False, False, slashes)
    if tree and tree[-1] == (_AT, _constants.AT_END):
        tail = _suffix_choices(tree[:-1])
        if tail is not None:
            return RequiredLiterals(tail, False, True, slashes)
    if tree and tree[0][0] == _AT and tree[0][1] in {_constants.AT_BEGINNING, _constants.AT_BEGINNING_STRING}:
        head = next(iter(_runs(tree[1:], stop_at_first=True)), None)
        if head is not None:
            return RequiredLiterals(tuple(sorted(head)), True, False, slashes)
    return RequiredLiterals(_best_words(tree), False, False, slashes)


def _suffix_choices(tree: ParsedPattern) -> tuple[str, ...] | None:
    """Return the possible suffixes of a sequence."""
    for start in range(len(tree)):
        choices = _choices(tree[start:])
        if choices is not None and all(choices):
            return tuple(sorted(choices))
    return None


def _best_words(tree: ParsedPattern) -> tuple[str, ...] | None:
    """Return the choices that are probably the rarest: few and long ones."""
    best: set[str] | None = None
    for run in _runs(tree):
        words = _minimal_words(run)
        # texts in every URL are useless
        if any(word in "https://www." for word in words):
            continue
        if best is None or (len(words), -min(map(len, words))) < (len(best), -min(map(len, best))):
            best = words
    return None if best is None or len(best) > 12 else tuple(sorted(best))


def _minimal_words(words: set[str]) -> set[str]:
    """Drop words that contain another word of the set."""
    return {word for word in words if not any(other != word and other in word for other in words)}


def _runs(tree: ParsedPattern, stop_at_first: bool = False) -> Iterator[set[str]]:
    """Yield the choices of each part of a sequence with few choices; every match contains one of each."""
    run: set[str] = {""}
    for item in tree:
        choices = _choices([item])
        product = None if choices is None or len(run) * len(choices) > _MAX_CHOICES else _product(run, choices)
        if product is not None:
            run = product
            continue
        if all(run):
            yield run
        if stop_at_first:
            return
        run = {""}
        if choices is not None and len(choices) <= _MAX_CHOICES:
            run = choices
        elif choices is None:
            yield from _inner_runs(item)
    if all(run):
        yield run


def _inner_runs(item: ParsedItem) -> Iterator[set[str]]:
    """Yield the choices in a group, or in a repeat that matches at least once."""
    operation, argument = item
    if operation == _SUBPATTERN:
        yield from _runs(list(argument[3]))
    elif operation in _REPEATS and argument[0] >= 1:
        once = _choices(list(argument[2]))
        if once is not None and all(once):
            repeated = {""}
            for _ in range(min(argument[0], 4)):
                if len(repeated) * len(once) > _MAX_CHOICES:
                    break
                repeated = _product(repeated, once)
            yield repeated
        else:
            yield from _runs(list(argument[2]))


def _product(left: set[str], right: set[str]) -> set[str]:
    return {a + b for a in left for b in right}


def _choices(tree: ParsedPattern) -> set[str] | None:
    """Return all texts that a sequence can match, in lower case, or None if there are too many."""
    found: set[str] = {""}
    for item in tree:
        one = _choices_of(item)
        if one is None or len(found) * len(one) > _MAX_CHOICES:
            return None
        found = _product(found, one)
    return found


def _choices_of(item: ParsedItem) -> set[str] | None:
    operation, argument = item
    if operation == _LITERAL:
        return {chr(argument).lower()} if argument < 128 else None  # the lower case of others depends on the context
    if operation == _IN:
        return _characters(argument)
    if operation == _SUBPATTERN:
        return _choices(list(argument[3]))
    if operation == _BRANCH:
        branches = [_choices(list(branch)) for branch in argument[1]]
        united: set[str] = set()
        for branch in branches:
            if branch is None:
                return None
            united |= branch
        return united
    if operation in _REPEATS and argument[1] <= 3:
        once = _choices(list(argument[2]))
        return None if once is None else _repeat_choices(once, argument[0], argument[1])
    return None


def _repeat_choices(once: set[str], least: int, most: int) -> set[str] | None:
    run, found = {""}, {""} if least == 0 else set()
    for count in range(1, most + 1):
        run = _product(run, once)
        if len(run) > _MAX_CHOICES:
            return None
        if count >= least:
            found |= run
    return found


def _characters(items: ParsedPattern) -> set[str] | None:
    found: set[str] = set()
    for operation, argument in items:
        if operation == _LITERAL and argument < 128:
            found.add(chr(argument).lower())
        elif operation == _RANGE and argument[1] < 128 and argument[1] - argument[0] < 16:
            found |= {chr(code).lower() for code in range(argument[0], argument[1] + 1)}
        else:
            return None
    return found


def _count_slashes(tree: ParsedPattern, groups: dict[int, int]) -> int:
    """Return the minimum number of slashes of a match."""
    total = 0
    for operation, argument in tree:
        if operation == _LITERAL:
            total += argument == 47
        elif operation == _SUBPATTERN:
            inside = _count_slashes(list(argument[3]), groups)
            if argument[0] is not None:
                groups[argument[0]] = inside
            total += inside
        elif operation == _GROUPREF:
            total += groups.get(argument, 0)
        elif operation == _BRANCH:
            total += min(_count_slashes(list(branch), dict(groups)) for branch in argument[1])
        elif operation in _REPEATS:
            total += min(argument[0], 8) * _count_slashes(list(argument[2]), groups if argument[0] else dict(groups))
    return total
