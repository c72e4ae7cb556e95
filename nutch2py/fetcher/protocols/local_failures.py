"""Recognizes failures of this machine, its network, its DNS servers and its proxy, which say nothing about a page."""

from __future__ import annotations

import errno
import os
import socket
import ssl
from collections.abc import Iterable, Sequence
from typing import Any

from nutch2py.errors import iter_causes
from nutch2py.fetcher.protocols.address_filter import AddressExcludedError
from nutch2py.fetcher.protocols.ca_store import CaStore
from nutch2py.fetcher.protocols.fetch_response import FailureKind, FetchFailure, FetchResponse
from nutch2py.fetcher.runtime.fd_budget import describe_socket_error

NETWORK_ERRNOS = frozenset(
    {errno.ENETUNREACH, errno.ENETDOWN, errno.EADDRNOTAVAIL, errno.EPERM, errno.EACCES, errno.EAFNOSUPPORT}
)
"""Errors of ``connect`` that the machine or its own network raises: no route, no free port, a local firewall."""
_DISK_ERRNOS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.ESTALE, errno.ENODEV})
_PROXY_REFUSALS = frozenset({403, 405, 407, 501})
"""Responses of a proxy to CONNECT that are about the client or the proxy's rules, not about the server."""
_PROXY_STATUS_ERRORS = (
    "http_request_denied", "destination_ip_prohibited", "proxy_internal_response", "proxy_internal_error",
    "proxy_configuration_error", "proxy_loop_detected",
)  # fmt: skip
"""Error types of the header Proxy-Status that are about the proxy itself (RFC 9209, 2.3)."""
_SQUID_ERRORS = (
    "ERR_ACCESS_DENIED", "ERR_CACHE_ACCESS_DENIED", "ERR_CACHE_MGR_ACCESS_DENIED", "ERR_CANNOT_FORWARD",
    "ERR_SOCKET_FAILURE", "ERR_FORWARDING_DENIED",
)  # fmt: skip
"""Error names of Squid that are about the proxy itself."""
_PROXY_EXCEPTIONS = frozenset({"ClientProxyConnectionError", "ProxyError", "ProxyConnectionError"})
"""Exceptions of the HTTP libraries behind Scrapy's handlers for a proxy that cannot be used."""


class DnsUnavailableError(socket.gaierror):
    """No DNS server answered, neither for this host nor for any other during its lookup."""


def has_route(address: str) -> bool:
    """Return whether the routing table of this machine has a route to an address; sends nothing."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((address.strip("[]"), 9))
    except OSError:
        return False
    return True


def is_network_failure(error_number: int, addresses: Sequence[str]) -> bool:
    """Return whether a connection failed for a reason of this machine or its network.

    Args:
        error_number: ``errno`` of the last attempt, 0 if unknown.
        addresses: Addresses of the host, if known. One with a route means that a server was really tried.
    """
    if error_number in NETWORK_ERRNOS:
        return len(addresses) < 2 or not any(has_route(address) for address in addresses)
    return bool(addresses) and not any(has_route(address) for address in addresses)


def describe_network_failure(message: str) -> str:
    """Return the message of a failure for which the network of this machine is the cause."""
    return f"no network route from this machine: {message}"


def describe_proxy_failure(message: str) -> str:
    """Return the message of a failure for which the proxy is the cause."""
    return f"the proxy (http.proxy.host) cannot be used: {message}"


def find_proxy_refusal(response: FetchResponse, connect_status: int = 0) -> str:
    """Return why a proxy, and not the server, caused a response; "" if the server did, or if it is unknown.

    Args:
        response: Response received through a proxy, or its headers.
        connect_status: Status of the response to CONNECT, 0 without one.
    """
    status = connect_status or response.status
    if status == 407:
        return "it requires a login (407): set http.proxy.username and http.proxy.password"
    if connect_status in _PROXY_REFUSALS:
        return f"it denies the connection ({connect_status})"
    if status < 400:
        return ""
    proxy_status = (response.get_header("Proxy-Status") or "").lower()
    if error := next((each for each in _PROXY_STATUS_ERRORS if f"error={each}" in proxy_status.replace(" ", "")), ""):
        return f"it reports {error}"
    squid_error = (response.get_header("X-Squid-Error") or "").partition(" ")[0]
    return f"it reports {squid_error}" if squid_error in _SQUID_ERRORS else ""


def find_local_failure(
    error: BaseException, excluded_errors: Iterable[AddressExcludedError] = ()
) -> FetchFailure | None:
    """Return the failure of this machine that an exception of a handler stands for, or None.

    An error of the address filter may be wrapped, or remain only as text: ``excluded_errors`` has those of the request.
    """
    for cause in iter_causes(error):
        if isinstance(cause, AddressExcludedError):
            return FetchFailure(FailureKind.ADDRESS_FILTER, str(cause))
        if isinstance(cause, DnsUnavailableError):
            return FetchFailure(FailureKind.DNS_UNAVAILABLE, str(cause.strerror))
        if type(cause).__name__ in _PROXY_EXCEPTIONS:
            return FetchFailure(FailureKind.PROXY, describe_proxy_failure(str(cause)))
        if type(cause).__name__ == "ClientHttpProxyError":  # of aiohttp: the response to CONNECT
            error_with_status: Any = cause
            if refusal := find_proxy_refusal(FetchResponse(""), int(error_with_status.status)):
                return FetchFailure(FailureKind.PROXY, describe_proxy_failure(refusal))
        if isinstance(cause, ssl.SSLCertVerificationError):
            absence = CaStore.of_system().describe_absence(cause.verify_message)
            return FetchFailure(FailureKind.TLS_SETUP, absence) if absence else None
        if isinstance(cause, OSError) and (failure := _from_errno(cause)):
            return failure
    excluded = next(iter(excluded_errors), None)
    return None if excluded is None else FetchFailure(FailureKind.ADDRESS_FILTER, str(excluded))


def _from_errno(error: OSError) -> FetchFailure | None:
    number = error.errno or 0
    if description := describe_socket_error(number):
        return FetchFailure(FailureKind.SOCKET, description)
    if number in _DISK_ERRNOS:
        return FetchFailure(FailureKind.DISK, f"cannot read or write on this machine: {os.strerror(number)}")
    if number in (errno.ENETUNREACH, errno.ENETDOWN, errno.EADDRNOTAVAIL):
        return FetchFailure(FailureKind.NETWORK, describe_network_failure(os.strerror(number)))
    return None
