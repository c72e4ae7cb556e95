"""Translations of the search page, and language negotiation."""

from __future__ import annotations

import re

from nutch2py.errors import ConfigurationError
from nutch2py.url.display_url import display_host

LANGUAGES = ("en", "de", "zh")
"""Languages of the page; the first is the default."""

MESSAGES: dict[str, tuple[str, str, str]] = {
    "search": ("Search", "Suchen", "搜索"),
    "to_content": ("Skip to content", "Zum Inhalt", "跳到内容"),
    "results": ("Results", "Ergebnisse", "搜索结果"),
    "document": ("{} document", "{} Dokument", "{} 个文档"),
    "documents": ("{} documents", "{} Dokumente", "{} 个文档"),
    "narrow": ("Filter", "Eingrenzen", "筛选"),
    "not_narrowed": ("Remove filter {} {}", "Nicht eingrenzen auf {} {}", "取消筛选 {} {}"),
    "did_you_mean": ("Did you mean", "Meinten Sie", "您是不是要找"),
    "corrected": (
        "Showing results for {}. Search only for {}.", "Ergebnisse für {}. Nur nach {} suchen.",
        "显示的是 {} 的结果。仅搜索 {}。",
    ),
    "also_corrected": (
        "Including results for {}. Search only for {}.", "Auch Ergebnisse für {}. Nur nach {} suchen.",
        "结果中也包括 {} 的结果。仅搜索 {}。",
    ),
    "none": ("No document matches {}.", "Kein Dokument passt zu {}.", "没有文档与 {} 匹配。"),
    "without_filters": ("With fewer filters:", "Mit weniger Filtern:", "减少筛选条件："),
    "without_any": ("without a filter", "ohne Filter", "不使用筛选"),
    "without_one": ("without {} {}", "ohne {} {}", "不限{} {}"),
    "single_words": ("Single words of the query:", "Einzelne Wörter der Anfrage:", "查询中的单个词："),
    "none_here": ("No documents here.", "Hier ist kein Dokument.", "这里没有文档。"),
    "only": ("Only {} match.", "Es passen nur {}.", "只有 {} 个匹配。"),
    "at_most": ("At most {} are shown.", "Höchstens {} werden gezeigt.", "最多显示 {} 个。"),
    "host": ("Site", "Website", "网站"),
    "path": ("Folder", "Ordner", "目录"),
    "type": ("Type", "Typ", "类型"),
    "lang": ("Language", "Sprache", "语言"),
    "date": ("Date", "Datum", "日期"),
    "all": ("all", "alle", "全部"),
    "cached": ("cached", "im Archiv", "快照"),
    "in_crawl": ("crawl history", "im Crawl", "抓取记录"),
    "why": ("why?", "warum?", "为什么？"),
    "alike": ("{} more like this", "{} weitere dieser Art", "另有 {} 个类似结果"),
    "score": ("score {}", "Wert {}", "得分 {}"),
    "previous": ("Previous", "Zurück", "上一页"),
    "next": ("Next", "Weiter", "下一页"),
    "pages": ("Pages", "Seiten", "分页"),
    "by_relevance": ("best first", "beste zuerst", "按相关性"),
    "by_date": ("newest first", "neueste zuerst", "按日期"),
    "order": ("Order", "Reihenfolge", "排序"),
    "room": ("Control room", "Leitstand", "控制室"),
    "seconds": ("{} s", "{} s", "{} 秒"),
    "home_hint": ("Enter words, or", "Wörter, oder", "输入词语，或"),
    "hint_words": ('"exact phrase"', '"genaue Wortfolge"', '"完整词组"'),
    "hint_minus": ("-without", "-ohne", "-排除"),
    "hint_or": ("one OR other", "eins OR anderes", "甲 OR 乙"),
    "searched": ("Searched for {} instead.", "Gesucht wurde stattdessen {}.", "已改为搜索 {}。"),
    "wrong_quote": ("Unbalanced quotation mark.", "Ein Anführungszeichen steht allein.", "引号不成对。"),
    "wrong_parenthesis": ("Unbalanced parenthesis.", "Eine Klammer steht allein.", "括号不成对。"),
    "wrong_operator": (
        "{} must be between two words.", "{} steht zwischen zwei Wörtern.", "{} 应位于两个词之间。",
    ),
    "wrong_not": ("{} must be before a word.", "{} steht vor einem Wort.", "{} 应位于一个词之前。"),
    "wrong_field": ("{} must be followed by a word.", "{} braucht ein Wort dahinter.", "{} 后面需要一个词。"),
    "wrong_long": ("Only the first {} words are used.", "Nur die ersten {} Wörter zählen.", "只计前 {} 个词。"),
    "wrong_empty": ("The query contains no word.", "Es ist kein Wort darin.", "其中没有词语。"),
    "suggestions": ("Suggestions", "Vorschläge", "搜索建议"),
    "title": ("page", "Seite", "网页"),
    "cached_title": ("Cached", "Archiviert", "网页快照"),
    "cached_copy": ("This is a copy of {}", "Dies ist eine Kopie von {}", "这是 {} 的快照"),
    "cached_when": (", fetched on {} (UTC).", ", abgeholt am {} (UTC).", "，抓取于 {}（UTC）。"),
    "cached_note": (
        "The page itself may have changed. Scripts, forms, images and links do not work here.",
        "Die Seite selbst kann sich geändert haben. Skripte, Formulare, Bilder und Links wirken hier nicht.",
        "原网页可能已更改。此处的脚本、表单、图片和链接均不可用。",
    ),
    "cached_marked": ("Highlighted: {}.", "Markiert: {}.", "已标出：{}。"),
    "unmarked": ("without highlighting", "ohne Markierung", "不标出"),
    "why_title": ("Why this result?", "Warum dieses Ergebnis?", "为什么有此结果？"),
    "why_words": ("{} for {}", "{} für {}", "{}（查询：{}）"),
    "why_in": ("Matches: {}.", "Gefunden: {}.", "找到：{}。"),
    "why_one": ("{} in {}", "{} in {}", "{}在{}"),
    "why_most": ("Most of the score comes from {}.", "Der größte Teil des Werts kommt aus {}.", "得分主要来自{}。"),
    "why_weight": (
        "Its rank multiplies the score by {} ({}).", "Sein Rang vervielfacht den Wert mit {} ({}).",
        "得分再乘以其权重 {}（{}）。",
    ),
    "why_fresh": (
        "Its age multiplies the score by {}.", "Sein Alter vervielfacht den Wert mit {}.", "得分再乘以其新鲜度 {}。",
    ),
    "why_numbers": ("Score details", "Die Zahlen", "详细数字"),
    "in_title": ("the title", "dem Titel", "标题"),
    "in_content": ("the text", "dem Text", "正文"),
    "in_anchor": ("anchor text of inlinks", "Texten von Links hierher", "指向它的链接文字"),
    "in_url": ("the URL", "der Adresse", "网址"),
    "in_host": ("the host name", "dem Namen der Website", "网站名"),
    "in_other": ("other fields", "weiteren Feldern", "其他字段"),
    "no_such": ("Not found", "Nicht gefunden", "未找到"),
    "no_page": ("Page not found.", "Diese Seite gibt es nicht.", "没有这个页面。"),
    "no_answer": ("Service unavailable", "Dienst nicht verfügbar", "服务不可用"),
    "not_understood": ("Invalid request", "Ungültige Anfrage", "无效请求"),
    "no_cached": ("No cached page", "Keine Kopie", "没有快照"),
    "not_by_query": (
        "The query does not match this document.", "Die Anfrage findet dieses Dokument nicht.", "该查询找不到此文档。",
    ),
}  # fmt: skip
"""Texts of the search page by name, in the order of the languages."""

_LANGUAGE_NAMES: dict[str, tuple[str, str, str]] = {
    "zh": ("Chinese", "Chinesisch", "中文"), "en": ("English", "Englisch", "英语"),
    "de": ("German", "Deutsch", "德语"), "fr": ("French", "Französisch", "法语"),
    "es": ("Spanish", "Spanisch", "西班牙语"), "ja": ("Japanese", "Japanisch", "日语"),
    "ko": ("Korean", "Koreanisch", "韩语"), "ru": ("Russian", "Russisch", "俄语"),
    "pt": ("Portuguese", "Portugiesisch", "葡萄牙语"), "it": ("Italian", "Italienisch", "意大利语"),
    "pl": ("Polish", "Polnisch", "波兰语"), "nl": ("Dutch", "Niederländisch", "荷兰语"),
    "ar": ("Arabic", "Arabisch", "阿拉伯语"), "he": ("Hebrew", "Hebräisch", "希伯来语"),
    "fa": ("Persian", "Persisch", "波斯语"), "hi": ("Hindi", "Hindi", "印地语"),
    "tr": ("Turkish", "Türkisch", "土耳其语"), "uk": ("Ukrainian", "Ukrainisch", "乌克兰语"),
    "cs": ("Czech", "Tschechisch", "捷克语"), "sk": ("Slovak", "Slowakisch", "斯洛伐克语"),
    "sv": ("Swedish", "Schwedisch", "瑞典语"), "da": ("Danish", "Dänisch", "丹麦语"),
    "no": ("Norwegian", "Norwegisch", "挪威语"), "fi": ("Finnish", "Finnisch", "芬兰语"),
    "hu": ("Hungarian", "Ungarisch", "匈牙利语"), "ro": ("Romanian", "Rumänisch", "罗马尼亚语"),
    "bg": ("Bulgarian", "Bulgarisch", "保加利亚语"), "el": ("Greek", "Griechisch", "希腊语"),
    "ca": ("Catalan", "Katalanisch", "加泰罗尼亚语"), "et": ("Estonian", "Estnisch", "爱沙尼亚语"),
    "lv": ("Latvian", "Lettisch", "拉脱维亚语"), "lt": ("Lithuanian", "Litauisch", "立陶宛语"),
    "hr": ("Croatian", "Kroatisch", "克罗地亚语"), "sl": ("Slovenian", "Slowenisch", "斯洛文尼亚语"),
    "sr": ("Serbian", "Serbisch", "塞尔维亚语"), "th": ("Thai", "Thailändisch", "泰语"),
    "ta": ("Tamil", "Tamil", "泰米尔语"),
    "vi": ("Vietnamese", "Vietnamesisch", "越南语"), "id": ("Indonesian", "Indonesisch", "印度尼西亚语"),
    "unknown": ("unknown", "unbekannt", "未知"),
}  # fmt: skip
"""Texts by key, in the order of :data:`LANGUAGES`."""
_LANGUAGE_RANGE = re.compile(r"\s*([A-Za-z]{1,8})(?:-[\w-]*)?\s*+(?:;\s*+q=([0-9.]{1,6})\s*)?")


class Translations:
    """Messages of one language, by key: ``i18n("documents", 3)``. An unknown key raises KeyError."""

    def __init__(self, language: str) -> None:
        self.language = language
        self._index = LANGUAGES.index(language)

    def __call__(self, name: str, *values: object) -> str:
        """Return a message with ``values`` inserted."""
        return MESSAGES[name][self._index].format(*values)

    def segments(self, name: str) -> list[str]:
        """Return the text between the placeholders of a message, for values that are markup."""
        return MESSAGES[name][self._index].split("{}")

    def format_count(self, name: str, number: int) -> str:
        """Return a message for a count, in singular or plural."""
        return self(name if number == 1 else f"{name}s", self.format_number(number))

    def format_number(self, number: int) -> str:
        """Return an integer with the digit grouping of the language."""
        return f"{number:,}".replace(",", "." if self.language == "de" else ",")

    def format_decimal(self, number: float) -> str:
        """Return a number with three decimals."""
        return f"{number:.3f}".replace(".", "," if self.language == "de" else ".")

    def facet_label(self, facet: str, value: str) -> str:
        """Return the label of a facet value."""
        if facet == "path":
            return value[value.find("/") :]
        if facet == "host":
            return display_host(value)
        if facet == "date" and self.language == "zh":
            return value.replace("-", " 年 ") + (" 月" if "-" in value else " 年")
        return _LANGUAGE_NAMES[value][self._index] if facet == "lang" and value in _LANGUAGE_NAMES else value


def validate_language(fixed: str) -> str:
    """Return a valid ``search.page.language``: a language of the page, or "" for the browser's."""
    if fixed and fixed not in LANGUAGES:
        raise ConfigurationError(f"search.page.language is {fixed!r}: use {', '.join(LANGUAGES)} or nothing")
    return fixed


def negotiate_language(accepted: str) -> str:
    """Return the language for a header Accept-Language; the default is the first of :data:`LANGUAGES`.

    >>> negotiate_language("fr, de-AT;q=0.8, en;q=0.9"), negotiate_language("zh-Hant"), negotiate_language("")
    ('en', 'zh', 'en')
    """
    best, weight = LANGUAGES[0], 0.0
    for part in accepted[:500].split(","):
        match = _LANGUAGE_RANGE.fullmatch(part)
        if match is None or match[1].lower() not in LANGUAGES:
            continue
        try:
            quality = float(match[2] or 1)
        except ValueError:
            continue
        if quality > weight:
            best, weight = match[1].lower(), quality
    return best
