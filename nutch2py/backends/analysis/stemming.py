"""Stemmers and stopwords by language.

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

_STOPWORD_LANGUAGES = frozenset({"da", "de", "en", "es", "fi", "fr", "hu", "it", "nl", "no", "pt", "ru", "sv"})
_CHINESE_STOPWORDS = frozenset(
    {
        *"的地得了着过是在和与及或而也都就把被让对从到吗呢吧啊呀嘛这那之其该",
        "一个", "一种", "这个", "那个", "什么", "怎么", "怎样", "如何", "为什么",
        "哪些", "哪个", "哪里", "请问", "有没有", "是否",
    }
)  # fmt: skip
"""Function words of Chinese sentences and questions, in folded form."""
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


@lru_cache(maxsize=64)
def _get_stopword_filter(code: str) -> Callable[[str], list[str]]:
    import tantivy

    raw, rules = tantivy.Tokenizer.raw(), tantivy.Filter.stopword(STEMMER_NAMES[code])
    kept: Callable[[str], list[str]] = tantivy.TextAnalyzerBuilder(raw).filter(rules).build().analyze
    return kept


def is_stopword(word: str, codes: frozenset[str]) -> bool:
    """Return whether a word is a stopword in one of the languages or in Chinese.

    >>> is_stopword("The", frozenset({"en"})), is_stopword("the", frozenset({"de"})), is_stopword("", frozenset())
    (True, False, False)
    >>> is_stopword("什么", frozenset())
    True
    """
    if word in _CHINESE_STOPWORDS:
        return True
    return any(not _get_stopword_filter(code)(word.lower()) for code in codes & _STOPWORD_LANGUAGES) if word else False
