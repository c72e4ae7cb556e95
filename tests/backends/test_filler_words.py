"""Filler words: function and question words of languages."""

from __future__ import annotations

import unicodedata

import pytest

from nutch2py.backends.analysis.filler_words import FILLER_LANGUAGES, filler_words, is_filler_word
from nutch2py.backends.analysis.stemming import LANGUAGE_CODES

QUESTIONS = {
    "en": "what is the", "de": "wer war welche wurde", "fr": "quelle est-ce que où", "es": "cuál qué dónde",
    "it": "quando dove perché", "pt": "qual onde quem", "nl": "wat welke waarom", "sv": "vad vilka när",
    "da": "hvad hvilken hvornår", "no": "hva hvilke hvor", "fi": "mikä miksi milloin", "ru": "какой когда почему",
    "pl": "który kiedy dlaczego", "cs": "který kdy proč", "tr": "hangi nasıl neden", "el": "ποιος πότε γιατί",
    "ar": "ما متى أين كيف", "fa": "چرا کجا چگونه", "he": "מה מתי איפה", "hi": "क्या कब कौन", "zh": "什么 哪里 谁",
    "ja": "何 いつ どこ", "ko": "무엇 언제 어디", "th": "อะไร ใคร ทำไม", "vi": "gì nào bao", "id": "apa siapa kapan",
}  # fmt: skip


@pytest.mark.parametrize(("code", "words"), QUESTIONS.items())
def test_question_words_are_filler_words(code: str, words: str) -> None:
    assert [word for word in words.split() if not is_filler_word(word, [code])] == []


def test_every_language_with_rules_has_a_list() -> None:
    assert LANGUAGE_CODES <= FILLER_LANGUAGES
    for code in FILLER_LANGUAGES:
        assert len(filler_words(code)) > 70, code
        assert all(word == unicodedata.normalize("NFC", word.lower()) for word in filler_words(code)), code


@pytest.mark.parametrize("word", ["Versicherung", "Auto", "casting", "дом", "数据库", "検索", "검색", "find", "C"])
def test_subject_words_are_not_filler_words(word: str) -> None:
    assert not is_filler_word(word, FILLER_LANGUAGES)


def test_language_tag_and_unknown_language() -> None:
    assert filler_words("pt-BR") == filler_words("pt")
    assert filler_words("nb") == filler_words("no")
    assert filler_words("xx") == frozenset()
