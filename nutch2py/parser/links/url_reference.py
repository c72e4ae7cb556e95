"""Cleans link references as browsers do (URL standard, section 4.4)."""

from __future__ import annotations

import re

from nutch2py.parser.charset.encoding_names import escape_query

_NEEDS_CLEANING = re.compile(r"[\t\n\r\\]")
_REMOVED_CHARS = str.maketrans("", "", "\t\n\r")
_SCHEME = re.compile(r"\A[\x00-\x20]*+([a-z][a-z0-9+.-]*+):", re.IGNORECASE)


def clean_reference(raw: str, encoding: str = "utf-8") -> str:
    r"""Return a reference with the corrections that browsers make before they resolve it.

    Removes line ends and tabs. In http and https references ``\`` becomes ``/`` up to the query, which is escaped in
    the page's ``encoding``.

    >>> clean_reference("a\\b\n c?d\\e"), clean_reference(" http:\\\\h/"), clean_reference("x:\\y")
    ('a/b c?d\\e', ' http://h/', 'x:\\y')
    """
    if raw.isascii() and raw.isprintable() and "\\" not in raw:  # most references need no cleaning
        return raw
    if _NEEDS_CLEANING.search(raw):
        raw = raw.translate(_REMOVED_CHARS)
        scheme = _SCHEME.match(raw)
        if scheme is None or scheme[1].lower() in ("http", "https"):
            end = min((at for at in map(raw.find, "?#") if at >= 0), default=len(raw))
            raw = raw[:end].replace("\\", "/") + raw[end:]
    return escape_query(raw, encoding)
