"""Decoders of the Encoding Standard: whole tables, and what becomes of invalid bytes.

The digests are of the standard's own indexes (whatwg/encoding, commit a985b62a); ``scripts/test suites encoding``
compares with the files themselves. Texts of invalid bytes are what Firefox's decoder (encoding_rs 0.8.35) returns.
"""

from __future__ import annotations

import hashlib

import pytest

from nutch2py.parser.charset.encoding_names import decode, resolve_label
from nutch2py.parser.charset.whatwg_decoders import decoder_of
from tests.suites.encoding import bytes_of_pointer


@pytest.mark.parametrize(
    ("index", "encoding", "pointers", "digest"),
    [
        ("big5", "big5", 19782, "7df554ce5f35f34d"),
        ("euc-kr", "euc-kr", 23940, "52f105ba17063023"),
        ("gb18030", "gb18030", 23940, "15e545f4b91e0eaf"),
        ("gb18030", "gbk", 23940, "15e545f4b91e0eaf"),
        ("jis0208", "shift_jis", 11280, "92b38e86eb3ce0fc"),
        ("jis0208", "euc-jp", 11280, "ae2961bb29567086"),
        ("jis0208", "iso-2022-jp", 11280, "ae2961bb29567086"),
        ("jis0212", "euc-jp", 8836, "bebe6847066e6331"),
        ("ibm866", "ibm866", 128, "7ffc596cb77902c5"),
        ("iso-8859-2", "iso-8859-2", 128, "64a2f39a5149e90d"),
        ("iso-8859-3", "iso-8859-3", 128, "915490dfa40ba44e"),
        ("iso-8859-4", "iso-8859-4", 128, "f1797db4019385e3"),
        ("iso-8859-5", "iso-8859-5", 128, "8ad41a95d05e78fd"),
        ("iso-8859-6", "iso-8859-6", 128, "181df05bfc5df057"),
        ("iso-8859-7", "iso-8859-7", 128, "d156fd96c12044f3"),
        ("iso-8859-8", "iso-8859-8", 128, "47f64bd1512943db"),
        ("iso-8859-8", "iso-8859-8-i", 128, "47f64bd1512943db"),
        ("iso-8859-10", "iso-8859-10", 128, "a8e24330345e4437"),
        ("iso-8859-13", "iso-8859-13", 128, "1374ef1d62d82230"),
        ("iso-8859-14", "iso-8859-14", 128, "c7fa312fa4a25485"),
        ("iso-8859-15", "iso-8859-15", 128, "edac8b0995c246a4"),
        ("iso-8859-16", "iso-8859-16", 128, "2db1a0d11369bd62"),
        ("koi8-r", "koi8-r", 128, "f218618f4b7487d2"),
        ("koi8-u", "koi8-u", 128, "986308ea82e552b7"),
        ("macintosh", "macintosh", 128, "d2a4c868abe68fce"),
        ("windows-874", "windows-874", 128, "37ff29cb759639a5"),
        ("windows-1250", "windows-1250", 128, "33cb778f9cc2120a"),
        ("windows-1251", "windows-1251", 128, "1cceffb51f96eac1"),
        ("windows-1252", "windows-1252", 128, "2afd1267025813be"),
        ("windows-1253", "windows-1253", 128, "547c2348cbd5f465"),
        ("windows-1254", "windows-1254", 128, "4463fdde23016876"),
        ("windows-1255", "windows-1255", 128, "56698981c1ffc213"),
        ("windows-1256", "windows-1256", 128, "56ff3c6d002bdedd"),
        ("windows-1257", "windows-1257", 128, "e5d5d06ff912fd2e"),
        ("windows-1258", "windows-1258", 128, "46d65c5c252e30fe"),
        ("x-mac-cyrillic", "x-mac-cyrillic", 128, "fb5cd9f7e27be9f4"),
    ],
)
def test_every_pointer_is_decoded_as_in_the_standard(index: str, encoding: str, pointers: int, digest: str) -> None:
    found = hashlib.sha256()
    for pointer in range(pointers):
        raw = bytes_of_pointer(encoding, index, pointer)
        if raw is not None:
            text = decode(raw, resolve_label(encoding) or "")
            found.update((("\0" if text.startswith("\ufffd") else text) + "\n").encode())
    assert found.hexdigest()[:16] == digest


@pytest.mark.parametrize(
    ("encoding", "raw", "text"),
    [
        ("big5", "c640", "\u8b96"), ("big5", "a1e3", "\uff5e"), ("big5", "ff41", "\ufffdA"),
        ("big5", "8140", "\ufffd@"), ("big5", "81a1a4a4", "\ufffd\u4e2d"), ("big5", "a43c623e", "\ufffd<b>"),
        ("big5", "a4", "\ufffd"), ("gb18030", "80", "\u20ac"), ("gb18030", "a2ab", "\ue766"),
        ("gb18030", "8130813c", "\ufffd0\ufffd<"), ("gb18030", "81308130", "\x80"), ("gb18030", "e3329a36", "\ufffd"),
        ("gb18030", "8130", "\ufffd"), ("gb18030", "813081", "\ufffd"), ("gb18030", "d6d03c", "\u4e2d<"),
        ("gb18030", "ffd6d0", "\ufffd\u4e2d"), ("euc-kr", "813c", "\ufffd<"), ("euc-kr", "fea1", "\ufffd"),
        ("euc-kr", "b0a180", "\uac00\ufffd"), ("shift_jis", "80", "\x80"), ("shift_jis", "a0", "\ufffd"),
        ("shift_jis", "fd41", "\ufffdA"), ("shift_jis", "815c", "\u2015"), ("shift_jis", "813c", "\ufffd<"),
        ("shift_jis", "f040", "\ue000"), ("euc-jp", "a1c1", "\uff5e"), ("euc-jp", "8fa2b7", "\uff5e"),
        ("euc-jp", "8fa13c", "\ufffd<"), ("euc-jp", "8ee0", "\ufffd"), ("euc-jp", "8f3c", "\ufffd<"),
        ("euc-jp", "8eb1", "\uff71"), ("iso-2022-jp", "1b244224221b284241", "\u3042A"),
        ("iso-2022-jp", "1b24421b284241", "\ufffdA"), ("iso-2022-jp", "1b284a5c7e", "\xa5\u203e"),
        ("iso-2022-jp", "1b284931", "\uff71"), ("iso-2022-jp", "0e41", "\ufffdA"),
        ("iso-2022-jp", "1b2442243c1b2842", "\u305c"), ("iso-2022-jp", "1b41", "\ufffdA"),
        ("iso-2022-jp", "a4a2", "\ufffd\ufffd"), ("windows-1252", "818d", "\x81\x8d"),
        ("windows-874", "a181db", "\u0e01\x81\ufffd"), ("koi8-u", "aebe", "\u045e\u040e"),
        ("windows-1255", "ca", "\u05ba"), ("windows-1253", "aa", "\ufffd"),
    ],
)  # fmt: skip
def test_invalid_and_rare_sequences_are_decoded_as_in_browsers(encoding: str, raw: str, text: str) -> None:
    body = bytes.fromhex(raw)
    assert decode(body, encoding) == text
    # an error elsewhere selects the other of the two ways to decode, which must agree
    assert decode(b"<p>" + body + b"\n\xff\n", encoding)[3 : 3 + len(text)] == text or raw in ("8130", "813081")


@pytest.mark.parametrize("codec", ["cp950", "gb18030", "cp949", "cp932", "euc_jp", "iso2022_jp_ext", "cp1252"])
def test_any_bytes_are_decoded(codec: str) -> None:
    decoder = decoder_of(codec)
    assert decoder is not None
    for first in range(256):
        for second in range(256):
            decoder(bytes((first, second)))
            decoder(bytes((0x1B, 0x24, 0x42, first, second, 0x8F, first, second, first)))
