"""Stemmers by language.

The words of a page are stemmed by the rules of its language (``lang``), or as English when it is unknown. The words of
a query are stemmed by the rules of every language of the index, because the language of a query is unknown.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

STEMMER_NAMES = {
    "ar": "arabic", "da": "danish", "de": "german", "el": "greek", "en": "english", "es": "spanish", "fi": "finnish",
    "fr": "french", "hu": "hungarian", "it": "italian", "nl": "dutch", "no": "norwegian", "pt": "portuguese",
    "ro": "romanian", "ru": "russian", "sv": "swedish", "ta": "tamil", "tr": "turkish",
}  # fmt: skip
"""Language code -> name of Snowball's stemmer."""

LANGUAGE_CODES = frozenset({*STEMMER_NAMES, "ja"})
"""Languages with analysis rules of their own. Korean and Chinese are recognised by their scripts."""

_CODE_ALIASES = {"nb": "no", "nn": "no"}


def analysis_language(lang: str | None) -> str:
    """Return the code among :data:`LANGUAGE_CODES` of a page's ``lang``; "en" for any other.

    >>> analysis_language("de-AT"), analysis_language("JA"), analysis_language("unknown"), analysis_language(None)
    ('de', 'ja', 'en', 'en')
    """
    code = (lang or "").strip().lower().replace("_", "-").partition("-")[0]
    code = _CODE_ALIASES.get(code, code)
    return code if code in LANGUAGE_CODES else "en"


@lru_cache(maxsize=64)
def get_stemmer(code: str) -> Callable[[str], str]:
    """Return a function that stems a lower-case word by the rules of a language."""
    import tantivy

    raw, rules = tantivy.Tokenizer.raw(), tantivy.Filter.stemmer(STEMMER_NAMES[code])
    stem: Callable[[str], list[str]] = tantivy.TextAnalyzerBuilder(raw).filter(rules).build().analyze
    return lambda word: stem(word)[0]
