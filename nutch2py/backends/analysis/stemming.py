"""Stemmers by language.

The words of a page are stemmed by the rules of its language (``lang``), or as English when it is unknown. The words of
a query are stemmed by the rules of every language of the index, because the language of a query is unknown.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import lru_cache

STEMMER_NAMES = {
    "ar": "arabic", "da": "danish", "de": "german", "el": "greek", "en": "english", "es": "spanish", "fi": "finnish",
    "fr": "french", "hu": "hungarian", "it": "italian", "nl": "dutch", "no": "norwegian", "pt": "portuguese",
    "ro": "romanian", "ru": "russian", "sv": "swedish", "ta": "tamil", "tr": "turkish",
}  # fmt: skip
"""Language code -> name of Snowball's stemmer, of those that tantivy has."""

MORE_STEMMER_NAMES = {
    "ca": "catalan", "cs": "czech", "eo": "esperanto", "et": "estonian", "eu": "basque", "fa": "persian", "ga": "irish",
    "hi": "hindi", "hy": "armenian", "id": "indonesian", "lt": "lithuanian", "ne": "nepali", "pl": "polish",
    "sr": "serbian", "yi": "yiddish",
}  # fmt: skip
"""Language code -> name of Snowball's stemmer in the package PyStemmer, since version 4 of the analysis."""

LANGUAGE_CODES = frozenset({*STEMMER_NAMES, *MORE_STEMMER_NAMES, "ja", "vi"})
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
    if code in MORE_STEMMER_NAMES:
        return _get_snowball_stemmer(MORE_STEMMER_NAMES[code])
    import tantivy

    raw, rules = tantivy.Tokenizer.raw(), tantivy.Filter.stemmer(STEMMER_NAMES[code])
    stem: Callable[[str], list[str]] = tantivy.TextAnalyzerBuilder(raw).filter(rules).build().analyze
    return lambda word: stem(word)[0]


@lru_cache(maxsize=64)
def get_batch_stemmer(code: str) -> Callable[[Sequence[str]], list[str]]:
    """Return a function that stems many lower-case words by the rules of a language in one call."""
    if code in MORE_STEMMER_NAMES:
        import Stemmer

        stem_words: Callable[[list[str]], list[str]] = Stemmer.Stemmer(MORE_STEMMER_NAMES[code], 0).stemWords
        lock = threading.Lock()  # a stemmer has one buffer

        def stem_all(words: Sequence[str]) -> list[str]:
            with lock:
                return stem_words([*words])

        return stem_all
    import tantivy

    spaces, rules = tantivy.Tokenizer.whitespace(), tantivy.Filter.stemmer(STEMMER_NAMES[code])
    analyze: Callable[[str], list[str]] = tantivy.TextAnalyzerBuilder(spaces).filter(rules).build().analyze
    return lambda words: analyze(" ".join(words))


def _get_snowball_stemmer(name: str) -> Callable[[str], str]:
    import Stemmer

    stem: Callable[[str], str] = Stemmer.Stemmer(name, 0).stemWord  # without a cache: terms are cached by the analyzer
    lock = threading.Lock()  # a stemmer has one buffer

    def stem_word(word: str) -> str:
        with lock:
            return stem(word)

    return stem_word
