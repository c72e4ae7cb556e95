"""Workbooks of Excel 97 to 2003 encrypted with Excel's default password for write protection."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable

import pytest
from cryptography.hazmat.decrepit.ciphers.algorithms import ARC4
from cryptography.hazmat.primitives.ciphers import Cipher

from nutch2py.conf.configuration import Configuration
from nutch2py.interfaces import Parse
from nutch2py.parser.formats.excel.xls_decryption import decrypt_workbook
from nutch2py.parser.formats.office.ole import OleParser
from nutch2py.records.webpage import ParseStatusCode
from tests.parser.formats import samples
from tests.parser.pages import fetched

DEFAULT = "VelvetSweatshop"
SALT, SECRET = b"salt" * 4, b"key." * 4
FILEPASS, BOUNDSHEET = 0x2F, 0x85
SHEET = struct.pack("<IBBBB", 1234, 0, 0, 5, 0) + b"Sheet"
Sealed = tuple[bytes, Callable[[int, bytes], bytes]]  # the record FilePass; what turns bytes at a place of the stream


def rc4(key: bytes, data: bytes) -> bytes:
    return Cipher(ARC4(key), mode=None).encryptor().update(data)


def blocks(key_of: Callable[[int], bytes]) -> Callable[[int, bytes], bytes]:
    def turn(at: int, data: bytes) -> bytes:
        out = b""
        while data:
            left = 1024 - at % 1024
            stream = rc4(key_of(at // 1024), bytes(at % 1024) + data[:left])
            out, data, at = out + stream[at % 1024 :], data[left:], at + left
        return out

    return turn


def basic(password: str) -> Sealed:
    first = hashlib.md5(password.encode("utf-16-le")).digest()[:5]
    second = hashlib.md5((first + SALT) * 16).digest()[:5]

    def key_of(block: int) -> bytes:
        return hashlib.md5(second + struct.pack("<I", block)).digest()

    checked = rc4(key_of(0), SECRET + hashlib.md5(SECRET).digest())
    return struct.pack("<HHH", 1, 1, 1) + SALT + checked, blocks(key_of)


def crypto_api(bits: int) -> Callable[[str], Sealed]:
    def seal(password: str) -> Sealed:
        first = hashlib.sha1(SALT + password.encode("utf-16-le")).digest()

        def key_of(block: int) -> bytes:
            return hashlib.sha1(first + struct.pack("<I", block)).digest()[: bits // 8].ljust(16, b"\0")

        checked = rc4(key_of(0), SECRET + hashlib.sha1(SECRET).digest())
        header = struct.pack("<8I", 4, 0, 0x6801, 0x8004, bits, 1, 0, 0) + b"C\0\0\0"
        filepass = struct.pack("<HHHII", 1, 4, 2, 4, len(header)) + header + struct.pack("<I", 16) + SALT
        return filepass + checked[:16] + struct.pack("<I", 20) + checked[16:], blocks(key_of)

    return seal


def xor(password: str) -> Sealed:
    """The key of the default password is 0xB359, its verifier 0x9A0A, as a workbook of Excel 95 has them."""
    right = password == DEFAULT
    array = [byte ^ (0xB3 if at % 2 else 0x59) for at, byte in enumerate((*DEFAULT.encode(), 0xBB))]
    array = [(byte << 2 | byte >> 6) & 0xFF for byte in array]

    def turn(at: int, data: bytes) -> bytes:
        mixed = [byte ^ array[(at + len(data) + place) % 16] for place, byte in enumerate(data)]
        return bytes((byte >> 3 | byte << 5) & 0xFF for byte in mixed)

    return struct.pack("<HHH", 0, 0xB359, 0x9A0A if right else 1), turn


def workbook(sealed: Sealed) -> bytes:
    filepass, turn = sealed
    out = samples.record(0x0809, struct.pack("<HH", 0x0600, 5) + bytes(12)) + samples.record(FILEPASS, filepass)
    cells = [(0x204, struct.pack("<HHHHB", row, 0, 0, 9, 0) + b"cell %04d" % row) for row in range(200)]
    for kind, data in [(BOUNDSHEET, SHEET), *cells]:
        mixed = turn(len(out) + 4, data)
        if kind == BOUNDSHEET:
            mixed = data[:4] + mixed[4:]
        out += samples.record(kind, mixed)
    return out


def parse(stream: bytes, conf: Configuration) -> Parse:
    found: Parse = OleParser(conf).parse("http://h.test/a.xls", fetched(samples.compound({"Workbook": stream}), "x/y"))
    return found


SEALS = [basic, crypto_api(40), crypto_api(128), xor]


@pytest.mark.parametrize("seal", SEALS, ids=["RC4", "CryptoAPI of 40 bits", "CryptoAPI of 128 bits", "XOR"])
def test_xls_with_default_password_is_decrypted(seal: Callable[[str], Sealed], conf: Configuration) -> None:
    found = parse(workbook(seal(DEFAULT)), conf)
    assert found.text.split("\n") == ["Sheet", *(f"cell {row:04}" for row in range(200))]
    found = parse(workbook(seal("another")), conf)
    assert (found.major, found.minor) == (ParseStatusCode.FAILED, ParseStatusCode.EXCEPTION)
    assert found.args[0] == "OleParser: encrypted: the workbook needs a password"


@pytest.mark.parametrize("seal", SEALS, ids=["RC4", "CryptoAPI of 40 bits", "CryptoAPI of 128 bits", "XOR"])
def test_xls_damaged_is_not_decrypted(seal: Callable[[str], Sealed]) -> None:
    filepass, _ = seal(DEFAULT)
    stream = workbook(seal(DEFAULT))
    assert decrypt_workbook(stream, filepass) is not None
    for end in range(len(filepass)):
        if end != 4:  # of such a length it is Excel 95's, and then of another password
            assert decrypt_workbook(stream, filepass[:end]) is None
    for end in range(40, len(stream), 97):
        assert len(decrypt_workbook(stream[:end], filepass) or b"") == end
    assert decrypt_workbook(stream, struct.pack("<H", 7) + filepass[2:]) is None
