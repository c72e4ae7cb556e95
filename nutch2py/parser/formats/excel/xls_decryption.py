"""Decrypts workbooks of Excel 5 to 2003 with Excel's default password ([MS-XLS] 2.2.10, [MS-OFFCRYPTO] 2.3)."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable
from itertools import cycle, islice

_DEFAULT_PASSWORD = "VelvetSweatshop"  # noqa: S105 - public: Excel opens files with it without asking
_BLOCK_BYTES = 1024  # of the stream, encrypted with one key
_XOR, _RC4 = 0, 1
_XOR_PAD = 0xBB  # the sixteenth byte of an XOR key, after the fifteen of the password
_BOUNDSHEET = 0x85  # its first four bytes are not encrypted
# records without encryption
_PLAIN_RECORDS = frozenset({0x09, 0x0209, 0x0409, 0x0809, 0x2F, 0xE1, 0x0194, 0x0195, 0x0196, 0x0138})
_HASH_REPEATS, _WEAK_KEY_BYTES = 16, 5  # repetitions and length of the first hash in the second
_RC4_BITS = frozenset({40, 56, 64, 80, 128})


def decrypt_workbook(stream: bytes, filepass: bytes) -> bytes | None:
    """Return a workbook with decrypted records, None when it has another password.

    ``filepass``: the data of its record FilePass, which stays in place.
    """
    try:
        kind = _XOR if len(filepass) == 4 else struct.unpack_from("<H", filepass)[0]
        if kind == _XOR:
            key, verifier = struct.unpack("<HH", filepass[-4:])
            return _decrypt_xor(stream, key) if verifier == _xor_verifier() else None
        if kind != _RC4:
            return None
        major, minor = struct.unpack_from("<HH", filepass, 2)
        key_of = _derive_rc4_key(filepass[6:54]) if (major, minor) == (1, 1) else _derive_crypto_api_key(filepass[6:])
    except struct.error:
        return None
    return None if key_of is None else _decrypt_rc4(stream, key_of)


def _xor_verifier() -> int:
    verifier = 0
    for byte in (*reversed(_DEFAULT_PASSWORD.encode()), len(_DEFAULT_PASSWORD)):
        verifier = ((verifier >> 14) & 1 | (verifier << 1) & 0x7FFF) ^ byte
    return verifier ^ 0xCE4B


def _decrypt_xor(stream: bytes, key: int) -> bytes:
    """Rotate every byte by three bits and remove the key of sixteen bytes, aligned to the end of the record."""
    low, high = key & 0xFF, key >> 8
    keys = [
        _rotate_left(byte ^ (high if at % 2 else low), 2)
        for at, byte in enumerate((*_DEFAULT_PASSWORD.encode(), _XOR_PAD))
    ]
    turn = bytes(_rotate_left(byte, 3) for byte in range(256))

    def opened(start: int, end: int) -> bytes:
        begin = end % 16
        pattern = bytes(islice(cycle(keys[begin:] + keys[:begin]), end - start))
        turned = int.from_bytes(stream[start:end].translate(turn), "little")
        return (turned ^ int.from_bytes(pattern, "little")).to_bytes(end - start, "little")

    return _decrypt_records(stream, opened)


def _rotate_left(byte: int, bits: int) -> int:
    return (byte << bits | byte >> (8 - bits)) & 0xFF


def _md5(data: bytes) -> bytes:
    return hashlib.md5(data, usedforsecurity=False).digest()


def _sha1(data: bytes) -> bytes:
    return hashlib.sha1(data, usedforsecurity=False).digest()


def _derive_rc4_key(info: bytes) -> Callable[[int], bytes] | None:
    """Return a function from block number to key, None for another password. ``info``: salt, verifier and its hash."""
    salt, verifier, expected = info[:16], info[16:32], info[32:48]
    first = _md5(_DEFAULT_PASSWORD.encode("utf-16-le"))[:_WEAK_KEY_BYTES]
    weak = _md5((first + salt) * _HASH_REPEATS)[:_WEAK_KEY_BYTES]

    def key_of(block: int) -> bytes:
        return _md5(weak + struct.pack("<I", block))

    opened = _rc4(key_of(0), verifier + expected)
    return key_of if len(expected) == 16 and _md5(opened[:16]) == opened[16:] else None


def _derive_crypto_api_key(info: bytes) -> Callable[[int], bytes] | None:
    (size,) = struct.unpack_from("<I", info, 4)
    (bits,) = struct.unpack_from("<I", info, 8 + 16)
    at = 8 + size + 4
    salt, verifier, expected = info[at : at + 16], info[at + 16 : at + 32], info[at + 36 : at + 56]
    if (bits or 40) not in _RC4_BITS or len(expected) < 20:
        return None
    digest = _sha1(salt + _DEFAULT_PASSWORD.encode("utf-16-le"))

    def key_of(block: int) -> bytes:
        key = _sha1(digest + struct.pack("<I", block))[: (bits or 40) // 8]
        return key.ljust(16, b"\0") if len(key) == _WEAK_KEY_BYTES else key

    opened = _rc4(key_of(0), verifier + expected)
    return key_of if _sha1(opened[:16]) == opened[16:36] else None


def _rc4(key: bytes, data: bytes) -> bytes:
    from cryptography.hazmat.decrepit.ciphers.algorithms import ARC4
    from cryptography.hazmat.primitives.ciphers import Cipher

    return Cipher(ARC4(key), mode=None).decryptor().update(data)


def _decrypt_rc4(stream: bytes, key_of: Callable[[int], bytes]) -> bytes:
    """Decrypt the stream block by block; record headers count as positions but are not encrypted."""
    blocks = range(0, len(stream), _BLOCK_BYTES)
    whole = b"".join(_rc4(key_of(number), stream[at : at + _BLOCK_BYTES]) for number, at in enumerate(blocks))
    return _decrypt_records(stream, lambda start, end: whole[start:end])


def _decrypt_records(stream: bytes, opened: Callable[[int, int], bytes]) -> bytes:
    """Return the stream with the data of its records decrypted."""
    out = bytearray(stream)
    at = 0
    while at + 4 <= len(stream):
        kind, size = struct.unpack_from("<HH", stream, at)
        start, end = at + 4, min(at + 4 + size, len(stream))
        if kind not in _PLAIN_RECORDS:
            data = opened(start, end)
            kept = min(4, end - start) if kind == _BOUNDSHEET else 0
            out[start + kept : end] = data[kept:]
        at = start + size
    return bytes(out)
