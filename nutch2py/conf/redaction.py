"""Redacts secrets in messages, logs and pages.

A property is secret by its name (:func:`is_secret`), so this covers properties of plug-ins, too. Logins in URLs are
always secret.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

MASK = "********"
_SECRET_NAME = re.compile(
    r"(?:^|.*[._-])(?:"
    r"[a-z]*pass(?:word|wd|phrase)?|pwd|[a-z]*secret(?:[._-]?key)?|[a-z]*token|[a-z]*credentials?"
    r"|api[._-]?key|access[._-]?key|private[._-]?key|auth[._-]users|auth[._-]header[._-]value|cookies?"
    r")",
    re.IGNORECASE,
)
_USER_INFO = re.compile(r"(?<=://)[^\s/?#]*@")
_ADDRESS = re.compile(r"(\w+://)?(?:[^\s,]*@)?([^\s,]*)")
_LOGIN = re.compile(r"(?<![^\s,;=])[^\s,;:=@/]+:[^\s,;/]*@")
_MIN_SECRET_LENGTH = 4
"""Minimum length of a secret that is replaced inside texts: shorter ones occur in any text."""


def is_secret(name: str) -> bool:
    """Return whether a property, or a parameter of index-writers.xml, holds a secret.

    >>> is_secret("solr.auth.password"), is_secret("restapi.auth.users"), is_secret("solr.auth.username")
    (True, True, False)
    """
    return _SECRET_NAME.fullmatch(name.strip()) is not None


def redact_address(text: str) -> str:
    """Return an address, or a text with addresses, without user names and passwords.

    >>> redact_address("http://me:secret@host:8983/solr"), redact_address("me:secret@host/solr")
    ('http://host:8983/solr', 'host/solr')
    """
    address = _ADDRESS.fullmatch(text)  # everything before the last @, well-formed or not
    return f"{address[1] or ''}{address[2]}" if address else _USER_INFO.sub("", text)


def redact_property(name: str, value: str) -> str:
    """Return the value of a property for display.

    >>> redact_property("ftp.password", "x"), redact_property("solr.server.url", "http://a:b@c/d,http://a:b@e/f")
    ('********', 'http://c/d,http://e/f')
    """
    if is_secret(name):
        return MASK if value else ""
    if "@" not in value:
        return value
    return ",".join(
        redact_address(part) if "://" in part and "://" not in part.partition("://")[2] else _LOGIN.sub("", part)
        for part in value.split(",")
    )


def redact(text: str, secrets: Iterable[str]) -> str:
    """Return a foreign text (a library's error, a traceback) without ``secrets`` and logins."""
    for secret in sorted({each for each in secrets if len(each) >= _MIN_SECRET_LENGTH}, key=len, reverse=True):
        text = text.replace(secret, MASK)
    return _USER_INFO.sub("", text)
