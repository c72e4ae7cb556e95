"""The names of the Java exceptions in a stack trace, which is all that a Java server sends of their types."""

from __future__ import annotations

import re
from functools import lru_cache

_CLASS_NAME = r"(?:[A-Za-z_][\w$]*\.)*[A-Z][\w$]*(?:Exception|Error)"
_THROWN = re.compile(
    rf"""^(?:[ \t]*(?:Caused\ by|Suppressed):\ )?       # a throwable, a cause of it
    (?:\S+\(({_CLASS_NAME})\)|({_CLASS_NAME}))(?=:|\s|$)          # also RemoteException(the class that the server threw)
    """,
    re.MULTILINE | re.VERBOSE,
)
_NESTED = re.compile(rf"(?:\S+\(({_CLASS_NAME})\)|({_CLASS_NAME}))(?=:|\s|$)")
_DATE = r"(?:\d{4}-\d\d-\d\dT|[A-Z][a-z]{2} [A-Z][a-z]{2} \d\d )[^\n,]*"
_ATTEMPT = re.compile(rf"^{_DATE}(?:,[^\n]*?)?, ({_CLASS_NAME})(?=:|\s|$)", re.MULTILINE)
_ACTIONS = re.compile(rf"(?:\bFailed \d+ actions?: |: \d+ times?, )({_CLASS_NAME})(?=:|\s|$)")


@lru_cache(maxsize=64)
def find_java_exceptions(text: str) -> frozenset[str]:
    """Return the simple names of what was thrown, its causes, and what attempts in vain ended with.

    ``text`` is that of ``Throwable.printStackTrace``, or its first line. A name counts where Java and HBase write a
    class and nowhere else: at the begin of a line, after ``Caused by:``, after another class and its colon (a throwable
    made of its cause), in ``RemoteException(…)``, and in the lists of attempts and actions of HBase's
    RetriesExhaustedException and RetriesExhaustedWithDetailsException. So a row key or a message that holds such a word
    changes nothing.

    >>> sorted(java_exceptions("java.io.IOException: a.b.RemoteException(x.NotFoundException): in IllegalException"))
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
