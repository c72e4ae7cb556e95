"""Stopwords: function and question words of languages."""

from __future__ import annotations

import unicodedata

import pytest

from nutch2py.backends.analysis.stemming import STEMMER_NAMES
from nutch2py.backends.analysis.stopwords import STOPWORD_LANGUAGES, get_stopwords, is_stopword

QUESTIONS = {
    "en": "what is the", "de": "wer war welche wurde", "fr": "quelle est-ce que où", "es": "cuál qué dónde",
    "it": "quando dove perché", "pt": "qual onde quem", "nl": "wat welke waarom", "sv": "vad vilka när",
    "da": "hvad hvilken hvornår", "no": "hva hvilke hvor", "fi": "mikä miksi milloin", "ru": "какой когда почему",
    "pl": "który kiedy dlaczego", "cs": "který kdy proč", "tr": "hangi nasıl neden", "el": "ποιος πότε γιατί",
    "ar": "ما متى أين كيف", "fa": "چرا کجا چگونه", "he": "מה מתי איפה", "hi": "क्या कब कौन", "zh": "什么 哪里 谁",
    "ja": "何 いつ どこ", "ko": "무엇 언제 어디", "th": "อะไร ใคร ทำไม", "vi": "gì nào bao", "id": "apa siapa kapan",
}  # fmt: skip


@pytest.mark.parametrize(("code", "words"), QUESTIONS.items())
def test_question_words_are_stopwords(code: str, words: str) -> None:
    assert [word for word in words.split() if not is_stopword(word, [code])] == []


def test_every_language_of_the_index_stemmer_has_a_list() -> None:
    assert {*STEMMER_NAMES, "ja"} <= STOPWORD_LANGUAGES
    for code in STOPWORD_LANGUAGES:
        assert len(get_stopwords(code)) > 70, code
        assert all(word == unicodedata.normalize("NFC", word.lower()) for word in get_stopwords(code)), code


@pytest.mark.parametrize("word", ["Versicherung", "Auto", "casting", "дом", "数据库", "検索", "검색", "find", "C"])
def test_subject_words_are_not_stopwords(word: str) -> None:
    assert not is_stopword(word, STOPWORD_LANGUAGES)


def test_language_tag_and_unknown_language() -> None:
    assert get_stopwords("pt-BR") == get_stopwords("pt")
    assert get_stopwords("nb") == get_stopwords("no")
    assert get_stopwords("xx") == frozenset()
