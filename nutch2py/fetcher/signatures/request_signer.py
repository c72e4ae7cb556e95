"""Signs requests as Web Bot Auth requires (draft-ietf-webbotauth-httpsig-protocol, on RFC 9421)."""

from __future__ import annotations

import base64
import secrets
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError
from nutch2py.fetcher.signatures.signing_keys import KeyFile, SigningKey, choose_key, require_cryptography

LIFETIME_SECONDS = 300
"""Seconds for which a signature is valid."""
_TAG = "web-bot-auth"
_LABEL = "sig1"
_DEFAULT_PORTS = {"https": 443, "http": 80}
_NONCE_BYTES = 32


class SignatureParams(NamedTuple):
    """Parameters of a signature. ``nonce``: "" for none."""

    created: int
    expires: int
    nonce: str
    tag: str


def sign_components(key: SigningKey, components: Mapping[str, str], params: SignatureParams) -> tuple[str, str]:
    """Return the values of ``Signature-Input`` and ``Signature``, without their label.

    Args:
        key: The key.
        components: Values by component identifier as it stands in the signature base: ``"@authority"``.
        params: The parameters.
    """
    nonce = f';nonce="{params.nonce}"' if params.nonce else ""
    signature_params = (
        f'({" ".join(components)});created={params.created};keyid="{key.thumbprint}";alg="ed25519"'
        f';expires={params.expires}{nonce};tag="{params.tag}"'
    )
    lines = [f"{name}: {value}" for name, value in components.items()]
    base = "\n".join([*lines, f'"@signature-params": {signature_params}'])
    return signature_params, f":{base64.b64encode(key.sign(base.encode('ascii'))).decode()}:"


class RequestSigner:
    """Signs requests over HTTPS.

    Args:
        keys: The keys; the newest valid one signs.
        agent: URL of the directory with the public keys, or its origin.
        is_plain_agent: Send ``Signature-Agent`` as a string, the form of older drafts.
        clock: Returns the time in seconds since 1970.
    """

    def __init__(
        self,
        keys: list[SigningKey],
        agent: str,
        *,
        is_plain_agent: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._keys, self._clock = keys, clock
        self._agent_header = f'"{agent}"' if is_plain_agent else f'{_LABEL}="{agent}"'
        self._agent_value = f'"{agent}"'
        self._agent_component = '"signature-agent"' if is_plain_agent else f'"signature-agent";key="{_LABEL}"'

    @classmethod
    def from_conf(cls, conf: Configuration) -> RequestSigner | None:
        """Read ``http.signature.*``; return None if ``http.signature.key.file`` is unset.

        Raises:
            ConfigurationError: The file cannot be read, has no valid key, or the agent is missing or malformed.
        """
        name = conf.get_trimmed("http.signature.key.file")
        if not name:
            return None
        require_cryptography("http.signature.key.file")
        agent = require_agent(conf)
        form = conf.get_trimmed("http.signature.agent.form", "dictionary")
        if form not in ("dictionary", "string"):
            raise ConfigurationError("property http.signature.agent.form is neither dictionary nor string: correct it")
        path = conf.absolute(name)
        keys = KeyFile(path).read()
        if choose_key(keys, time.time()) is None:
            raise ConfigurationError(
                f"no key of {path} (http.signature.key.file) is valid now: check the clock, or make a new one with "
                "nutch2py botkey -replace"
            )
        return cls(keys, agent, is_plain_agent=form == "string")

    def header_lines(self, url: str) -> tuple[str, ...]:
        """Return the header lines of a request, none for a URL that is not HTTPS, or when no key is valid.

        Each call makes a new signature with its own nonce.
        """
        authority = https_authority(url)
        now = int(self._clock())
        key = choose_key(self._keys, now) if authority else None
        if key is None:
            return ()
        nonce = base64.b64encode(secrets.token_bytes(_NONCE_BYTES)).decode()
        params = SignatureParams(now, now + LIFETIME_SECONDS, nonce, _TAG)
        components = {'"@authority"': authority, self._agent_component: self._agent_value}
        signature_input, signature = sign_components(key, components, params)
        return (
            f"Signature-Agent: {self._agent_header}",
            f"Signature-Input: {_LABEL}={signature_input}",
            f"Signature: {_LABEL}={signature}",
        )


def https_authority(url: str) -> str:
    """Return the authority of an HTTPS URL as RFC 9421 normalizes it; "" for other URLs.

    >>> https_authority("https://WWW.Example.org:443/a"), https_authority("https://a.org:8443"), https_authority("http://a/")
    ('www.example.org', 'a.org:8443', '')
    """
    if url[:6].lower() != "https:":
        return ""
    try:
        parts = urlsplit(url)
        host, port = (parts.hostname or "").lower(), parts.port
    except ValueError:
        return ""
    if not host.isascii() or '"' in host:
        return ""
    host = f"[{host}]" if ":" in host else host
    return host if port in (None, _DEFAULT_PORTS["https"]) else f"{host}:{port}"


def require_agent(conf: Configuration) -> str:
    """Return ``http.signature.agent``; raise ConfigurationError unless it is an HTTPS URL."""
    agent = conf.get_trimmed("http.signature.agent")
    if not https_authority(agent) or not agent.isprintable() or not agent.isascii() or '"' in agent or "\\" in agent:
        raise ConfigurationError(
            "property http.signature.agent is not an HTTPS URL: set it to the address of the directory of your keys, "
            "https://YOUR.HOST/.well-known/http-message-signatures-directory"
        )
    return agent
