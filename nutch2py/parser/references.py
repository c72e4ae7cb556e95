"""Links as they are written in a page, read as browsers read them (URL standard, section 4.4)."""

from __future__ import annotations

import re

from nutch2py.parser.charset_names import escape_query

_ODD = re.compile(r"[\t\n\r\\]")
_BROKEN = str.maketrans("", "", "\t\n\r")
_SCHEME = re.compile(r"\A[\x00-\x20]*+([a-z][a-z0-9+.-]*+):", re.IGNORECASE)


def reference(written: str, encoding: str = "utf-8") -> str:
    r"""Return a reference without what browsers take away or put right before they resolve it.

    Line ends and tabs within it go; of an address of the web, ``\`` is ``/`` up to the query, which is escaped in the
    page's ``encoding``. All else stays.

    >>> reference("a\\b\n c?d\\e"), reference(" http:\\\\h/"), reference("x:\\y")
    ('a/b c?d\\e', ' http://h/', 'x:\\y')
    """
    if written.isascii() and written.isprintable() and "\\" not in written:  # as most are
        return written
    if _ODD.search(written):
        written = written.translate(_BROKEN)
        scheme = _SCHEME.match(written)
        if scheme is None or scheme[1].lower() in ("http", "https"):
            end = min((at for at in map(written.find, "?#") if at >= 0), default=len(written))
            written = written[:end].replace("\\", "/") + written[end:]
    return escape_query(written, encoding)
