"""The certificate authorities that this machine trusts: where they are stored, and whether there are any."""

from __future__ import annotations

import os
import re
import ssl
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

SYSTEM_FILES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/usr/share/ssl/certs/ca-bundle.crt",
    "/usr/local/share/certs/ca-root-nss.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)
"""Files of Debian, Red Hat, older systems, FreeBSD, SUSE, and Alpine or macOS."""
_CERTIFICATE_MARK = b"CERTIFICATE-----"
_HASHED_NAME = re.compile(r"[0-9a-f]{8}\.\d+")
"""Names under which OpenSSL finds the certificates of a folder."""
_SEARCHED_BYTES = 1 << 20  # of a file, for a first certificate


class CaStore(NamedTuple):
    """A file of certificates and a folder of them, each "" for none."""

    file: str = ""
    folder: str = ""

    @classmethod
    def of_system(cls) -> CaStore:
        """Return the store of ``SSL_CERT_FILE`` and ``SSL_CERT_DIR``, as OpenSSL reads them, or that of the system."""
        file, folder = os.environ.get("SSL_CERT_FILE", ""), os.environ.get("SSL_CERT_DIR", "")
        if file or folder:
            is_usable = Path(file).is_file() or not folder
            return cls(file if is_usable else "", folder)
        paths = ssl.get_default_verify_paths()
        file = next((each for each in (*SYSTEM_FILES, paths.openssl_cafile) if Path(each).is_file()), "")
        return cls(file, "" if file else paths.openssl_capath)

    def describe_absence(self, message: str) -> str:
        """Return the message of a failed check if the store is the reason; "" when it has certificates."""
        return "" if self.has_certificates() else f"this machine has no trusted certificates: {message}"

    def has_certificates(self) -> bool:
        """Return whether the store has a certificate at all: without one, no server can be trusted."""
        return _has_certificates(self, _version_of(self.file), _version_of(self.folder))


def _version_of(path: str) -> tuple[int, int] | None:
    """Return what changes with a file or folder: time of modification and size. None: there is none."""
    with suppress(OSError):
        if path:
            found = Path(path).stat()
            return found.st_mtime_ns, found.st_size
    return None


@lru_cache(maxsize=8)
def _has_certificates(store: CaStore, *_versions: tuple[int, int] | None) -> bool:
    """Read a store, once for each version of it: every failed check of a certificate asks."""
    with suppress(OSError):
        if store.file and _has_certificate(Path(store.file)):
            return True
    with suppress(OSError):
        if store.folder:
            return any(
                _has_certificate(each) for each in Path(store.folder).iterdir() if _HASHED_NAME.fullmatch(each.name)
            )
    return False


def _has_certificate(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return _CERTIFICATE_MARK in file.read(_SEARCHED_BYTES)
    except OSError:
        return False
