"""Hosts and URLs for people: Unicode where it cannot deceive, ``xn--`` where it could.

Browsers have the same rule (UTS 39, highly restrictive profile): the letters of a label have one script, or the scripts
of Chinese, Japanese or Korean with or without Latin. A label of nothing but letters that look like Latin ones stays
``xn--`` as well, unless the top-level domain has its script. Stored data is unchanged: only what is printed goes
through this module.

Exports: ``display_host``, ``display_url``, ``host_forms``.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import cache
from urllib.parse import unquote

from nutch2py.support.bounded_cache import bounded_cache
from nutch2py.url.idn import convert_host_by_uts46

_PERCENT_ENCODED = re.compile("(?:%[89A-Fa-f][0-9A-Fa-f])+")
_URL = re.compile(r"([a-z][a-z0-9+.\-]*://(?:[^/?#@]*@)?)([^/?#@:\[\]\\]+)(.*)", re.IGNORECASE | re.DOTALL)
_STARTS_WITH_NUMBER = re.compile(r"[^0-9A-Za-z]*[0-9]")

# Scripts in general use (UAX 31, table 5); the others are historic, or known to few readers.
_SCRIPTS = (
    "Arabic", "Armenian", "Bengali", "Cyrillic", "Devanagari", "Ethiopic", "Georgian", "Greek", "Gujarati", "Gurmukhi",
    "Hebrew", "Kannada", "Khmer", "Lao", "Malayalam", "Myanmar", "Oriya", "Sinhala", "Tamil", "Telugu", "Thaana",
    "Thai", "Tibetan",
)  # fmt: skip
_COMBINED_SCRIPTS = (
    ("Latin", "Han", "Hiragana", "Katakana"),
    ("Latin", "Han", "Bopomofo"),
    ("Latin", "Han", "Hangul"),
)
# Letters of other scripts that look like those of Latin: a label of nothing else can be read as another name.
_LATIN_LOOKALIKES = {
    "Cyrillic": frozenset("асԁеһіјӏорԛѕԝхуүѵгпѡҽ"),
    "Greek": frozenset("αγηικνορτυχωϲϳ"),
    "Armenian": frozenset("ագզլհյնոսւցքօ"),
}
# Latin letters that few languages have and that look like others: phonetic letters, clicks (ǃ), modifiers.
_RARE_LATIN = re.compile(
    "[\u01c0-\u01c3\u0250-\u0258\u025a-\u02ba\u02bd-\u02ff\u1d00-\u1dbf\u2c60-\u2c7f\ua720-\ua7ff]"
)
_LETTER_MARK_OR_DIGIT = frozenset({"Ll", "Lo", "Lm", "Mn", "Mc", "Nd"})
# Punctuation of names: of Catalan (col·legi), Hebrew, Tibetan and Japanese
_NAME_PUNCTUATION = re.compile("(?<=l)\u00b7(?=l)|(?<=[\u05d0-\u05ea])[\u05f3\u05f4]|\u0f0b|\u30fb|-|_")
# Kana that look like a stroke or a dot between Latin letters
_STROKE_IN_LATIN = re.compile(
    "[0-9a-z][\u30ce\u30bd\u30be\u30f3\u30fb\u30fc\u4e36\u4e3f]|[\u30ce\u30fb\u30fc\u4e36\u4e3f][0-9a-z]"
)
_REPEATED_MARK = re.compile("([\u0300-\u036f])\\1")


def display_host(host: str) -> str:
    """Return a host for people: in Unicode if that cannot deceive, otherwise with ``xn--`` labels.

    >>> [display_host(host) for host in ("xn--mnchen-3ya.de", "xn--pple-43d.com", "xn--80ak6aa92e.com", "a.b")]
    ['münchen.de', 'xn--pple-43d.com', 'xn--80ak6aa92e.com', 'a.b']
    """
    return host if host.isascii() and "xn--" not in host.lower() else _to_displayed_host(host)


def host_forms(host: str) -> tuple[str, ...]:
    """Return the forms of a host by which people look for it: as it is, for people, and with ``xn--`` labels.

    >>> host_forms("a.test"), host_forms("xn--mnchen-3ya.de"), host_forms("münchen.de")
    (('a.test',), ('xn--mnchen-3ya.de', 'münchen.de'), ('münchen.de', 'xn--mnchen-3ya.de'))
    """
    if host.isascii() and "xn--" not in host:
        return (host,)
    return tuple(dict.fromkeys((host, display_host(host), _to_ascii(host))))


def display_url(url: str) -> str:
    """Return a URL for people: a host as :func:`display_host`, letters percent-decoded if they are left-to-right.

    A host of Arabic or Hebrew letters stays ``xn--`` before a number, which would be shown on its other side.

    >>> display_url("http://xn--mnchen-3ya.de/%E5%8C%97%E4%BA%AC?x=%26%20"), display_url("http://a/%E2%80%AE")
    ('http://münchen.de/北京?x=%26%20', 'http://a/%E2%80%AE')
    """
    match = _URL.fullmatch(url)
    if match is not None:
        before, host, after = match.groups()
        shown = display_host(host)
        if not shown.isascii() and _STARTS_WITH_NUMBER.match(after) and any(map(_is_right_to_left, shown)):
            shown = _to_ascii(host)
        url = f"{before}{shown}{after}"
    return _PERCENT_ENCODED.sub(_decode_letters, url)


def _is_right_to_left(character: str) -> bool:
    return unicodedata.bidirectional(character) in {"R", "AL"}


def _decode_letters(match: re.Match[str]) -> str:
    text = unquote(match.group(), errors="replace")
    safe = text.isalpha() and all(unicodedata.bidirectional(letter) == "L" for letter in text)
    return text if safe else match.group()


def _to_ascii(host: str) -> str:
    try:
        return convert_host_by_uts46(host)
    except ValueError:
        return host


@bounded_cache(4096)
def _to_displayed_host(host: str) -> str:
    try:
        ascii_host = convert_host_by_uts46(host)
        labels = [
            label[4:].encode("ascii").decode("punycode") if label.startswith("xn--") else label
            for label in ascii_host.split(".")
        ]
    except ValueError:
        return host
    top_level = next((label for label in reversed(labels) if label), "")
    return ".".join(labels) if all(_is_unambiguous(label, top_level) for label in labels) else ascii_host


def _is_unambiguous(label: str, top_level: str) -> bool:
    """Return whether readers of the label's language cannot take it for another label."""
    if label.isascii():
        return True
    rest = _NAME_PUNCTUATION.sub("", label)
    if not all(unicodedata.category(c) in _LETTER_MARK_OR_DIGIT for c in rest) or _RARE_LATIN.search(label):
        return False
    if (
        _REPEATED_MARK.search(unicodedata.normalize("NFD", label))
        or len({ord(c) - unicodedata.decimal(c) for c in label if c.isdecimal()}) > 1
    ):
        return False
    if not _has_allowed_scripts(label) or _STROKE_IN_LATIN.search(label):
        return False
    letters = {c for c in label if c.isalpha()}
    return not any(
        letters <= lookalikes and not _has_script(script, top_level) for script, lookalikes in _LATIN_LOOKALIKES.items()
    )


@cache
def _script_matchers() -> tuple[Callable[[str], object], ...]:
    """Return the patterns of labels of one script, and of scripts that are allowed together."""
    import regex

    script_sets = (*((script,) for script in _SCRIPTS), *_COMBINED_SCRIPTS)
    shared = r"\p{sc=Common}\p{sc=Inherited}"
    return tuple(
        regex.compile("[" + shared + "".join(rf"\p{{scx={script}}}" for script in scripts) + "]+").fullmatch
        for scripts in script_sets
    )


def _has_allowed_scripts(label: str) -> bool:
    return any(matches(label) for matches in _script_matchers())


def _has_script(script: str, label: str) -> bool:
    return not label.isascii() and bool(_script_matchers()[_SCRIPTS.index(script)](label))
