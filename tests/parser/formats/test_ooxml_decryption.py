"""Workbooks encrypted with Excel's default password for write protection."""

from __future__ import annotations

import hashlib
import struct
from base64 import b64encode

import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from nutch2py.conf.configuration import Configuration
from nutch2py.parser.formats.excel import ooxml_decryption
from nutch2py.parser.formats.office.ole import OleParser
from nutch2py.records.webpage import ParseStatusCode
from tests.parser.formats import samples
from tests.parser.pages import fetched

PACKAGE = samples.xlsx('<row><c t="s"><v>0</v></c></row>', "<si><t>seen</t></si>")
SALT, SECRET = b"salt" * 4, b"key." * 4
BLOCKS = (bytes.fromhex("fea7d2763b4b9e79"), bytes.fromhex("d7aa0f6d3061344e"), bytes.fromhex("146e0be7abacd0d6"))


def sealed(key: bytes, data: bytes, iv: bytes | None = None) -> bytes:
    data += bytes(-len(data) % 16)
    cipher = Cipher(algorithms.AES(key), modes.CBC(iv) if iv else modes.ECB()).encryptor()
    return cipher.update(data) + cipher.finalize()


def spun(name: str, password: str, spins: int) -> bytes:
    digest = hashlib.new(name, SALT + password.encode("utf-16-le")).digest()
    for number in range(spins):
        digest = hashlib.new(name, struct.pack("<I", number) + digest).digest()
    return digest


def standard(password: str) -> dict[str, bytes]:
    digest = hashlib.sha1(spun("sha1", password, 50_000) + bytes(4)).digest()
    key = hashlib.sha1(bytes(0x36 ^ byte for byte in digest.ljust(64, b"\0"))).digest()[:16]
    header = struct.pack("<8I", 36, 0, 0x660E, 0x8004, 128, 24, 0, 0) + b"\0\0"
    verifier = struct.pack("<I", 16) + SALT + sealed(key, SECRET) + struct.pack("<I", 20)
    verifier += sealed(key, hashlib.sha1(SECRET).digest())
    info = struct.pack("<HHII", 4, 2, 36, len(header)) + header + verifier
    return {"EncryptionInfo": info, "EncryptedPackage": struct.pack("<Q", len(PACKAGE)) + sealed(key, PACKAGE)}


def agile(password: str, spins: int = 1000) -> dict[str, bytes]:
    digest = spun("sha512", password, spins)
    keys = [hashlib.sha512(digest + block).digest()[:32] for block in BLOCKS]
    checked = hashlib.sha512(SECRET).digest()
    texts = [b64encode(sealed(k, d, SALT)).decode() for k, d in zip(keys, (SECRET, checked, SECRET * 2), strict=True)]
    same = f'saltValue="{b64encode(SALT).decode()}" hashAlgorithm="SHA512" keyBits="256" blockSize="16"'
    info = (
        f'<encryption><keyData {same} cipherChaining="ChainingModeCBC"/><keyEncryptors><keyEncryptor>'
        f'<encryptedKey {same} spinCount="{spins}" encryptedVerifierHashInput="{texts[0]}" '
        f'encryptedVerifierHashValue="{texts[1]}" encryptedKeyValue="{texts[2]}"/></keyEncryptor></keyEncryptors>'
        "</encryption>"
    )
    data = b""
    for number, start in enumerate(range(0, len(PACKAGE), 4096)):
        iv = hashlib.sha512(SALT + struct.pack("<I", number)).digest()[:16]
        data += sealed(SECRET * 2, PACKAGE[start : start + 4096], iv)
    packed = struct.pack("<HHI", 4, 4, 64) + info.encode()
    return {"EncryptionInfo": packed, "EncryptedPackage": struct.pack("<Q", len(PACKAGE)) + data}


@pytest.mark.parametrize("make", [standard, agile])
def test_xlsx_with_default_password_is_decrypted(make: object, conf: Configuration) -> None:
    assert callable(make)
    found = OleParser(conf).parse("http://h.test/a.xlsx", fetched(samples.compound(make("VelvetSweatshop")), "x/y"))
    assert found.major == ParseStatusCode.SUCCESS
    assert "seen" in found.text
    found = OleParser(conf).parse("http://h.test/a.xlsx", fetched(samples.compound(make("another")), "x/y"))
    assert (found.major, found.minor) == (ParseStatusCode.FAILED, ParseStatusCode.EXCEPTION)
    assert "encrypted" in found.args[0]


def test_xlsx_damaged_or_too_expensive_is_not_decrypted() -> None:
    files = agile("VelvetSweatshop", 10)
    info, package = files["EncryptionInfo"], files["EncryptedPackage"]
    assert ooxml_decryption.decrypt_package(info, package) == PACKAGE
    for wrong in (
        info[:6], info[:60], info.replace(b'"10"', b'"999999999"'), info.replace(b"CBC", b"CFB"),
        info.replace(b"SHA512", b"MD5"), info.replace(b"256", b"255"), info.replace(b'"16"', b'"0"'), b"",
    ):  # fmt: skip
        assert ooxml_decryption.decrypt_package(wrong, package) is None
    assert ooxml_decryption.decrypt_package(info, package[:5]) is None
