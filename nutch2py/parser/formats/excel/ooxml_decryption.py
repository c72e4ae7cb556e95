"""Decrypts workbooks encrypted with Excel's default password, which Excel opens without a prompt ([MS-OFFCRYPTO])."""

from __future__ import annotations

import hashlib
import struct
from base64 import b64decode
from typing import NamedTuple

from nutch2py.parser.formats.containers.zip_package import xml_events
from nutch2py.parser.formats.document_parser import parse_int

_DEFAULT_PASSWORD = "VelvetSweatshop".encode("utf-16-le")
_STANDARD_SPINS, _MAX_SPINS = 50_000, 200_000  # Office uses 100,000
_SEGMENT_BYTES = 4096
_AES_KEYS = (128, 192, 256)
_HASH_NAMES = {"SHA1": "sha1", "SHA-1": "sha1", "SHA256": "sha256", "SHA384": "sha384", "SHA512": "sha512"}
# block keys of agile encryption
_VERIFIER_INPUT_BLOCK, _VERIFIER_VALUE_BLOCK, _KEY_VALUE_BLOCK = (
    bytes.fromhex(key) for key in ("fea7d2763b4b9e79", "d7aa0f6d3061344e", "146e0be7abacd0d6")
)


def decrypt_package(info: bytes, package: bytes) -> bytes | None:
    """Return the package of an encrypted document, None when it has another password.

    ``info`` and ``package``: the streams EncryptionInfo and EncryptedPackage.
    """
    try:
        major, minor = struct.unpack_from("<HH", info)
        (size,) = struct.unpack_from("<Q", package)
        data = package[8 : 8 + (len(package) - 8) // 16 * 16]
        if (major, minor) == (4, 4):
            opened = _decrypt_agile(info[8:], data)
        elif minor == 2 and major in (2, 3, 4):
            opened = _decrypt_standard(info, data)
        else:
            return None
    except (struct.error, ValueError, KeyError):
        return None
    return None if opened is None else opened[:size]


def _decrypt_aes(key: bytes, data: bytes, iv: bytes | None = None) -> bytes:
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    mode = modes.CBC(iv) if iv is not None else modes.ECB()  # noqa: S305 - the mode of the format
    cipher = Cipher(algorithms.AES(key), mode).decryptor()
    return cipher.update(data) + cipher.finalize()


def _iterate_hash(name: str, salt: bytes, spins: int) -> bytes:
    digest = hashlib.new(name, salt + _DEFAULT_PASSWORD).digest()
    for number in range(spins):
        digest = hashlib.new(name, number.to_bytes(4, "little") + digest).digest()
    return digest


def _sha1(data: bytes) -> bytes:
    return hashlib.sha1(data, usedforsecurity=False).digest()


def _decrypt_standard(info: bytes, data: bytes) -> bytes | None:
    (length,) = struct.unpack_from("<I", info, 8)
    (bits,) = struct.unpack_from("<I", info, 12 + 16)
    if bits not in _AES_KEYS:
        return None
    at = 12 + length
    salt, verifier, expected = info[at + 4 : at + 20], info[at + 20 : at + 36], info[at + 40 : at + 72]
    digest = _sha1(_iterate_hash("sha1", salt, _STANDARD_SPINS) + bytes(4))
    key = b"".join(_sha1(bytes(pad ^ byte for byte in digest.ljust(64, b"\0"))) for pad in (0x36, 0x5C))[: bits // 8]
    if _sha1(_decrypt_aes(key, verifier)) != _decrypt_aes(key, expected)[:20]:
        return None
    return _decrypt_aes(key, data)


class _KeyParams(NamedTuple):
    """Encryption parameters of an element of the description."""

    salt: bytes
    hash_name: str
    key_bits: int
    block_size: int


def _decrypt_agile(description: bytes, data: bytes) -> bytes | None:
    found = {
        event.name: event.attributes
        for event in xml_events(description)
        if event.kind == "start" and event.name in ("keyData", "encryptedKey")
    }
    whole, password = found["keyData"], found["encryptedKey"]
    of_data, of_key = (
        _KeyParams(
            b64decode(each["saltValue"]),
            _HASH_NAMES[each["hashAlgorithm"].upper()],
            parse_int(each["keyBits"]),
            parse_int(each["blockSize"]),
        )
        for each in (whole, password)
    )
    spins = parse_int(password["spinCount"], _MAX_SPINS + 1)
    if of_key.key_bits not in _AES_KEYS or of_data.key_bits not in _AES_KEYS or spins > _MAX_SPINS:
        return None
    if (of_key.block_size, of_data.block_size) != (16, 16) or whole["cipherChaining"] != "ChainingModeCBC":
        return None
    digest = _iterate_hash(of_key.hash_name, of_key.salt, spins)

    def opened(block: bytes, name: str) -> bytes:
        key = (
            hashlib.new(of_key.hash_name, digest + block)
            .digest()[: of_key.key_bits // 8]
            .ljust(of_key.key_bits // 8, b"6")
        )
        return _decrypt_aes(key, b64decode(password[name]), of_key.salt[:16].ljust(16, b"6"))

    checked = hashlib.new(of_key.hash_name, opened(_VERIFIER_INPUT_BLOCK, "encryptedVerifierHashInput")).digest()
    if opened(_VERIFIER_VALUE_BLOCK, "encryptedVerifierHashValue")[: len(checked)] != checked:
        return None
    key = opened(_KEY_VALUE_BLOCK, "encryptedKeyValue")[: of_data.key_bits // 8]
    parts = []
    for number, start in enumerate(range(0, len(data), _SEGMENT_BYTES)):
        iv = hashlib.new(of_data.hash_name, of_data.salt + number.to_bytes(4, "little")).digest()[:16]
        parts.append(_decrypt_aes(key, data[start : start + _SEGMENT_BYTES], iv))
    return b"".join(parts)
