"""Targets of Word fields ([ECMA-376] Part 1, 17.16; the same codes in doc, docx and RTF)."""

from __future__ import annotations

import re
from itertools import islice

_FIELD_TOKEN = re.compile(r'"((?:[^"\\]|\\.)*)"?|\\([a-z])|([^\s"\\]\S*)', re.IGNORECASE)
_SWITCHES_WITH_VALUE = frozenset("lot")  # switches of HYPERLINK with a value: bookmark, tooltip, frame
_MAX_TOKENS = 20
_MAX_CODE_CHARS = 5000


def find_field_target(code: str) -> str:
    r"""Return the URL or file that a field links to or includes from the web, "" for other fields.

    >>> find_field_target(r'HYPERLINK \o "a tip" "http://h.test/a" \l "b"'), find_field_target(r'HYPERLINK \l "_Toc1"')
    ('http://h.test/a', '')
    >>> find_field_target('INCLUDEPICTURE "http://h.test/a.png" \\d'), find_field_target('PAGEREF _Toc1')
    ('http://h.test/a.png', '')
    """
    words = [*islice(_FIELD_TOKEN.finditer(code[:_MAX_CODE_CHARS]), _MAX_TOKENS)]
    if not words:
        return ""
    links = (words[0][3] or "").upper() == "HYPERLINK"
    switch = ""
    for quoted, letter, plain in (word.groups() for word in words[1:]):
        if letter:
            switch = letter.lower()
            continue
        value = quoted.replace("\\\\", "\\") if quoted is not None else plain
        if links and switch not in _SWITCHES_WITH_VALUE:
            return value
        if not links and value.startswith(("http://", "https://")):
            return value
        switch = ""
    return ""
