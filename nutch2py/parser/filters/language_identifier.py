"""language-identifier: the language of a page, declared or detected from its text, offline.

Declared: the first ``lang`` attribute, ``dc.language`` and ``content-language`` meta tags, then the header
Content-Language (Nutch's HTMLLanguageParser). Detected: by CLD2 (package pycld2), else by py3langid; both packages
contain their models.
"""

from __future__ import annotations

import contextlib
import re
import unicodedata
from collections.abc import Callable
from functools import cache

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError
from nutch2py.interfaces import HtmlDocument, Parse, ParseFilter
from nutch2py.parser.html.dom import attribute_value
from nutch2py.records.record import RecordField
from nutch2py.records.webpage import WebPage
from nutch2py.support.reporting import warn

LANGUAGE_KEY = "language"
"""The metadata entry, named as in Nutch."""

_MIN_PROBABILITY, _CERTAIN_PROBABILITY = 0.2, 0.95  # of py3langid, among about 100 languages
_CODE_SEPARATOR = re.compile(r"[, ;.()=]")
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\ufdd0-\ufdef\ufffe\uffff\ud800-\udfff]+")
# ISO 639-2 codes (bibliographic and terminological) and obsolete or wrong codes, by ISO 639-1 code
_ISO_639_1_CODES = {
    code: short
    for short, codes in {
        "af": "afr", "ar": "ara", "be": "bel", "bg": "bul", "bn": "ben", "ca": "cat", "cs": "cze ces cz",
        "cy": "wel cym", "da": "dan dk", "de": "ger deu", "el": "gre ell gr", "en": "eng", "es": "spa", "et": "est",
        "eu": "baq eus", "fa": "per fas", "fi": "fin", "fr": "fre fra", "ga": "gle", "gl": "glg", "he": "heb iw",
        "hi": "hin", "hr": "hrv", "hu": "hun", "hy": "arm hye", "id": "ind in", "is": "ice isl", "it": "ita",
        "ja": "jpn jp", "ka": "geo kat", "ko": "kor", "la": "lat", "lt": "lit", "lv": "lav", "mk": "mac mkd",
        "ms": "may msa", "nb": "nob", "nl": "dut nld", "nn": "nno", "no": "nor", "pl": "pol", "pt": "por",
        "ro": "rum ron mo", "ru": "rus", "sk": "slo slk", "sl": "slv", "sq": "alb sqi", "sr": "srp scc", "sv": "swe",
        "ta": "tam", "th": "tha", "tr": "tur", "uk": "ukr ua", "ur": "urd", "vi": "vie", "yi": "yid ji",
        "zh": "chi zho cn zht zhs cmn",
    }.items()
    for code in codes.split()
}  # fmt: skip


def language_code(text: str | None) -> str | None:
    """Return the ISO 639-1 code of a declared language, None when it is not a language.

    >>> language_code("en-GB, de"), language_code("zh_CN"), language_code("deu"), language_code("none")
    ('en', 'zh', 'de', None)
    """
    for part in _CODE_SEPARATOR.split(text or ""):
        code = re.split("[-_]", part, maxsplit=1)[0].lower()
        if code in _ISO_639_1_CODES:
            return _ISO_639_1_CODES[code]
        if len(code) == 2 and code.isascii() and code.isalpha():
            return code
    return None


def identify_language(text: str, max_length: int = 2048, only_certain: bool = False) -> str | None:
    """Return the language of a text, None when the text is too short or mixed.

    Simplified and traditional Chinese are both ``zh``.

    Args:
        text: The text.
        max_length: Number of leading characters to use; 0 for all.
        only_certain: Return None unless the detector reports the result as reliable.
    """
    detect = load_detector()
    cleaned = _CONTROL.sub(" ", unicodedata.normalize("NFC", text[: max_length if max_length > 0 else None]))
    if not any(map(str.isalpha, cleaned)):
        return None
    code = detect(cleaned, only_certain)
    return None if code is None else _ISO_639_1_CODES.get(code, code.partition("-")[0])


@cache
def load_detector() -> Callable[[str, bool], str | None]:
    """Return a function from a text and ``only_certain`` to a language code or None.

    The result is cached; call ``load_detector.cache_clear()`` after the installed detectors have changed.
    """
    for load in (_load_cld2, _load_py3langid):
        with contextlib.suppress(ImportError):
            return load()
    raise ConfigurationError(
        "cannot identify the language of a text: neither pycld2 nor py3langid is installed. Install one, set "
        "lang.extraction.policy to detect, or remove language-identifier from plugin.includes"
    )


def _load_cld2() -> Callable[[str, bool], str | None]:
    import pycld2

    def detect(text: str, only_certain: bool) -> str | None:
        try:
            reliable, _, guesses = pycld2.detect(text, bestEffort=not only_certain)
        except pycld2.error:
            return None
        code: str = guesses[0][1]
        return None if code == "un" or (only_certain and not reliable) else code

    return detect


def _load_py3langid() -> Callable[[str, bool], str | None]:
    """Return the detector for Python 3.14 and later, which pycld2 does not support; it takes about 100 MB."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    identifier.set_languages([label for label in identifier.labels if len(label) == 2])

    def detect(text: str, only_certain: bool) -> str | None:
        code, probability = identifier.classify(text)
        return code if probability >= (_CERTAIN_PROBABILITY if only_certain else _MIN_PROBABILITY) else None

    return detect


@cache
def is_detector_available() -> bool:
    """Return whether languages can be identified; warn once when not."""
    try:
        load_detector()
    except ConfigurationError as error:
        warn(f"{error}; pages that do not declare their language get none")
        return False
    return True


class LanguagePolicy:
    """The properties ``lang.extraction.policy``, ``lang.analyze.max.length``, ``lang.identification.only.certain``."""

    def __init__(self, conf: Configuration) -> None:
        self.methods = conf.get_strings("lang.extraction.policy", ("detect", "identify"))
        unknown = set(self.methods) - {"detect", "identify"}
        if unknown:
            raise ConfigurationError(
                f"lang.extraction.policy has {min(unknown)!r}: write detect, identify or both in the order wanted"
            )
        if {*self.methods} == {"detect", "identify"} and not is_detector_available():
            self.methods = ["detect"]
        self.max_length = conf.get_int("lang.analyze.max.length", 2048)
        self.only_certain = conf.get_bool("lang.identification.only.certain", False)

    def choose_language(self, declared: str | None, text: str) -> str | None:
        """Return the language by the configured methods; ``declared``: the page's own declaration, if any."""
        for method in self.methods:
            found = declared if method == "detect" else identify_language(text, self.max_length, self.only_certain)
            if found:
                return found
        return None


class LanguageParseFilter(ParseFilter):
    """Sets the language of an HTML page in ``page.metadata``, entry ``language``."""

    java_class = "org.apache.nutch.analysis.lang.HTMLLanguageParser"
    fields: frozenset[RecordField] = frozenset({WebPage.metadata, WebPage.headers})

    def __init__(self, conf: Configuration) -> None:
        self.policy = LanguagePolicy(conf)

    def filter(self, url: str, page: WebPage, parse: Parse, document: HtmlDocument) -> Parse:
        """Set the entry, or remove the one of an earlier parse."""
        found = self.policy.choose_language(declared_language(page, document), f"{parse.title} {parse.text}")
        if found:
            page.metadata[LANGUAGE_KEY] = found.encode()
        else:
            page.metadata.pop(LANGUAGE_KEY, None)
        return parse


def declared_language(page: WebPage, document: HtmlDocument) -> str | None:
    """Return the language that a page declares."""
    node = document.tree.css_first("[lang]")
    declared: list[str | None] = [attribute_value(node.attributes, "lang")] if node is not None else []
    declared += document.meta.general.get("dc.language", [])
    declared.append(document.meta.http_equiv.get("content-language"))
    declared += [value for name, value in page.headers.decoded_items() if name.lower() == "content-language"]
    return next((code for code in map(language_code, declared) if code), None)
