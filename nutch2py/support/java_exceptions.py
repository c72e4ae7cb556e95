"""Names of the Java exceptions in a stack trace: a Java server sends no other form of their types."""

from __future__ import annotations

import re
from functools import lru_cache

_CLASS_NAME = r"(?:[A-Za-z_][\w$]*\.)*[A-Z][\w$]*(?:Exception|Error|Clauses)"  # Lucene has TooManyClauses
_THROWN = re.compile(
    rf"""^(?:[ \t]*(?:Caused\ by|Suppressed):\ )?       # a throwable, a cause of it
    (?:\S+\(({_CLASS_NAME})\)|({_CLASS_NAME}))(?=:|\s|$)  # also RemoteException(class thrown by the server)
    """,
    re.MULTILINE | re.VERBOSE,
)
_NESTED = re.compile(rf"(?:\S+\(({_CLASS_NAME})\)|({_CLASS_NAME}))(?=:|\s|$)")
_DATE = r"(?:\d{4}-\d\d-\d\dT|[A-Z][a-z]{2} [A-Z][a-z]{2} \d\d )[^\n,]*"
_ATTEMPT = re.compile(rf"^{_DATE}(?:,[^\n]*?)?, ({_CLASS_NAME})(?=:|\s|$)", re.MULTILINE)
_ACTIONS = re.compile(rf"(?:\bFailed \d+ actions?: |: \d+ times?, )({_CLASS_NAME})(?=:|\s|$)")


@lru_cache(maxsize=64)
def find_java_exceptions(text: str) -> frozenset[str]:
    """Return the simple names of the thrown exceptions, their causes, and the errors of failed attempts.

    ``text`` is that of ``Throwable.printStackTrace``, or its first line. Only positions where Java and HBase write a
    class count: the start of a line, after ``Caused by:``, after another class and its colon (a throwable constructed
    from its cause), in ``RemoteException(…)``, and the lists of attempts and actions of HBase's
    RetriesExhaustedException and RetriesExhaustedWithDetailsException. So a row key or message that contains such a
    name has no effect.

    >>> text = "java.io.IOException: a.b.RemoteException(x.NotFoundException): in IllegalException"
    >>> sorted(find_java_exceptions(text))
    ['IOException', 'NotFoundException', 'RemoteException']
    """
    found = set[str]()
    for match in _THROWN.finditer(text):
        at: re.Match[str] | None = match
        while at is not None:
            name = at[1] or at[2]
            found.add(_simple_name(name))
            if at[1]:
                found.add(_simple_name(at[0].partition("(")[0].rpartition(" ")[2]))
            at = _NESTED.match(text, at.end() + 2) if text.startswith(": ", at.end()) else None
    for pattern in (_ATTEMPT, _ACTIONS):
        found.update(_simple_name(match[1]) for match in pattern.finditer(text))
    return frozenset(found)


def _simple_name(name: str) -> str:
    return re.split(r"[.$]", name)[-1]
