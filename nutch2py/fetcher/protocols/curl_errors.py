"""Maps libcurl's error codes and messages to failure kinds and retry hints."""

from __future__ import annotations

import pycurl

from nutch2py.fetcher.protocols.fetch_response import FailureKind, RetryHint

_WEIRD_SERVER_REPLY = pycurl.E_FTP_WEIRD_SERVER_REPLY  # CURLE_WEIRD_SERVER_REPLY under pycurl's older name
PROXY_HANDSHAKE_CODE = 97
"""CURLE_PROXY, missing in pycurl: the handshake with a SOCKS proxy failed."""
FAILURE_KINDS = {
    pycurl.E_COULDNT_RESOLVE_HOST: FailureKind.DNS,
    pycurl.E_COULDNT_RESOLVE_PROXY: FailureKind.PROXY,
    PROXY_HANDSHAKE_CODE: FailureKind.PROXY,
    pycurl.E_INTERFACE_FAILED: FailureKind.NETWORK,
    pycurl.E_OPERATION_TIMEDOUT: FailureKind.TIMEOUT,
    pycurl.E_GOT_NOTHING: FailureKind.CLOSED,
    pycurl.E_RECV_ERROR: FailureKind.CLOSED,
    pycurl.E_SEND_ERROR: FailureKind.CLOSED,
    pycurl.E_PARTIAL_FILE: FailureKind.CLOSED,
    pycurl.E_UNSUPPORTED_PROTOCOL: FailureKind.PROTOCOL,  # libcurl: HTTP/0.9, an unknown version
    pycurl.E_BAD_CONTENT_ENCODING: FailureKind.PROTOCOL,
    pycurl.E_URL_MALFORMAT: FailureKind.URL,
    _WEIRD_SERVER_REPLY: FailureKind.PROTOCOL,
    pycurl.E_SSL_CONNECT_ERROR: FailureKind.TLS,
    pycurl.E_PEER_FAILED_VERIFICATION: FailureKind.TLS,
    # the remaining TLS codes of this block are about local files and settings, before any server is involved
    pycurl.E_SSL_ENGINE_NOTFOUND: FailureKind.TLS_SETUP,
    pycurl.E_SSL_ENGINE_SETFAILED: FailureKind.TLS_SETUP,
    pycurl.E_SSL_ENGINE_INITFAILED: FailureKind.TLS_SETUP,
    pycurl.E_SSL_CERTPROBLEM: FailureKind.TLS_SETUP,
    pycurl.E_SSL_CIPHER: FailureKind.TLS_SETUP,
    pycurl.E_SSL_CACERT_BADFILE: FailureKind.TLS_SETUP,
    pycurl.E_SSL_SHUTDOWN_FAILED: FailureKind.TLS,
    pycurl.E_SSL_CRL_BADFILE: FailureKind.TLS_SETUP,
    pycurl.E_SSL_ISSUER_ERROR: FailureKind.TLS,
    pycurl.E_SSL_PINNEDPUBKEYNOTMATCH: FailureKind.TLS,
    pycurl.E_SSL_INVALIDCERTSTATUS: FailureKind.TLS,
    pycurl.E_USE_SSL_FAILED: FailureKind.TLS,
    98: FailureKind.TLS_SETUP,  # CURLE_SSL_CLIENTCERT, missing in pycurl
}
"""Failure kind by libcurl code; any other code is FailureKind.OTHER."""
RETRY_HINTS: dict[int, tuple[tuple[str, RetryHint], ...]] = {
    pycurl.E_SEND_ERROR: (("Connection died", RetryHint.DEAD_CONNECTIONS),),
    _WEIRD_SERVER_REPLY: (
        ("Header without colon", RetryHint.MALFORMED_HEADERS),
        ("NUL byte in header", RetryHint.MALFORMED_HEADERS),
        ("Carriage return", RetryHint.MALFORMED_HEADERS),
        ("Content-Length", RetryHint.BAD_CONTENT_LENGTH),
    ),
    # a transfer encoding that was not requested; libcurl does not decode content encodings here
    pycurl.E_BAD_CONTENT_ENCODING: (("", RetryHint.MALFORMED_HEADERS),),
}
"""Retry hint by libcurl code and a fragment of its message, where one code has several meanings.

Only this table depends on the messages; tests/fetcher/test_curl_errors.py provokes each of them in libcurl.
"""


def get_retry_hint(code: int, message: str) -> RetryHint:
    """Return the retry hint for libcurl's code and message."""
    return next((hint for fragment, hint in RETRY_HINTS.get(code, ()) if fragment in message), RetryHint.NONE)
