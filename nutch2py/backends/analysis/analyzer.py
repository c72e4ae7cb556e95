"""Analyzer: splits texts of pages and queries into terms, identically for every index.

Texts are folded first (:mod:`nutch2py.backends.analysis.folding`): full width, traditional characters. Words of
alphabetic scripts are lower-cased, stemmed by the rules of the page's language
(:mod:`nutch2py.backends.analysis.stemming`) and stripped of accents. Chinese is segmented into words by jieba.
Japanese, Korean and scripts that write no spaces and have no dictionary here (Thai, Lao, Khmer, Burmese) are split
into bigrams of characters.

A page is indexed by more than its words: by the parts of compounds, and by joined and separated spellings
(:meth:`Analyzer.page_terms`). These extra terms follow the words, so that phrases and positions stay as written.

A change of the terms makes existing indexes incompatible: increase :data:`ANALYSIS_VERSION` then.

Chinese can also be split into single characters, which serves as the baseline of relevance measurements.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import groupby
from typing import TYPE_CHECKING, Literal, NamedTuple

from nutch2py.backends.analysis.chinese_segmentation import DEFAULT_GRANULARITY, CharacterSegmenter, ChineseGranularity
from nutch2py.backends.analysis.compounds import (
    COMPOUND_LANGUAGES,
    get_splitter,
    iter_subcompounds,
    lexicon_version,
)
from nutch2py.backends.analysis.dictionaries import read_dictionaries
from nutch2py.backends.analysis.folding import Folding, fold_width, get_folding
from nutch2py.backends.analysis.stemming import (
    MORE_STEMMER_NAMES,
    STEMMER_NAMES,
    analysis_language,
    get_batch_stemmer,
    get_stemmer,
)
from nutch2py.backends.analysis.stopwords import CHINESE_FUNCTION_WORDS
from nutch2py.backends.analysis.vietnamese import LANGUAGE as VIETNAMESE
from nutch2py.backends.analysis.vietnamese import has_marks, is_vietnamese, marked_term
from nutch2py.backends.analysis.word_forms import (
    adjust_finnish_stem,
    fold_letters,
    iter_joined_words,
    name_spans,
    prepare_for_stemmer,
    replace_names,
    split_number,
    stem_forms,
)
from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError
from nutch2py.support.bounded_cache import BoundedDict, word_cache

if TYPE_CHECKING:
    from rjieba import Jieba


ANALYSIS_VERSION = 4
"""Current rules.

Version 1: English stemming only, and no folding except width. Version 2: no plain letters (``œ``), no names with signs
(``C++``), no extra terms, and fewer tables of OpenCC. Version 3: stemmers of tantivy only, none for words with vowel
signs, and fewer spellings of Chinese (身分).
"""

_HAN = "\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_UNSPACED = (
    "\u3041-\u3096\u3099-\u309f\u30a1-\u30ff\u31f0-\u31ff\uff66-\uff9f\u0e01-\u0e3a\u0e40-\u0e5b"
    "\u0e80-\u0eff\u1000-\u109f\u1780-\u17ff"
)
# \w lacks the vowel signs and other marks that are part of words; ' and ’ join English contractions, not numbers
_COMBINING_MARKS = (
    "\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u0610-\u061a\u064b-\u065f\u0670\u0900-\u0903\u093a-\u094f\u0980-\u0dff"
)
_HANGUL = "\u1100-\u11ff\u3130-\u318f\uac00-\ud7a3"
_ASCII_WORD = re.compile(r"[A-Za-z0-9]+(?:'[A-Za-z]+)*")
_ASCII_SEPARATORS = bytes(code if bytes([code]).isalnum() or code == 0x27 else 0x20 for code in range(256))


def _token_pattern(bigram_scripts: str, marks: str = _COMBINING_MARKS) -> re.Pattern[str]:
    sign, letter = (rf"(?:[^\W{more}_{_HAN}{bigram_scripts}]|[{marks}])" for more in ("", r"\d"))
    return re.compile(rf"[{_HAN}]+|[{bigram_scripts}]+|{sign}+(?:['’]{letter}+)*")


_TOKEN_PATTERNS = {1: _token_pattern(_UNSPACED), 2: _token_pattern(_UNSPACED + _HANGUL)}
_HEBREW_MARKS = "\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7"
_TOKEN_PATTERNS[3] = _token_pattern(_UNSPACED + _HANGUL, _COMBINING_MARKS + _HEBREW_MARKS)
_HAN_START = re.compile(f"[{_HAN}]")
_BIGRAM_START = {1: re.compile(f"[{_UNSPACED}]"), 2: re.compile(f"[{_UNSPACED}{_HANGUL}]")}
_BIGRAM_START[3] = _BIGRAM_START[2]
_TOKEN_PATTERNS[4], _BIGRAM_START[4] = _TOKEN_PATTERNS[3], _BIGRAM_START[3]
_KANA_RUN = re.compile("[\u3041-\u3096\u309d-\u309f]+|[\u30a1-\u30ff\u31f0-\u31ff]+|[^\u3041-\u30ff\u31f0-\u31ff]+")
_KANA = re.compile("[\u3041-\u30ff]")
_MAX_KANA_WORD = 4  # characters; a longer run is searched by its bigrams, since it may be several words
_JAPANESE_PARTICLE = re.compile("[\u3041-\u3096]{1,2}")  # の, から: particles between the words of a query
_KOREAN_PARTICLE = re.compile("(?<=..)(?:을|를|이|가|은|는|에|의|로|와|과|도)$")  # particle at the end of a Korean word
_STEMMABLE_ENGLISH_WORD = re.compile(r"[a-z]{3,}")
_STEMMABLE_WORD = re.compile(r"[^\W\d_]{3,}")
_STEMMABLE_MARKED_WORD = re.compile(rf"(?:[^\W\d_]|[{_COMBINING_MARKS}]){{3,}}")
_LOWER_CASE_WORD = re.compile(r"[^\W\d_\u0900-\U0003ffff]{1,64}")  # of a script with letters
_ALL_STEMMERS = STEMMER_NAMES.keys() | MORE_STEMMER_NAMES.keys()
_ELISION_LANGUAGES = frozenset({"fr", "it"})  # l'homme, dell'uomo
_ACCENTS = re.compile("[\u0300-\u036f]+")

_MAX_WORD_LENGTH = 64  # characters; longer runs are truncated, so that they stay searchable by their start


class TextToken(NamedTuple):
    """A word of a text, ``text[start:end]``, and the terms that match it."""

    start: int
    end: int
    terms: tuple[str, ...]


TermSequence = tuple[str, ...]
"""Adjacent terms."""


class QueryWord(NamedTuple):
    """A word of a query.

    Attributes:
        alternatives: A page matches when it contains all term sequences of one alternative. The first is the English
            one.
        parts: The parts of a compound, in each language that divides it. A page that contains all terms of one of them
            matches, too, with a lower weight.
        marked: The term with marks (:mod:`nutch2py.backends.analysis.vietnamese`), which outweighs the alternatives.
    """

    alternatives: tuple[tuple[TermSequence, ...], ...]
    parts: tuple[TermSequence, ...] = ()
    marked: str = ""


class Analyzer:
    """Splits texts into terms.

    Creating one is cheap; the dictionary (0.2 s) is loaded with the first Chinese text.

    Args:
        user_words: Chinese words that jieba must keep whole.
        by_character: Split Chinese into single characters, as a baseline for measurements.
        text_folding: Variants that count as the same.
        rules_version: A version of the rules up to :data:`ANALYSIS_VERSION`.
        granularity: Granularity of Chinese segmentation.

    """

    def __init__(
        self,
        user_words: tuple[str, ...] = (),
        by_character: bool = False,
        text_folding: Folding | None = None,
        rules_version: int = ANALYSIS_VERSION,
        granularity: ChineseGranularity = DEFAULT_GRANULARITY,
    ) -> None:
        self.user_words, self.by_character, self.rules_version, self._granularity = (
            user_words,
            by_character,
            rules_version,
            granularity,
        )
        self._folding = text_folding or get_folding("")
        self._token_pattern, self._bigram_start = _TOKEN_PATTERNS[rules_version], _BIGRAM_START[rules_version]
        self._term_caches: dict[str, BoundedDict[str]] = {}
        self._extra_caches: dict[str, BoundedDict[tuple[str, ...]]] = {}
        self._jieba_mode: Literal["search", "default"] = "search" if granularity.fine_pages else "default"

    @classmethod
    def from_conf(cls, conf: Configuration, rules_version: int = ANALYSIS_VERSION) -> Analyzer:
        """Return the analyzer of a configuration.

        ``index.userdict.file`` names files with one word a line; further columns, such as frequency and part of speech
        in jieba's own files, are ignored, and ``#`` starts a comment. ``index.variants.file`` names the variants of
        Chinese. ``index.chinese`` is ``words`` or ``characters``.
        """
        chinese = conf.get_trimmed("index.chinese", "words")
        if chinese not in ("words", "characters"):
            raise ConfigurationError(f"index.chinese is {chinese!r}: write words or characters")
        variants = "" if rules_version == 1 else read_dictionaries(conf, "index.variants.file", rules_version)
        text = "" if chinese == "characters" else read_dictionaries(conf, "index.userdict.file")
        parts = (line.split("#")[0].split() for line in text.splitlines())
        fold = get_folding(variants).fold
        words = tuple(sorted({fold(each[0]).text for each in parts if each}))
        return _get_analyzer(
            words, chinese == "characters", variants, rules_version, ChineseGranularity.from_conf(conf)
        )

    @property
    def version(self) -> str:
        """Version stored with an index: texts analysed by another version have other terms."""
        digest = hashlib.md5("\n".join(self.user_words).encode("utf-8", "replace"), usedforsecurity=False).hexdigest()
        folded = f"{self.rules_version}" if self.rules_version == 1 else f"{self.rules_version}+{self._folding.version}"
        if self.rules_version > 2 and lexicon_version():
            folded += f"+{lexicon_version()}"
        if self.by_character:
            return f"{folded}+characters"
        return (
            folded
            + ("" if self._granularity.fine_pages else "+coarse")
            + (f"+{digest[:12]}" if self.user_words else "")
        )

    @cached_property
    def _segmenter(self) -> Jieba | CharacterSegmenter:
        if self.by_character:
            return CharacterSegmenter()
        from rjieba import Jieba

        segmenter = Jieba()
        for word in self.user_words:
            segmenter.add_word(word, 1000, "nz")
        return segmenter

    def _term_cache(self, code: str) -> BoundedDict[str]:
        """Return the cache from alphabetic words to their terms in pages of a language."""
        if code not in (STEMMER_NAMES if self.rules_version < 4 else _ALL_STEMMERS) or self.rules_version == 1:
            code = "en"
        try:
            return self._term_caches[code]
        except KeyError:
            version = self.rules_version
            cache = self._term_caches[code] = word_cache(
                (lambda word: _stem_english(word, version > 2))
                if code == "en"
                else lambda word: _stem_word(word, code, version)
            )
            return cache

    def _extra_cache(self, code: str) -> BoundedDict[tuple[str, ...]]:
        """Return the cache from alphabetic words to the extra terms of pages that contain them."""
        try:
            return self._extra_caches[code]
        except KeyError:
            cache = self._extra_caches[code] = word_cache(lambda word: self._find_extra_terms(word, code))
            return cache

    def _find_extra_terms(self, word: str, code: str) -> tuple[str, ...]:
        known = self._term_cache(code)
        if number := split_number(word):
            return tuple(known[part] for part in number)
        return tuple(dict.fromkeys(known[part] for part in _compound_parts(word, code))) if word.isalpha() else ()

    def fold(self, text: str) -> str:
        """Return a text with the folding applied: full width as ASCII, simplified characters."""
        return self._folding.fold(text).text

    def index_terms(self, text: str, lang: str = "en") -> list[str]:
        """Return the index terms of a text, in order.

        The parts of a Chinese compound come before the whole (jieba's search mode): a page with 北京奥运会 matches
        奥运会 and 奥运.

        Args:
            text: A text of a page.
            lang: The page's field ``lang``.

        """
        return self._analyse(text, analysis_language(lang))[0]

    def page_terms(self, text: str, lang: str = "en") -> list[str]:
        """Return the terms by which a text of a page is indexed: its words, and once each, extra terms.

        Extra terms are the parts of compounds (``auto`` of ``Autoversicherung``) and of words with a number (``iphone``
        and ``15`` of ``iPhone15``), and the joined spelling of a word with a hyphen (``wifi`` of ``Wi-Fi``). They count
        once however often their words occur, which gives them less weight.
        """
        return [term for terms in self.word_and_extra_terms(text, lang) for term in terms]

    def word_and_extra_terms(self, text: str, lang: str = "en") -> tuple[list[str], list[str]]:
        """Return the terms of the words of a text, as :meth:`index_terms` does, and its extra terms."""
        code = analysis_language(lang)
        terms, words = self._analyse(text, code)
        if self.rules_version < 3:
            return terms, []
        words = [*dict.fromkeys(words)]
        joined = [word for _, _, word in iter_joined_words(text)]
        found = filter(None, map(self._extra_cache(code).__getitem__, words))
        extra = dict.fromkeys(map(self._term_cache(code).__getitem__, joined)) if joined else {}
        for some in found:
            extra.update(dict.fromkeys(some))
        return terms, [*extra, *self._marked_terms(text, code)]

    def _marked_terms(self, text: str, code: str) -> list[str]:
        """Return the terms with marks of the words of a text in Vietnamese, as often as they occur."""
        if code != VIETNAMESE or self.rules_version < 4 or not has_marks(text):
            return []
        return [*map(marked_term, self._analyse(text, code)[1])]

    def marked_query_terms(self, words: Iterable[str], languages: frozenset[str]) -> list[str]:
        """Return the term with marks of each part of a query, "" for one of several words; [] without marks.

        ``languages``: those of the index. If it has more than Vietnamese and English, the query needs a letter that
        only Vietnamese has.
        """
        words, others = [*words], {*languages} - {VIETNAMESE, "en"}
        if VIETNAMESE not in languages or self.rules_version < 4:
            return []
        if not any(map(is_vietnamese if others else has_marks, words)):
            return []
        runs = (self._analyse(word, VIETNAMESE)[1] for word in words)
        return [marked_term(found[0]) if len(found) == 1 else "" for found in runs]

    def _analyse(self, text: str, code: str) -> tuple[list[str], list[str]]:
        """Return the terms of a text, and its alphabetic words as they are written."""
        known = self._term_cache(code)
        if text.isascii():
            words = split_ascii_words(replace_names(text) if self.rules_version > 2 else text)
            return [*map(known.__getitem__, words)], words
        terms: list[str] = []
        words = []
        folded = self._folding.fold(text).text
        if self.rules_version > 2:
            folded = replace_names(folded)
        # No word crosses a space, so the fast ASCII path also serves the ASCII parts of mixed texts.
        for is_ascii, parts in groupby(folded.split(), str.isascii):
            part = " ".join(parts)
            if is_ascii:
                some = split_ascii_words(part)
                words += some
                terms += map(known.__getitem__, some)
                continue
            for run in self._token_pattern.findall(part):
                if run < "\u0e01":
                    words.append(run)
                    terms.append(known[run])
                elif _HAN_START.match(run):
                    terms.extend(self._han_terms(run, code))
                elif self._bigram_start.match(run):
                    terms.extend(pair for piece in self._split_scripts(run) for pair in bigrams(piece))
                else:
                    words.append(run)
                    terms.append(known[run])
        return terms, words

    def word_terms(self, words: Sequence[str], lang: str = "en") -> list[str]:
        """Return the term of each of many words in pages of a language; "" for a word of several terms.

        Words in lower case are stemmed together and not cached, which costs a tenth: the edits of a mistyped word are
        hundreds, of which most are no words.
        """
        code = analysis_language(lang)
        terms = dict.fromkeys(words, "")
        plain = [*filter(_LOWER_CASE_WORD.fullmatch, terms)] if self.rules_version > 3 and code != "ar" else []
        joined = " ".join(plain)
        if joined != joined.lower() or unicodedata.normalize("NFKC", joined) != joined:
            plain = []
        terms |= zip(plain, _stem_words(plain, code), strict=True)
        for word in terms.keys() - {*plain}:
            row = self.index_terms(word, lang)
            terms[word] = row[0] if len(row) == 1 else ""
        return [terms[word] for word in words]

    def _han_terms(self, run: str, code: str) -> list[str]:
        if code == "ja" and self.rules_version > 1 and not self.by_character:
            return bigrams(run)
        return list(
            (self._segmenter.cut_for_search if self._granularity.fine_pages else self._segmenter.cut)(run, hmm=True)
        )

    def query_words(self, text: str, languages: Iterable[str] = ("en",)) -> list[QueryWord]:
        """Return the words of a query that a page must contain, for pages in ``languages`` (codes).

        A Chinese word is a sequence of one term, or in Japanese pages of bigrams. A short run of Kana is one word of
        several bigrams; every bigram of a longer run, of Hangul or of Thai is a word. Alphabetic words joined without a
        space, such as ``debian.org``, are one word.
        """
        folded = self._folding.fold(text).text
        if self.rules_version > 2:
            folded = replace_names(folded)
        codes = sorted({*languages}, key=lambda code: (code != "en", code))
        units: list[QueryWord] = []
        joined: list[str] = []  # alphabetic runs without a space between them
        start = end = -1  # of the first and of the last one

        def close() -> None:
            if joined:
                used = [code for code in codes if code != "ja" or "en" not in codes]  # both stem as English
                spellings = [joined, *self._other_spellings(joined, folded[start:end])]
                rows = dict.fromkeys(
                    tuple(self._term_cache(code)[run] for run in runs) for runs in spellings for code in used
                )
                units.append(QueryWord(tuple((row,) for row in rows), self._parts_of(joined, used)))
                joined.clear()

        for match in self._token_pattern.finditer(folded):
            run = match.group()
            han, paired = _HAN_START.match(run), self._bigram_start.match(run)
            between = folded[end : match.start()] if end >= 0 else " "
            if han or paired or not between or any(c.isspace() for c in between):
                close()
            if han:
                units.extend(self._han_query_words(run, codes))
            elif paired:
                units.extend(self._bigram_query_words(run))
            else:
                start = start if joined else match.start()
                joined.append(run)
            end = -1 if han or paired else match.end()
        close()
        content_words = [unit for unit in units if not self._is_particle(unit)]
        return content_words or units

    def _other_spellings(self, runs: list[str], text: str) -> list[list[str]]:
        """Return other spellings of adjacent words of a query, such as ``wifi`` for ``wi-fi``."""
        if self.rules_version < 3:
            return []
        if len(runs) == 1:
            number = split_number(runs[0])
            return [[*number]] if number else []
        return [[joined] for _, _, joined in iter_joined_words(text) if len(runs) == 2]

    def _parts_of(self, runs: list[str], codes: list[str]) -> tuple[TermSequence, ...]:
        """Return the parts of a compound of a query, in each of the languages that divide it."""
        if self.rules_version < 3 or len(runs) != 1 or COMPOUND_LANGUAGES.isdisjoint(codes):
            return ()
        rows = (tuple(self._term_cache(code)[part] for part in _split_compound(runs[0], code)) for code in codes)
        return tuple(dict.fromkeys(row for row in rows if row))

    def _han_query_words(self, run: str, codes: list[str]) -> list[QueryWord]:
        whole = self._segmenter.cut(run, hmm=True)
        if self.rules_version > 1:  # 什么 and 是 of 什么是博客
            whole = [word for word in whole if word not in CHINESE_FUNCTION_WORDS] or whole
        if self._granularity.fine_queries:
            whole = [part for word in whole for part in self.compound_parts(word) or (word,)]
        if "ja" in codes and self.rules_version > 1 and not self.by_character:
            return self._japanese_query_words(run, whole)
        return [QueryWord((((word,),),)) for word in whole]

    def _japanese_query_words(self, run: str, words: list[str]) -> list[QueryWord]:
        """Return the words of a run for pages in Chinese or Japanese.

        jieba cuts Japanese words that it does not know into characters. Japanese pages have bigrams, so a character
        also matches with the one after it, or before it at the end.
        """
        found: list[QueryWord] = []
        start = 0
        for word in words:
            start = run.index(word, start)
            rows: list[TermSequence] = [(word,)]
            if len(word) > 1:
                rows.append(tuple(bigrams(word)))
            elif len(run) > 1:
                first = min(start, len(run) - 2)
                rows.append((run[first : first + 2],))
            start += len(word)
            if found and rows[-1] == found[-1].alternatives[-1][0]:  # the last two characters
                continue
            found.append(QueryWord(tuple((row,) for row in dict.fromkeys(rows))))
        return found

    def _bigram_query_words(self, run: str) -> Iterator[QueryWord]:
        for piece in self._split_scripts(run):
            word = piece if self.rules_version == 1 else _KOREAN_PARTICLE.sub("", piece)
            pairs = bigrams(word)
            if _KANA.match(word) and len(word) <= _MAX_KANA_WORD:
                yield QueryWord(((tuple(pairs),),))
            else:  # several words
                yield from (QueryWord((((pair,),),)) for pair in dict.fromkeys(pairs))

    def chinese_words(self, text: str) -> list[list[str]]:
        """Return the words of each run of Chinese characters in a folded text; none for one with Kana."""
        if self.by_character or _KANA.search(text):
            return []
        runs = (run for run in self._token_pattern.findall(text) if _HAN_START.match(run))
        return [self._segmenter.cut(run, hmm=True) for run in runs]

    def han_characters(self, term: str) -> tuple[str, ...]:
        """Return the characters of a Chinese word, none for another word."""
        return tuple(term) if _HAN_START.match(term) else ()

    def _split_scripts(self, run: str) -> list[str]:
        """Return the parts of a run: Hiragana, Katakana or other characters."""
        return [run] if self.rules_version == 1 else _KANA_RUN.findall(run)

    def _is_particle(self, unit: QueryWord) -> bool:
        terms = unit.alternatives[0][0]
        return (
            self.rules_version > 1
            and len(unit.alternatives[0]) == len(terms) == 1
            and bool(_JAPANESE_PARTICLE.fullmatch(terms[0]))
        )

    def compound_parts(self, word: str) -> tuple[str, ...]:
        """Return the shorter words that make up a Chinese compound; empty when it is not a compound.

        A page with the compound inside a longer one (香港电影 in 香港电影院) is indexed by these.
        """
        if len(word) < 4 or not _HAN_START.match(word):
            return ()
        parts = [part for part in self._segmenter.cut_for_search(word, hmm=True) if part != word]
        return tuple(parts) if len(parts) > 1 and "".join(parts) == word else ()

    def tokens(self, text: str, lang: str = "en", wanted: frozenset[str] | None = None) -> Iterator[TextToken]:
        """Yield the words of a text with their offsets and all their terms, for highlighting; not all in order.

        Args:
            text: A text of a page.
            lang: The page's field ``lang``.
            wanted: Terms; runs without spaces that contain none of them are skipped, since dividing them costs most.

        """
        code = analysis_language(lang)
        known = self._term_cache(code)
        if self.rules_version < 3:
            yield from self._word_tokens(text, code, known, None, wanted)
            return
        extra = self._extra_cache(code)
        at = 0
        for start, end, name in name_spans(fold_width(text)):
            yield from _moved(self._word_tokens(text[at:start], code, known, extra, wanted), at)
            yield TextToken(start, end, (known[name],))
            at = end
        rest = self._word_tokens(text[at:], code, known, extra, wanted)
        yield from _moved(rest, at) if at else rest
        for start, end, word in iter_joined_words(text):
            yield TextToken(start, end, (known[word],))

    def _word_tokens(
        self,
        text: str,
        code: str,
        known: BoundedDict[str],
        extra: BoundedDict[tuple[str, ...]] | None,
        wanted: frozenset[str] | None,
    ) -> Iterator[TextToken]:
        """Yield the words of a text without names with signs."""

        def terms_of(word: str) -> tuple[str, ...]:
            return (known[word], *extra[word]) if extra is not None else (known[word],)

        if text.isascii():
            for match in _ASCII_WORD.finditer(text):
                yield TextToken(match.start(), match.end(), terms_of(match.group()))
            return
        folded = self._folding.fold(text)
        for match in self._token_pattern.finditer(folded.text):
            start, run = match.start(), match.group()
            is_unspaced = _HAN_START.match(run) or self._bigram_start.match(run)
            if is_unspaced and wanted is not None and not any(term in run for term in wanted):
                continue
            if _HAN_START.match(run) and not (code == "ja" and self.rules_version > 1 and not self.by_character):
                for word, begin, end in self._segmenter.tokenize(run, mode=self._jieba_mode, hmm=True):
                    yield TextToken(*folded.original_span(start + begin, start + end), (word,))
            elif is_unspaced:
                for piece in [run] if _HAN_START.match(run) else self._split_scripts(run):
                    for i, pair in enumerate(bigrams(piece)):
                        yield TextToken(*folded.original_span(start + i, start + i + len(pair)), (pair,))
                    start += len(piece)
            else:
                yield TextToken(*folded.original_span(start, match.end()), terms_of(run))


def _moved(tokens: Iterable[TextToken], offset: int) -> Iterator[TextToken]:
    for token in tokens:
        yield TextToken(token.start + offset, token.end + offset, token.terms)


def _split_compound(word: str, code: str) -> tuple[str, ...]:
    """Return the parts of a compound of a language, empty for any other word."""
    splitter = get_splitter(code) if code in COMPOUND_LANGUAGES else None
    return splitter.split(word.lower()) if splitter is not None else ()


def _compound_parts(word: str, code: str) -> Iterator[str]:
    """Yield the parts of a compound, the compounds within it, and their parts."""
    parts = _split_compound(word, code)
    for part in iter_subcompounds(parts, word.lower()) if parts else ():
        yield part
        yield from _split_compound(part, code)


def _fold_word(word: str, folds_letters: bool) -> str:
    """Return a word in lower case, without accents; ``folds_letters``: with plain letters, too."""
    folded = word[:_MAX_WORD_LENGTH].lower()
    if not folded.isascii():
        decomposed = unicodedata.normalize("NFKD", folded)
        folded = unicodedata.normalize("NFC", _ACCENTS.sub("", decomposed)).replace("’", "'").replace("ß", "ss")
        folded = "".join(folded.lower().split()) or word
        if folds_letters and not folded.isascii():
            folded = fold_letters(folded) or folded
    return folded


def _stem_words(words: list[str], code: str) -> list[str]:
    """Return the terms of lower-case words of letters, as :func:`_stem_english` and :func:`_stem_word` do."""
    if code not in _ALL_STEMMERS:
        code = "en"
    plain = words
    if not all(map(str.isascii, words)):
        plain = [_fold_plain_word(word) if code == "en" else prepare_for_stemmer(word, code) for word in words]
    has_stem = [len(word) > 2 and (code != "en" or word.isascii()) for word in plain]
    stems = iter(get_batch_stemmer(code)([word for word, stemmed in zip(plain, has_stem, strict=True) if stemmed]))
    terms = [next(stems) or word if stemmed else word for word, stemmed in zip(plain, has_stem, strict=True)]
    if code == "fi":
        terms = [adjust_finnish_stem(term) if stemmed else term for term, stemmed in zip(terms, has_stem, strict=True)]
    return terms if all(map(str.isascii, terms)) else [*map(_fold_plain_word, terms)]


def _fold_plain_word(word: str) -> str:
    return _fold_word(word, folds_letters=True)


def _stem_english(word: str, folds_letters: bool) -> str:
    """Return the term of a word of an alphabetic script in an English page."""
    folded = _fold_word(word, folds_letters)
    if "'" in folded:
        folded = folded.removesuffix("'s").replace("'", "") or folded
    return get_stemmer("en")(folded) if _STEMMABLE_ENGLISH_WORD.fullmatch(folded) else folded


def _stem_word(word: str, code: str, rules_version: int) -> str:
    """Return the term of a word in a page of another language: stemmed first, then stripped of accents."""
    folds_letters = rules_version > 2
    plain = unicodedata.normalize("NFKC", word[:_MAX_WORD_LENGTH].lower()).replace("’", "'")
    if "'" in plain:
        plain = (plain.rpartition("'")[2] if code in _ELISION_LANGUAGES else plain.replace("'", "")) or plain
    if folds_letters:
        plain = prepare_for_stemmer(plain, code) or plain
    if not (_STEMMABLE_WORD if rules_version < 4 else _STEMMABLE_MARKED_WORD).fullmatch(plain):
        return _stem_english(plain, folds_letters) if plain.isascii() else _fold_word(plain, folds_letters)
    stem = get_stemmer(code)(plain) if rules_version < 4 else stem_forms(plain, code, get_stemmer(code))
    return _fold_word(stem, folds_letters) or _fold_word(plain, folds_letters)


@lru_cache(maxsize=4)
def _get_analyzer(
    user_words: tuple[str, ...], by_character: bool, variants: str, rules_version: int, granularity: ChineseGranularity
) -> Analyzer:
    # Shared within a process: each analyzer holds a dictionary.
    return Analyzer(user_words, by_character, get_folding(variants), rules_version, granularity)


def split_ascii_words(text: str) -> list[str]:
    """Return the words of an ASCII text: the matches of ``_ASCII_WORD``, at a third of the cost.

    >>> split_ascii_words("It's 'quoted', o''clock: rock'n'roll_2'3 dogs'")
    ["It's", 'quoted', 'o', 'clock', "rock'n'roll", '2', '3', 'dogs']
    """
    words = text.encode().translate(_ASCII_SEPARATORS).decode().split()
    if "'" not in text:
        return words
    return [each for word in words for each in (_ASCII_WORD.findall(word) if "'" in word else (word,))]


def bigrams(run: str) -> list[str]:
    """Return the overlapping pairs of characters of a run; the run itself when it is a single character.

    >>> bigrams("カタカナ")
    ['カタ', 'タカ', 'カナ']
    """
    return [run[i : i + 2] for i in range(len(run) - 1)] or [run]
