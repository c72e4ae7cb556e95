"""Text analysis for the embedded index: the same words from a page and from a query.

Words of alphabetic scripts are lower-cased, stripped of accents and of the English possessive, and English ones stemmed
(Snowball); Chinese is segmented into words by jieba; scripts that write no spaces and have no dictionary here (Kana,
Thai, Lao, Khmer, Burmese) are cut into pairs of characters. Full-width forms count as their ASCII ones.

Changing what this module produces makes indexes that exist unreadable to it: raise :data:`ANALYSIS_VERSION` then.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Callable, Iterator
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from nutch2py.backends.characters import Characters
from nutch2py.conf import Configuration
from nutch2py.errors import ConfigurationError

if TYPE_CHECKING:
    from rjieba import Jieba

ANALYSIS_VERSION = 1

# one character for one, so that offsets into the text stay true
_WIDTHS = {0xFF01 + i: 0x21 + i for i in range(94)} | {0x3000: 0x20}
_WIDE = re.compile("[\uff01-\uff5e\u3000]")
_HAN = "\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_UNSPACED = (
    "\u3041-\u3096\u3099-\u309f\u30a1-\u30ff\u31f0-\u31ff\uff66-\uff9f\u0e01-\u0e3a\u0e40-\u0e5b"
    "\u0e80-\u0eff\u1000-\u109f\u1780-\u17ff"
)
# \w lacks the vowel signs and other marks that are part of words; ' and ’ join English contractions
_MARKS = (
    "\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u0610-\u061a\u064b-\u065f\u0670\u0900-\u0903\u093a-\u094f\u0980-\u0dff"
)
_LETTER = rf"(?:[^\W_{_HAN}{_UNSPACED}]|[{_MARKS}])"
_ASCII_WORD = re.compile(r"[A-Za-z0-9]+(?:'[A-Za-z]+)*")
_TOKEN = re.compile(rf"[{_HAN}]+|[{_UNSPACED}]+|{_LETTER}+(?:['’]{_LETTER}+)*")
_HAN_START, _UNSPACED_START = re.compile(f"[{_HAN}]"), re.compile(f"[{_UNSPACED}]")
_ENGLISH = re.compile(r"[a-z]{3,}")
_ACCENTS = re.compile("[\u0300-\u036f]+")

_MAX_WORD = 64  # characters; longer runs are not words, and are cut so that none is lost without trace
_MAX_CACHE = 300_000


def fold_width(text: str) -> str:
    """Return the text with full-width letters, digits and signs as ASCII, character for character.

    >>> fold_width("Ｎｕｔｃｈ　２")
    'Nutch 2'
    """
    return text.translate(_WIDTHS) if _WIDE.search(text) else text


class Token(NamedTuple):
    """A word as it stands in a text, ``text[start:end]``, and the terms it is found by."""

    start: int
    end: int
    terms: tuple[str, ...]


class _Words(dict[str, str]):
    """Word -> its term; fills itself, and starts afresh when it has grown too large."""

    def __init__(self, term_of: Callable[[str], str]) -> None:
        super().__init__()
        self._term_of = term_of

    def __missing__(self, word: str) -> str:
        term = self._term_of(word)
        if len(word) <= _MAX_WORD:
            if len(self) >= _MAX_CACHE:
                self.clear()
            self[word] = term
        return term


class Analyzer:
    """Makes terms of texts. ``user_words``: Chinese words that jieba is to keep whole.

    ``characters``: Chinese is cut into single characters, to measure words by.

    Making one is cheap; the dictionary (0.2 s) is loaded when the first Chinese text comes.
    """

    def __init__(self, user_words: tuple[str, ...] = (), characters: bool = False) -> None:
        self.user_words, self.characters = user_words, characters
        self._terms = _Words(self._term_of)

    @classmethod
    def of(cls, conf: Configuration) -> Analyzer:
        """Return the analyzer of a configuration: ``index.userdict.file`` names a file of words, one a line.

        What follows the word on its line, as frequency and kind in jieba's own files, is not read; ``#`` begins a
        comment. ``index.chinese``: words, or characters.
        """
        chinese = conf.get_trimmed("index.chinese", "words")
        if chinese not in ("words", "characters"):
            raise ConfigurationError(f"index.chinese is {chinese!r}: write words or characters")
        name = conf.get_trimmed("index.userdict.file")
        if not name or chinese == "characters":
            return _analyzer((), chinese == "characters")
        text = conf.resource_text(name)
        if text is None:
            path = Path(name)
            if not path.is_file():
                raise ConfigurationError(
                    f"index.userdict.file: there is no file {name}: correct the name or leave it empty"
                )
            text = path.read_text(encoding="utf-8-sig", errors="replace")
        words = (line.split("#")[0].split() for line in text.splitlines())
        return _analyzer(tuple(sorted({fold_width(parts[0]) for parts in words if parts})))

    @property
    def version(self) -> str:
        """What an index is stored with: texts analysed by another version give other words."""
        digest = hashlib.md5("\n".join(self.user_words).encode("utf-8", "replace"), usedforsecurity=False).hexdigest()
        if self.characters:
            return f"{ANALYSIS_VERSION}+characters"
        return f"{ANALYSIS_VERSION}" + (f"+{digest[:12]}" if self.user_words else "")

    @cached_property
    def _jieba(self) -> Jieba | Characters:
        if self.characters:
            return Characters()
        from rjieba import Jieba

        segmenter = Jieba()
        for word in self.user_words:
            segmenter.add_word(word, 1000, "nz")
        return segmenter

    @cached_property
    def _stem(self) -> Callable[[str], list[str]]:
        import tantivy

        raw, stemmer = tantivy.Tokenizer.raw(), tantivy.Filter.stemmer("english")
        stem: Callable[[str], list[str]] = tantivy.TextAnalyzerBuilder(raw).filter(stemmer).build().analyze
        return stem

    def _term_of(self, word: str) -> str:
        """Return the term of one word of an alphabetic script."""
        folded = word[:_MAX_WORD].lower()
        if not folded.isascii():
            decomposed = unicodedata.normalize("NFKD", folded)
            folded = unicodedata.normalize("NFC", _ACCENTS.sub("", decomposed)).replace("’", "'").replace("ß", "ss")
            folded = "".join(folded.lower().split()) or word
        if "'" in folded:
            folded = folded.removesuffix("'s").replace("'", "") or folded
        if _ENGLISH.fullmatch(folded):
            return self._stem(folded)[0]
        return folded

    def words(self, text: str) -> list[str]:
        """Return the terms by which a text is indexed, in order.

        Of a compound Chinese word its parts come before the whole (jieba's search mode): a page with 北京奥运会
        is found by 奥运会, and by 奥运.
        """
        if text.isascii():
            return [*map(self._terms.__getitem__, _ASCII_WORD.findall(text))]
        terms: list[str] = []
        known = self._terms
        for run in _TOKEN.findall(fold_width(text)):
            if run < "\u0e01":
                terms.append(known[run])
            else:
                terms.extend(self._run(run))
        return terms

    def _run(self, run: str) -> list[str]:
        if _HAN_START.match(run):
            return list(self._jieba.cut_for_search(run, hmm=True))
        if _UNSPACED_START.match(run):
            return pairs(run)
        return [self._terms[run]]

    def query_words(self, text: str) -> list[tuple[str, ...]]:
        """Return what a query's text asks for: words that all have to be there, each a tuple of terms in a row.

        A Chinese compound is one word of one term here; a run of Kana or Thai is one word of several pairs, and so is
        what is joined without a blank, as ``debian.org``.
        """
        folded = fold_width(text)
        asked: list[tuple[str, ...]] = []
        end = -1  # of the alphabetic run before, if the next one may continue it
        for match in _TOKEN.finditer(folded):
            run = match.group()
            if _HAN_START.match(run):
                asked.extend((word,) for word in self._jieba.cut(run, hmm=True))
                end = -1
            elif _UNSPACED_START.match(run):
                asked.append(tuple(pairs(run)))
                end = -1
            else:
                term = self._terms[run]
                between = folded[end : match.start()] if end >= 0 else " "
                if between and not any(c.isspace() for c in between):
                    asked[-1] = (*asked[-1], term)
                else:
                    asked.append((term,))
                end = match.end()
        return asked

    def parts(self, word: str) -> tuple[str, ...]:
        """Return the shorter words that a Chinese compound is made of, empty when it is not of several.

        A page that has the compound within a longer one (香港电影 in 香港电影院) is indexed by these.
        """
        if len(word) < 4 or not _HAN_START.match(word):
            return ()
        parts = [part for part in self._jieba.cut_for_search(word, hmm=True) if part != word]
        return tuple(parts) if len(parts) > 1 and "".join(parts) == word else ()

    def tokens(self, text: str) -> Iterator[Token]:
        """Yield the words of a text where they stand, for highlighting; overlapping words come longest last."""
        if text.isascii():
            for match in _ASCII_WORD.finditer(text):
                yield Token(match.start(), match.end(), (self._terms[match.group()],))
            return
        for match in _TOKEN.finditer(fold_width(text)):
            start, run = match.start(), match.group()
            if _HAN_START.match(run):
                for word, begin, end in self._jieba.tokenize(run, mode="search", hmm=True):
                    yield Token(start + begin, start + end, (word,))
            elif _UNSPACED_START.match(run):
                for i, pair in enumerate(pairs(run)):
                    yield Token(start + i, start + i + len(pair), (pair,))
            else:
                yield Token(start, match.end(), (self._terms[run],))


@lru_cache(maxsize=4)
def _analyzer(user_words: tuple[str, ...], characters: bool = False) -> Analyzer:
    return Analyzer(user_words, characters)  # shared within a process: each holds a dictionary


def pairs(run: str) -> list[str]:
    """Return the overlapping pairs of characters of a run, the run itself when it is one character.

    >>> pairs("カタカナ")
    ['カタ', 'タカ', 'カナ']
    """
    return [run[i : i + 2] for i in range(len(run) - 1)] or [run]
