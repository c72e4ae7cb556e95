"""The certificate authorities that this machine trusts: where they are stored, and whether there are any."""

from __future__ import annotations

import os
import re
import ssl
from contextlib import suppress
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
        with suppress(OSError):
            if self.file and _has_certificate(Path(self.file)):
                return True
        with suppress(OSError):
            if self.folder:
                return any(
                    _has_certificate(each) for each in Path(self.folder).iterdir() if _HASHED_NAME.fullmatch(each.name)
                )
        return False


def _has_certificate(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return _CERTIFICATE_MARK in file.read(_SEARCHED_BYTES)
    except OSError:
        return False
