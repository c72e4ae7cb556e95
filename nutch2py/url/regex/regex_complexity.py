"""Estimates the worst-case time complexity of a regular expression in :mod:`re` without running it.

Rules with more than linear time in the length of a URL are reported when they are read (``urlfilter.regex.unsafe``),
since a page can contain a link that exploits them.

:mod:`re` backtracks: an expression that can match a text in several ways may try all of them before it fails. The time
of ``(a+)+$`` doubles with each character, that of ``a+b`` is quadratic. The position automaton of an expression
(Glushkov) shows this: the time is exponential if a word leads from a position back to itself in two ways, and
polynomial if a word leads from one loop to a later one and each loop back to itself. The start of a search counts as a
loop, since a match may start anywhere.

The estimate may be too high, for example after a lookahead. Repeats with an upper limit, such as ``{1,3}``, are not
counted as loops.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable
from enum import IntEnum
from functools import lru_cache
from typing import Any, NamedTuple

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError
from nutch2py.support.reporting import Reporter, current_reporter, warn

ParsedItem = tuple[object, Any]
"""An operation of :mod:`re`'s parser and its argument, the type of which depends on the operation."""
ParsedPattern = list[ParsedItem]

_parser: Any = importlib.import_module("re._parser")
_constants: Any = importlib.import_module("re._constants")

_CHARACTERS = 129  # ASCII, and one bit for all others
_ANY = (1 << _CHARACTERS) - 1
_END = 1 << _CHARACTERS  # pseudo-character for "$"
_MOST_POSITIONS, _MOST_STEPS, _MAX_COPIES, _MAX_LOOKAROUND_WIDTH = 400, 300_000, 4, 64


class RegexComplexity(IntEnum):
    """Worst-case time in the length of the URL."""

    LINEAR = 1
    POLYNOMIAL = 2
    """Quadratic or higher."""
    EXPONENTIAL = 3


@lru_cache(maxsize=4096)
def estimate_complexity(pattern: re.Pattern[str], fullmatch: bool = False) -> RegexComplexity:
    """Return the complexity of ``pattern.search``, or of ``pattern.fullmatch``; LINEAR for unusually long patterns."""
    tree = list(_parser.parse(pattern.pattern, pattern.flags & ~re.DEBUG))
    try:
        automaton = _GlushkovAutomaton(tree, pattern.flags, fullmatch)
        if automaton.is_exponential():
            return RegexComplexity.EXPONENTIAL
        return RegexComplexity.POLYNOMIAL if automaton.is_polynomial() else RegexComplexity.LINEAR
    except _TooLongError:
        return RegexComplexity.LINEAR


class _TooLongError(Exception):
    pass


class _Fragment(NamedTuple):
    """A part of the expression: whether it can be empty, and its first and last positions as bits."""

    empty: bool
    first: int
    last: int


_NOTHING = _Fragment(True, 0, 0)


class _GlushkovAutomaton:
    def __init__(self, tree: ParsedPattern, flags: int, fullmatch: bool) -> None:
        self.character_sets: list[int] = []  # per position, the characters that it matches
        self.follow: list[int] = []
        self.ambiguous_follows: set[tuple[int, int]] = set()  # with two edges
        self.groups: dict[int, tuple[ParsedPattern, int]] = {}
        while len(tree) == 1 and tree[0][0] == _constants.SUBPATTERN and tree[0][1][0] is None and not tree[0][1][2]:
            flags |= tree[0][1][1]
            tree = list(tree[0][1][3])
        begins = {_constants.AT_BEGINNING, _constants.AT_BEGINNING_STRING}
        anchored = bool(tree) and tree[0][0] == _constants.AT and tree[0][1] in begins
        searches = not fullmatch and not (anchored and not flags & re.MULTILINE)
        part = self._build_sequence(tree, flags)
        self.first = part.first
        # after a position where the expression may end, nothing fails and nothing is retried
        if fullmatch:
            done = [at for at in _bits(part.last) if self.character_sets[at] == _ANY and self.follow[at] >> at & 1]
        elif tree and tree[-1][0] == _constants.AT:
            done = []
        else:
            done = list(_bits(part.last))
        self.is_search = searches and not part.empty
        self.retried_positions = ~sum(1 << at for at in done)
        self.steps = 0

    def _add_position(self, characters: int) -> _Fragment:
        if len(self.character_sets) >= _MOST_POSITIONS:
            raise _TooLongError
        self.character_sets.append(characters)
        self.follow.append(0)
        bit = 1 << len(self.character_sets) - 1
        return _Fragment(False, bit, bit)

    def _add_follows(self, last: int, first: int) -> None:
        for at in _bits(last):
            self.ambiguous_follows |= {(at, to) for to in _bits(self.follow[at] & first)}
            self.follow[at] |= first

    def _build_sequence(self, tree: ParsedPattern, flags: int) -> _Fragment:
        whole = _NOTHING
        for item in tree:
            part = self._build(item, flags)
            self._add_follows(whole.last, part.first)
            whole = _Fragment(
                whole.empty and part.empty,
                whole.first | (part.first if whole.empty else 0),
                part.last | (whole.last if part.empty else 0),
            )
        return whole

    def _build(self, item: ParsedItem, flags: int) -> _Fragment:
        operation, argument = item
        if operation in _REPEATS:
            return self._build_repeat(operation, argument, flags)
        if operation == _constants.SUBPATTERN:
            group, added, removed, inside = argument
            flags = (flags | added) & ~removed
            if group is not None:
                self.groups[group] = (list(inside), flags)
            return self._build_sequence(list(inside), flags)
        if operation == _constants.BRANCH:
            parts = [self._build_sequence(list(branch), flags) for branch in argument[1]]
            return _Fragment(
                any(part.empty for part in parts), _union(part.first for part in parts), _union(p.last for p in parts)
            )
        if operation == _constants.ATOMIC_GROUP:
            return self._build_sequence(list(argument), flags)
        if operation in {_constants.ASSERT, _constants.ASSERT_NOT}:
            inside = argument[1]
            # a lookaround of a few characters has constant cost; a longer one is another way to match the text
            near = inside.getwidth()[1] <= _MAX_LOOKAROUND_WIDTH
            return _NOTHING if near else self._build_sequence(list(inside), flags)._replace(empty=True)
        if operation == _constants.GROUPREF:
            return self._build_sequence(*self.groups[argument]) if argument in self.groups else _NOTHING
        if operation == _constants.AT:
            ends = {_constants.AT_END, _constants.AT_END_STRING}
            return self._add_position(_END) if argument in ends else _NOTHING
        if operation == _constants.GROUPREF_EXISTS:
            raise _TooLongError
        return self._add_position(_characters(item, flags))

    def _build_repeat(self, operation: object, argument: Any, flags: int) -> _Fragment:
        least, most, inside = argument[0], argument[1], list(argument[2])
        endless = most == _constants.MAXREPEAT or (most > _MAX_COPIES and [item[0] for item in inside] not in _SINGLE)
        copies = max(min(least, _MAX_COPIES), 1) if endless else min(int(most), _MAX_COPIES)
        whole = _NOTHING
        for number in range(copies):
            part = self._build_sequence(inside, flags)
            if endless and number == copies - 1 and operation != _constants.POSSESSIVE_REPEAT:
                self._add_follows(part.last, part.first)
            elif endless and number == copies - 1:  # a possessive repeat does not backtrack, so its loop is harmless
                twice = set(self.ambiguous_follows)
                self._add_follows(part.last, part.first)
                self.ambiguous_follows = twice
            if number >= least:
                part = part._replace(empty=True)
            self._add_follows(whole.last, part.first)
            whole = _Fragment(
                whole.empty and part.empty,
                whole.first | (part.first if whole.empty else 0),
                part.last | (whole.last if part.empty else 0),
            )
        return whole

    def _next(self, at: int) -> int:
        return self.follow[at] & self.retried_positions

    def _find_loops(self) -> list[int]:
        """Return for each position the positions of its loops, as bits; 0 for none."""
        reach = [self._next(at) for at in range(len(self.character_sets))]
        for via in range(len(reach)):
            for at in range(len(reach)):
                if reach[at] >> via & 1:
                    reach[at] |= reach[via]
        return [
            _union(1 << to for to in _bits(found) if reach[to] >> at & 1) if found >> at & 1 else 0
            for at, found in enumerate(reach)
        ]

    def is_exponential(self) -> bool:
        """Return whether a word leads from a position back to itself in two ways."""
        loops = self._find_loops()
        if any(loops[at] >> to & 1 for at, to in self.ambiguous_follows if self.retried_positions >> at & 1):
            return True
        return any(loop and self._has_ambiguous_loop(at, loop) for at, loop in enumerate(loops))

    def _has_ambiguous_loop(self, start: int, loop: int) -> bool:
        """Search the pairs of positions that a word reaches from ``start`` for two different ones that return."""
        seen = {(start, start, False)}
        todo = [(start, start, False)]
        while todo:
            one, other, apart = todo.pop()
            for left in _bits(self._next(one) & loop):
                for right in _bits(self._next(other) & loop):
                    self._count_step()
                    if not self.character_sets[left] & self.character_sets[right]:
                        continue
                    pair = (left, right, apart or left != right)
                    if pair == (start, start, True):
                        return True
                    if pair not in seen:
                        seen.add(pair)
                        todo.append(pair)
        return False

    def is_polynomial(self) -> bool:
        """Return whether a word leads from one loop, or the start of a search, to another, and both to themselves."""
        loops = self._find_loops()
        for at, loop in enumerate(loops):
            if not loop:
                continue
            if self.is_search and self._has_linked_loops(-1, at, 0, loop):
                return True
            if any(
                before and other != at and self._has_linked_loops(other, at, before, loop)
                for other, before in enumerate(loops)
            ):
                return True
        return False

    def _has_linked_loops(self, first: int, second: int, first_loop: int, second_loop: int) -> bool:
        """Search for a word from ``first`` to itself, from ``first`` to ``second``, and from ``second`` to itself."""
        start = (first, first, second)
        seen, todo = {start}, [start]
        while todo:
            one, way, two = todo.pop()
            for onward in _bits(self._next(two) & second_loop):
                for step in [
                    *_bits(self._next(way) if way >= 0 else self.first & self.retried_positions),
                    *([-1] if way < 0 else []),
                ]:
                    common = self.character_sets[onward] & (self.character_sets[step] if step >= 0 else _ANY)
                    if not common:
                        continue
                    for again in _bits(self._next(one) & first_loop) if first >= 0 else [-1]:
                        self._count_step()
                        if not common & (self.character_sets[again] if again >= 0 else _ANY):
                            continue
                        state = (again, step, onward)
                        if state == (first, second, second):
                            return True
                        if state not in seen:
                            seen.add(state)
                            todo.append(state)
        return False

    def _count_step(self) -> None:
        self.steps += 1
        if self.steps > _MOST_STEPS:
            raise _TooLongError


_REPEATS = {_constants.MAX_REPEAT, _constants.MIN_REPEAT, _constants.POSSESSIVE_REPEAT}
_SINGLE = ([_constants.LITERAL], [_constants.NOT_LITERAL], [_constants.IN], [_constants.ANY])


def _bits(value: int) -> list[int]:
    found = []
    while value:
        lowest = value & -value
        found.append(lowest.bit_length() - 1)
        value ^= lowest
    return found


def _union(values: Any) -> int:
    found = 0
    for value in values:
        found |= value
    return found


def _characters(item: ParsedItem, flags: int) -> int:
    """Return the characters that a node matches, as bits."""
    operation, argument = item
    if operation == _constants.ANY:
        return _ANY if flags & re.DOTALL else _ANY & ~(1 << ord("\n"))
    if operation == _constants.NOT_LITERAL:
        return _ANY & ~_folded(_bit(argument), flags)
    if operation == _constants.LITERAL:
        return _folded(_bit(argument), flags)
    if operation != _constants.IN:
        raise _TooLongError
    found, negated = 0, False
    for kind, value in argument:
        if kind == _constants.NEGATE:
            negated = True
        elif kind == _constants.LITERAL:
            found |= _bit(value)
        elif kind == _constants.RANGE:
            found |= _union(_bit(code) for code in range(value[0], min(value[1], _CHARACTERS - 1) + 1)) | _bit(value[1])
        else:
            found |= _category(str(value))
    found = _folded(found, flags)
    other = 1 << _CHARACTERS - 1  # a class and its complement may both contain non-ASCII characters
    return _ANY & ~found | other if negated else found


def _bit(code: int) -> int:
    return 1 << min(code, _CHARACTERS - 1)


def _folded(characters: int, flags: int) -> int:
    if not flags & re.IGNORECASE:
        return characters
    cased = _union(_bit(ord(chr(code).swapcase())) for code in _bits(characters) if code < _CHARACTERS - 1)
    return characters | cased


@lru_cache(maxsize=16)
def _category(name: str) -> int:
    letter = {"DIGIT": "d", "SPACE": "s", "WORD": "w"}[name.rpartition("_")[2]]
    test = re.compile(f"\\{letter.upper() if '_NOT_' in name else letter}", re.ASCII)
    return _union(1 << code for code in range(_CHARACTERS - 1) if test.match(chr(code))) | 1 << _CHARACTERS - 1


def check_regex_complexity(
    conf: Configuration, name: str, patterns: Iterable[tuple[str, re.Pattern[str]]], *, fullmatch: bool = False
) -> None:
    """Report the patterns with more than linear time, by ``urlfilter.regex.unsafe``: ``warn`` or ``refuse``.

    Args:
        conf: The configuration.
        name: Name of the rule file.
        patterns: Pairs of a location, such as ``line 7``, and a pattern.
        fullmatch: The patterns must match the whole URL.

    Raises:
        ConfigurationError: The property is ``refuse`` and a pattern takes more than linear time.
    """
    mode = conf.get_trimmed("urlfilter.regex.unsafe", "warn").lower()
    if mode not in {"warn", "refuse"}:
        raise ConfigurationError(f"property urlfilter.regex.unsafe is {mode!r}: set it to warn or refuse")
    estimates = [(location, estimate_complexity(pattern, fullmatch)) for location, pattern in patterns]
    for complexity, problem in _COMPLEXITY_MESSAGES:
        locations = ", ".join(location for location, found in estimates if found == complexity)
        if locations and mode == "refuse":
            raise ConfigurationError(
                f"{name}, {locations}: {problem}: {_REMEDY}, or set urlfilter.regex.unsafe to warn"
            )
        if locations:
            _warn_once(current_reporter(), f"{name}, {locations}: {problem}: {_REMEDY}")


_COMPLEXITY_MESSAGES = (
    (RegexComplexity.EXPONENTIAL, "the time that the expression takes can double with each character of a URL"),
    (RegexComplexity.POLYNOMIAL, "the time that the expression takes can grow with the square of a URL's length"),
)
_REMEDY = "let no two repeats read the same text, begin with ^, or give repeats a bound"


@lru_cache(maxsize=1024)
def _warn_once(reporter: Reporter | None, message: str) -> None:
    """Log a warning once per reporter: every scope and task of a process reads the same files."""
    del reporter
    warn(message)
