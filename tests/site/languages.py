"""A generated web in the languages of the world: hosts in many scripts, all encodings, links in every odd form.

60 hosts have names of 20 scripts and a home page in their language. Each encoding of the WHATWG has a page that
declares it and one that does not, and each page a mirror on another host. The hub has links in forms that browsers
understand, several to each page. All content depends on the URL only.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from functools import cached_property
from html import escape
from typing import NamedTuple

from nutch2py.url.idn import host_to_ascii

SCRIPTS = {
    "Latin": ("größe", "Der Fluss fließt durch die schöne Stadt, und die Bäume blühen"),
    "Cyrillic": ("россия", "Река течёт через город и впадает в море у старой крепости"),
    "Greek": ("ελλάδα", "Το ποτάμι περνά μέσα από την πόλη και χύνεται στη θάλασσα"),
    "Armenian": ("հայաստան", "Գետը հոսում է քաղաքի միջով դեպի ծովը"),
    "Georgian": ("საქართველო", "მდინარე მიედინება ქალაქში ზღვისკენ"),
    "Hebrew": ("ישראל", "הנהר זורם דרך העיר אל הים הגדול ליד המבצר"),
    "Arabic": ("مصر", "يجري النهر عبر المدينة القديمة ويصب في البحر الكبير"),
    "Devanagari": ("भारत", "नदी शहर से होकर समुद्र की ओर बहती है"),
    "Bengali": ("বাংলা", "নদী শহরের মধ্য দিয়ে সাগরের দিকে বয়ে যায়"),
    "Gurmukhi": ("ਪੰਜਾਬ", "ਨਦੀ ਸ਼ਹਿਰ ਵਿੱਚੋਂ ਸਮੁੰਦਰ ਵੱਲ ਵਗਦੀ ਹੈ"),
    "Gujarati": ("ગુજરાત", "નદી શહેરમાંથી સમુદ્ર તરફ વહે છે"),
    "Tamil": ("தமிழ்", "ஆறு நகரத்தின் வழியாக கடலை நோக்கி ஓடுகிறது"),
    "Telugu": ("తెలుగు", "నది నగరం గుండా సముద్రం వైపు ప్రవహిస్తుంది"),
    "Kannada": ("ಕನ್ನಡ", "ನದಿಯು ನಗರದ ಮೂಲಕ ಸಮುದ್ರದ ಕಡೆಗೆ ಹರಿಯುತ್ತದೆ"),
    "Thai": ("ไทย", "แม่น้ำไหลผ่านเมืองเก่าไปสู่ทะเลใหญ่ใกล้ป้อมปราการ"),
    "Khmer": ("កម្ពុជា", "ទន្លេហូរកាត់ទីក្រុងទៅសមុទ្រ"),
    "Hangul": ("한국", "강은 오래된 도시를 지나 성 옆의 넓은 바다로 흘러간다"),
    "Han": ("中国", "河流穿过古老的城市流向城堡旁边的大海"),
    "Kana": ("ひらがな", "川は古い町を通って城のそばの大きな海へ流れていきます"),
    "Ethiopic": ("ኢትዮጵያ", "ወንዙ በከተማው በኩል ወደ ባሕር ይፈስሳል"),
}
"""Script -> a name of hosts and a text."""

_CENTRAL = "Příliš žluťoučký kůň úpěl ďábelské ódy, řeka teče starým městem k moři"
_TURKISH = "Nehir eski şehrin içinden geçerek kalenin yanındaki büyük denize doğru akıyor, çağdaş ölçü"
_BALTIC = "Upė teka per senąjį miestą į didžiąją jūrą šalia pilies, ąžuolų ir žalių pušų šešėlyje"
_VIETNAMESE = "Dòng sông chảy qua thành phố cũ rồi đổ ra biển lớn gần pháo đài"
ENCODINGS = {
    "utf-8": ("utf-8", SCRIPTS["Greek"][1]),
    "ibm866": ("cp866", SCRIPTS["Cyrillic"][1]),
    "iso-8859-2": ("iso8859-2", _CENTRAL),
    "iso-8859-3": ("iso8859-3", "La rivero fluas tra la ĉefurbo ĝis la maro ĉe la ŝtona kastelo, ĵus aŭdita"),
    "iso-8859-4": ("iso8859-4", "Upe tek cauri vecajai pilsētai uz lielo jūru pie pils, šķērsojot žēlīgo mežu"),
    "iso-8859-5": ("iso8859-5", SCRIPTS["Cyrillic"][1]),
    "iso-8859-6": ("iso8859-6", SCRIPTS["Arabic"][1]),
    "iso-8859-7": ("iso8859-7", SCRIPTS["Greek"][1]),
    "iso-8859-8": ("iso8859-8", SCRIPTS["Hebrew"][1]),
    "iso-8859-8-i": ("iso8859-8", SCRIPTS["Hebrew"][1]),
    "iso-8859-10": (
        "iso8859-10",
        "Áin rennur í gegnum gamla bæinn til sjávar, þar sem hæðir eru við kastalann",
    ),
    "iso-8859-13": ("iso8859-13", _BALTIC),
    "iso-8859-14": ("iso8859-14", "Mae'r afon yn llifo drwy'r hen dref i'r môr, ŵyr y dŵr a'r tŷ ger y castell"),
    "iso-8859-15": (
        "iso8859-15",
        "Le fleuve coûte cinq € et traverse la vieille cité, œuvre d'un maître",
    ),
    "iso-8859-16": ("iso8859-16", "Râul curge prin orașul vechi spre marea cea mare, lângă cetate, și țara înflorește"),
    "koi8-r": ("koi8-r", SCRIPTS["Cyrillic"][1]),
    "koi8-u": ("koi8-u", "Річка тече через старе місто й впадає в море біля фортеці, їжак їсть ґрунт"),
    "macintosh": ("mac-roman", SCRIPTS["Latin"][1]),
    "windows-874": ("cp874", SCRIPTS["Thai"][1]),
    "windows-1250": ("cp1250", _CENTRAL),
    "windows-1251": ("cp1251", SCRIPTS["Cyrillic"][1]),
    "windows-1252": ("cp1252", SCRIPTS["Latin"][1]),
    "windows-1253": ("cp1253", SCRIPTS["Greek"][1]),
    "windows-1254": ("cp1254", _TURKISH),
    "windows-1255": ("cp1255", SCRIPTS["Hebrew"][1]),
    "windows-1256": ("cp1256", SCRIPTS["Arabic"][1]),
    "windows-1257": ("cp1257", _BALTIC),
    "windows-1258": ("cp1258", _VIETNAMESE),
    "x-mac-cyrillic": ("mac-cyrillic", SCRIPTS["Cyrillic"][1]),
    "gbk": ("gbk", SCRIPTS["Han"][1]),
    "gb18030": ("gb18030", SCRIPTS["Han"][1]),
    "big5": ("big5", "河流穿過古老的城市流向城堡旁邊的大海"),
    "euc-jp": ("euc-jp", SCRIPTS["Kana"][1]),
    "iso-2022-jp": ("iso2022_jp", SCRIPTS["Kana"][1]),
    "shift_jis": ("shift_jis", SCRIPTS["Kana"][1]),
    "euc-kr": ("euc-kr", SCRIPTS["Hangul"][1]),
    "utf-16be": ("utf-16-be", SCRIPTS["Thai"][1]),
    "utf-16le": ("utf-16-le", SCRIPTS["Han"][1]),
    "x-user-defined": ("ascii", "The river flows through the old city towards the sea"),
}
"""Encoding -> Python's codec and a text; windows-1258 has its letters with combining marks."""

NOT_DETECTED = frozenset({"iso-8859-3", "iso-8859-14", "iso-8859-16"})
"""Encodings that browsers do not guess either: in others, which are used more, the same bytes are letters, too."""
_REPEATS = 12  # of a text on its page: detectors count characters


class WebResponse(NamedTuple):
    """A page: type with charset, content, and the text that it must have when it is read right."""

    content_type: str
    body: bytes
    text: str


class LanguageWeb:
    """The web on a port: its responses by host and path, seeds, and the links of the hub with their targets."""

    def __init__(self, port: int = 80) -> None:
        self._port = "" if port == 80 else f":{port}"
        self.unicode_hosts = [f"{name}{number}.test" for name, _ in SCRIPTS.values() for number in ("", 2, 3)]
        self.hosts = [host_to_ascii(host) for host in self.unicode_hosts]

    def url(self, host: str, path: str) -> str:
        """Return the URL of a path."""
        return f"http://{host}{self._port}{path}"

    @property
    def seed(self) -> str:
        """The only seed: the hub, whose host is in Unicode."""
        return self.url(self.unicode_hosts[0], "/")

    @cached_property
    def links(self) -> list[tuple[str, str]]:
        """The links of the hub as they are written, with the URL that a browser requests."""
        hub, other, port = self.hosts[0], self.hosts[4], self._port
        found = [
            ("/form/plain", "/form/plain"),
            (" /form/plain\n", "/form/plain"),
            ("/form/plain#part", "/form/plain"),
            ("\\form\\backslash", "/form/backslash"),
            ("/fo\trm/back\nslash", "/form/backslash"),
            ("/../../form/up", "/form/up"),
            ("form/./x/../up", "/form/up"),
            ("form/x/%2e%2E/up", "/form/up"),
            ("/form/ü", "/form/%C3%BC"),
            ("/form/%C3%BC", "/form/%C3%BC"),
            ("&#x2f;form&sol;&#252;", "/form/%C3%BC"),
            ("/form/a b", "/form/a%20b"),
            ("/form/a%20b", "/form/a%20b"),
            ("http:/form/slash", "/form/slash"),
            ("http:form/slash", "/form/slash"),
            (f"///{hub}{port}/form/slash", "/form/slash"),
            (f"HTTP://{hub.upper()}{port}/form/scheme", "/form/scheme"),
            (f"//{hub}{port}/form/scheme", "/form/scheme"),
            (f"http:\\\\{hub}{port}\\form\\scheme", "/form/scheme"),
        ]
        links = [(href, self.url(hub, path)) for href, path in found]
        for host, name in zip(self.hosts, self.unicode_hosts, strict=True):  # each host in two forms, some wide or cut
            links += [(self.url(name, "/"), self.url(host, "/")), (self.url(host.upper(), ""), self.url(host, "/"))]
        wide = "".join(chr(ord(char) + 0xFEE0) if "!" <= char <= "~" and char not in ".-" else char for char in other)
        links += [
            (self.url(wide.replace(".", "。"), "/"), self.url(other, "/")),
            (self.url(self.unicode_hosts[3].upper(), "/"), self.url(self.hosts[3], "/")),
        ]
        return links

    def responses(self) -> Iterator[tuple[str, str, WebResponse]]:
        """Yield host, path and response of every page."""
        paths = [self._encoding_paths(number) for number in range(len(self.hosts))]
        for number, (host, (_, text)) in enumerate(
            zip(self.hosts, (each for each in SCRIPTS.values() for _ in range(3)), strict=True)
        ):
            links = [href for href, _ in self.links] if not number else []
            mirrored = self._encoding_paths(number - 1)
            links += [*paths[number], *(f"/mirror{path}" for path in mirrored)]
            yield host, "/", _page("utf-8", "utf-8", f"{text} {number}", links, declared=True)
            for prefix, own in (("", paths[number]), ("/mirror", mirrored)):
                for path in own:
                    _, kind, encoding = path.split("/")
                    codec, words = ENCODINGS[encoding]
                    yield host, prefix + path, _page(encoding, codec, words, [], declared=kind == "declared")
        for path in dict.fromkeys(url.partition(self.url(self.hosts[0], ""))[2] for _, url in self.links):
            if path.startswith("/form/"):
                yield self.hosts[0], path, _page("utf-8", "utf-8", f"target {path}", [], declared=True)

    def _encoding_paths(self, number: int) -> list[str]:
        """Return the paths of the encodings of a host; those of -1 are of the last one."""
        named = [f"/{kind}/{encoding}" for encoding in ENCODINGS for kind in ("declared", "undeclared")]
        return named[number % len(self.hosts) :: len(self.hosts)]


def _page(encoding: str, codec: str, words: str, links: list[str], *, declared: bool) -> WebResponse:
    text = decompose(words) if codec == "cp1258" else words
    written = (escape(href).replace("&amp;#", "&#").replace("&amp;sol", "&sol") for href in links)
    anchors = " ".join(f'<a href="{href}">l</a>' for href in written)
    label = f'<meta charset="{encoding}">' if declared and not encoding.startswith("utf-16") else ""
    head = f"<!DOCTYPE html><html><head>{label}<title>{text}</title></head>"
    html = f"{head}<body><p>{(text + ' ') * _REPEATS}</p>{anchors}</body></html>"
    if encoding.startswith("utf-16") and not declared:
        html = f"\ufeff{html}"
    body = html.encode(codec)
    content_type = "text/html"
    if declared and encoding.startswith("utf-16"):
        content_type += f"; charset={encoding}"
    return WebResponse(content_type, body, text)


def decompose(text: str) -> str:
    """Return Vietnamese as windows-1258 has it: vowels composed, tones as marks behind them."""
    tones = "\u0300\u0301\u0303\u0309\u0323"
    made = []
    for char in text:
        parts = unicodedata.normalize("NFD", char)
        tone = "".join(mark for mark in parts if mark in tones)
        base = unicodedata.normalize("NFC", "".join(mark for mark in parts if mark not in tones))
        try:
            char.encode("cp1258")
            made.append(char)
        except UnicodeEncodeError:
            made.append(base + tone)
    return "".join(made)
