"""The directory of public keys, as sites request it to verify signatures."""

from __future__ import annotations

import base64
import hashlib
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass

from nutch2py.fetcher.signatures.request_signer import LIFETIME_SECONDS, SignatureParams, sign_components
from nutch2py.fetcher.signatures.signing_keys import SigningKey

DIRECTORY_PATH = "/.well-known/http-message-signatures-directory"
MEDIA_TYPE = "application/http-message-signatures-directory+json"
MAX_AGE_SECONDS = 3600
_TAG = "http-message-signatures-directory"


@dataclass(frozen=True)
class KeyDirectory:
    """The response to a request for the directory."""

    body: bytes
    headers: dict[str, str]


def build_directory(keys: Sequence[SigningKey], authority: str) -> KeyDirectory:
    """Return the directory of the keys that have not ended, signed by each that is valid now.

    ``authority``: host of the directory's address.
    """
    now = int(time.time())
    current = [key for key in keys if key.expires is None or key.expires > now]
    body = json.dumps({"keys": [key.public_jwk() for key in current]}).encode()
    digest = hashlib.sha256(body).digest()
    headers = {
        "Content-Type": MEDIA_TYPE,
        "Cache-Control": f"public, max-age={MAX_AGE_SECONDS}",
        "ETag": f'"{digest.hex()[:32]}"',
        "Content-Digest": f"sha-256=:{base64.b64encode(digest).decode()}:",
    }
    inputs, signatures = [], []
    for number, key in enumerate((key for key in current if key.is_valid_at(now)), 1):
        params = SignatureParams(now, now + LIFETIME_SECONDS, "", _TAG)
        components = {'"@authority";req': authority, '"content-digest"': headers["Content-Digest"]}
        signature_input, signature = sign_components(key, components, params)
        inputs.append(f"sig{number}={signature_input}")
        signatures.append(f"sig{number}={signature}")
    if inputs:
        headers |= {"Signature-Input": ", ".join(inputs), "Signature": ", ".join(signatures)}
    return KeyDirectory(body, headers)
