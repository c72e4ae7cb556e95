"""The Ed25519 keys of ``http.signature.key.file``: JSON Web Keys (RFC 8037) in a file that only its owner can read."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import stat
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nutch2py.errors import ConfigurationError, InputError
from nutch2py.support.atomic_files import replace_file
from nutch2py.support.disk_errors import raise_disk_error
from nutch2py.support.file_locks import file_lock

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

OVERLAP_SECONDS = 86_400
"""Seconds for which the old key remains in use after a rotation: verifiers keep a directory for about a day."""
_KEY_BYTES = 32
_MAX_FILE_BYTES = 1 << 20
_INSTALL = "pip install 'nutch2py[bot-auth]'"


def require_cryptography(used_by: str) -> None:
    """Raise a ConfigurationError with installation instructions when the package cryptography is not installed."""
    try:
        import cryptography.hazmat.primitives.asymmetric.ed25519  # noqa: F401 - only whether it is there
    except ImportError as error:
        raise ConfigurationError(
            f"{used_by} needs the package cryptography, which is not installed ({error}): {_INSTALL}"
        ) from None


def encode_base64url(data: bytes) -> str:
    """Return Base64 for URLs without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


@dataclass(frozen=True, repr=False)
class SigningKey:
    """A key pair. Times are seconds since 1970.

    Attributes:
        public: The public key, 32 bytes.
        seed: The private key, 32 bytes. It is in no message: ``repr`` shows the thumbprint only.
        not_before: Start of its use.
        expires: End of its use; None for no end.
    """

    public: bytes
    seed: bytes
    not_before: int
    expires: int | None = None

    def __repr__(self) -> str:
        return f"SigningKey({self.thumbprint})"

    @classmethod
    def generate(cls, not_before: int) -> SigningKey:
        """Return a new key."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        private = Ed25519PrivateKey.generate()
        return cls(private.public_key().public_bytes_raw(), private.private_bytes_raw(), not_before)

    @cached_property
    def thumbprint(self) -> str:
        """SHA-256 of the public key as RFC 7638 and RFC 8037 define it, the ``keyid`` of signatures."""
        members = {"crv": "Ed25519", "kty": "OKP", "x": encode_base64url(self.public)}
        text = json.dumps(members, sort_keys=True, separators=(",", ":"))
        return encode_base64url(hashlib.sha256(text.encode()).digest())

    @cached_property
    def _private_key(self) -> Ed25519PrivateKey:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        return Ed25519PrivateKey.from_private_bytes(self.seed)

    def sign(self, data: bytes) -> bytes:
        """Return the signature of data, 64 bytes."""
        return self._private_key.sign(data)

    def is_valid_at(self, now: float) -> bool:
        """Return whether signatures may be made with the key."""
        return self.not_before <= now and (self.expires is None or now < self.expires)

    def public_jwk(self) -> dict[str, Any]:
        """Return the public key as a JSON Web Key for a directory."""
        jwk: dict[str, Any] = {
            "kty": "OKP", "crv": "Ed25519", "kid": self.thumbprint, "x": encode_base64url(self.public), "use": "sig",
            "nbf": self.not_before,
        }  # fmt: skip
        return jwk if self.expires is None else {**jwk, "exp": self.expires}


class KeyFile:
    """A file with key pairs, mode 600: of several, the newest valid one signs."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> list[SigningKey]:
        """Return the keys; raise ConfigurationError for a file that is missing, open to others, or malformed."""
        try:
            status = self.path.stat()
            if not stat.S_ISREG(status.st_mode) or status.st_size > _MAX_FILE_BYTES:
                message = f"{self.path} (http.signature.key.file) is not a file of nutch2py botkey"
                raise ConfigurationError(f"{message}: correct the property")
            if status.st_mode & 0o077:
                raise ConfigurationError(
                    f"{self.path} (http.signature.key.file) can be read by others: chmod 600 {self.path}; if somebody "
                    "may have read it, make a new key: nutch2py botkey -replace"
                )
            text = self.path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "not text"
            raise ConfigurationError(
                f"cannot read the keys in {self.path}: {reason}: create one with nutch2py botkey, or correct "
                "http.signature.key.file"
            ) from None  # the cause of a decoding error holds the file's bytes
        keys = _parse_keys(text)
        if not keys:
            message = f"{self.path} (http.signature.key.file) is not a file of nutch2py botkey, or is damaged"
            raise ConfigurationError(f"{message}: restore it, or delete it and run nutch2py botkey")
        return keys

    def create(self) -> SigningKey:
        """Write the file with a first key; raise InputError if the file exists."""
        key = SigningKey.generate(int(time.time()))
        with self._lock():
            if self.path.exists():
                message = "nutch2py botkey -rotate adds a key, -show prints the directory"
                raise InputError(f"{self.path} exists: {message}")
            self._write([key])
        return key

    def rotate(self) -> SigningKey:
        """Add a key whose use starts in a day, when that of the old ones ends; remove those that have ended."""
        now = int(time.time())
        key = SigningKey.generate(now + OVERLAP_SECONDS)
        with self._lock():
            kept = [
                SigningKey(old.public, old.seed, old.not_before, min(old.expires or end, end))
                for end in [key.not_before]
                for old in self.read()
                if old.expires is None or old.expires > now
            ]
            self._write([*kept, key])
        return key

    def replace(self) -> SigningKey:
        """Replace all keys by a new one at once: for a key that others may know."""
        key = SigningKey.generate(int(time.time()))
        with self._lock():
            self._write([key])
        return key

    @contextmanager
    def _lock(self) -> Iterator[None]:
        """Exclude other changes of the file; raise InputError when it cannot be written."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with file_lock(self.path.with_name(f"{self.path.name}.lock")):
                yield
        except OSError as error:
            raise_disk_error(error, self.path)
            raise InputError(f"cannot write {self.path}: {error.strerror}: correct http.signature.key.file") from error

    def _write(self, keys: Iterable[SigningKey]) -> None:
        members = [{**key.public_jwk(), "d": encode_base64url(key.seed)} for key in keys]
        with replace_file(self.path, mode=0o600) as file:
            file.write(json.dumps({"keys": members}, indent=1).encode() + b"\n")


def choose_key(keys: Sequence[SigningKey], now: float) -> SigningKey | None:
    """Return the newest key that is valid now, None without one."""
    valid = [key for key in keys if key.is_valid_at(now)]
    return max(valid, key=lambda key: key.not_before, default=None)


def _parse_keys(text: str) -> list[SigningKey]:
    """Return the keys of a file, none for a malformed one: no message quotes it."""
    try:
        return [_parse_key(jwk) for jwk in json.loads(text)["keys"]]
    except (ValueError, TypeError, KeyError, RecursionError, AttributeError):
        return []


def _parse_key(jwk: dict[str, Any]) -> SigningKey:
    if (jwk["kty"], jwk["crv"]) != ("OKP", "Ed25519"):
        raise ValueError
    public, seed = _decode_base64url(jwk["x"]), _decode_base64url(jwk["d"])
    expires = jwk.get("exp")
    key = SigningKey(public, seed, int(jwk["nbf"]), None if expires is None else int(expires))
    if len(seed) != _KEY_BYTES or key._private_key.public_key().public_bytes_raw() != public:
        raise ValueError
    return key


def _decode_base64url(text: str) -> bytes:
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except binascii.Error:
        raise ValueError from None
