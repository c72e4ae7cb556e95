"""Links as they are written in a page, read as browsers read them (URL standard, section 4.4)."""

from __future__ import annotations

import re

from nutch2py.parser.charset.encoding_names import escape_query

_NEEDS_CLEANING = re.compile(r"[\t\n\r\\]")
_REMOVED_CHARS = str.maketrans("", "", "\t\n\r")
_SCHEME = re.compile(r"\A[\x00-\x20]*+([a-z][a-z0-9+.-]*+):", re.IGNORECASE)


def clean_reference(raw: str, encoding: str = "utf-8") -> str:
    r"""Return a reference without what browsers take away or put right before they resolve it.

    Line ends and tabs within it go; of an address of the web, ``\`` is ``/`` up to the query, which is escaped in the
    page's ``encoding``. All else stays.

    >>> reference("a\\b\n c?d\\e"), reference(" http:\\\\h/"), reference("x:\\y")
    ('a/b c?d\\e', ' http://h/', 'x:\\y')
    """
    if raw.isascii() and raw.isprintable() and "\\" not in raw:  # as most are
        return raw
    if _NEEDS_CLEANING.search(raw):
        raw = raw.translate(_REMOVED_CHARS)
        scheme = _SCHEME.match(raw)
        if scheme is None or scheme[1].lower() in ("http", "https"):
            end = min((at for at in map(raw.find, "?#") if at >= 0), default=len(raw))
            raw = raw[:end].replace("\\", "/") + raw[end:]
    return escape_query(raw, encoding)
