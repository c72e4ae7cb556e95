r"""index-replace (Nutch 1): replacements in the fields of a document, by host or URL.

``index.replace.regexp`` has one rule per line::

    hostmatch=.*\.example\.org
    title=/\s+\|.*$//
    urlmatch=.*/archive/.*
    author:writer=/^by //2

``field=/pattern/replacement/flags``: the first character is the separator, and ``field:target`` writes to another
field. ``flags`` is a sum as in Java (2: ignore case, 8: multiline, 32: dot matches all, 4: comments). A line
``hostmatch`` or ``urlmatch`` limits the lines after it. Invalid lines are skipped with a warning.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from nutch2py.conf.configuration import Configuration
from nutch2py.interfaces import IndexingFilter
from nutch2py.records.document import NutchDocument
from nutch2py.records.record import RecordField
from nutch2py.records.webpage import WebPage
from nutch2py.support.reporting import warn
from nutch2py.url.regex.java_regex import compile_java, translate_replacement

_FLAGS = {2: "i", 4: "x", 8: "m", 32: "s"}


class FieldReplacement(NamedTuple):
    """A replacement in ``source`` that is written to ``target``; ``template`` is that of :func:`re.sub`."""

    source: str
    target: str
    pattern: re.Pattern[str]
    template: str


class ReplacementScope(NamedTuple):
    """Replacements for documents with a match of the pattern in ``field`` (host or url)."""

    field: str
    pattern: re.Pattern[str] | None
    replacements: list[FieldReplacement]


def parse_replacements(text: str) -> list[ReplacementScope]:
    """Return the scopes of a property's value, those by host first, in Nutch's order."""
    scopes: dict[tuple[str, str], ReplacementScope] = {}
    current = ("host", ".*")
    for line in text.splitlines():
        name, equals, value = line.strip().partition("=")
        name = name.strip()
        if not equals:
            continue
        if name in ("hostmatch", "urlmatch"):
            current = (name.removesuffix("match"), value)
            continue
        try:
            replacement = _parse_replacement(name, value)
            if current not in scopes:
                scopes[current] = ReplacementScope(current[0], compile_java(current[1]), [])
        except ValueError as error:
            warn(f"index.replace.regexp: skipping the line {line.strip()!r}: {error}")
            continue
        if replacement is not None:
            scopes[current].replacements.append(replacement)
    return sorted(scopes.values(), key=lambda scope: scope.field != "host")


def _parse_replacement(name: str, value: str) -> FieldReplacement | None:
    """Parse ``field`` and ``/pattern/replacement/flags``; None for a value that is too short."""
    if len(value) <= 3:
        return None
    source, colon, target = name.partition(":")
    separator, rest = value[0], value[1:]
    if separator not in rest:
        raise ValueError(f"the separator {separator} is missing")
    pattern, rest = rest.split(separator, 1)
    replacement, _, flags = rest.partition(separator)
    number = flags.strip()
    if number and not number.isdecimal():
        raise ValueError(f"flags must be a number, not {number!r}: write their sum")
    if not pattern.strip():
        raise ValueError("the pattern is empty")
    letters = "".join(letter for bit, letter in _FLAGS.items() if int(number or 0) & bit)
    compiled = compile_java(f"(?{letters}){pattern}" if letters else pattern)
    return FieldReplacement(source.strip(), target.strip() if colon else source.strip(), compiled,
                       translate_replacement(replacement, compiled.groups))  # fmt: skip


class ReplaceIndexer(IndexingFilter):
    """Replaces in the fields of earlier filters: put it last in ``indexingfilter.order``."""

    java_class = "org.apache.nutch.indexer.replace.ReplaceIndexer"
    fields: frozenset[RecordField] = frozenset()

    def __init__(self, conf: Configuration) -> None:
        self.scopes = parse_replacements(conf.get("index.replace.regexp") or "")

    def filter(self, document: NutchDocument, url: str, page: WebPage) -> NutchDocument | None:
        """Apply the replacements of every matching scope."""
        for scope in self.scopes:
            for value in [*document.values(scope.field)]:
                if scope.pattern is None or scope.pattern.search(value):
                    for replacement in scope.replacements:
                        _apply_replacement(document, replacement)
        return document


def _apply_replacement(document: NutchDocument, replacement: FieldReplacement) -> None:
    if replacement.source not in document:
        return
    values = [replacement.pattern.sub(replacement.template, value) for value in document.values(replacement.source)]
    document.remove(replacement.target)
    for value in values:
        document.add(replacement.target, value)
