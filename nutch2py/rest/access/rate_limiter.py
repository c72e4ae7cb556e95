"""Rate limits of clients: requests per second, by token or address."""

from __future__ import annotations

import ipaddress
import math
import threading
import time
from collections import OrderedDict
from http import HTTPStatus

from nutch2py.rest.http_error import HttpError

_MAX_CLIENTS = 4096  # clients with a rate limit state
_RATE_SOURCES = ("by this token", "rest.requests.per.second")
_BURST_SECONDS = 5  # a client may send the requests of this time at once
_IPV6_PREFIX_BITS = 64  # a client can choose the other bits of its IPv6 address


class RateLimiter:
    """Token bucket per client: a rate in requests per second, with bursts of a few seconds.

    Attributes:
        per_second: Rate of clients without one of their own, 0 for unlimited; may be changed while requests run.
    """

    def __init__(self, per_second: float) -> None:
        self.per_second = per_second
        self._lock = threading.Lock()
        self._buckets: OrderedDict[tuple[str, str], tuple[float, float]] = OrderedDict()

    @property
    def tracked_clients(self) -> list[tuple[str, str]]:
        """Clients whose bucket is in memory, the least recent first."""
        with self._lock:
            return [*self._buckets]

    def check(self, client: tuple[str, str], client_rate: float | None = None) -> None:
        """Count a request; raise HttpError over the limit. ``client_rate``: the client's own rate, 0 for unlimited."""
        per_second = self.per_second if client_rate is None else client_rate
        if per_second <= 0:
            return
        now, burst = time.monotonic(), max(1.0, per_second * _BURST_SECONDS)
        with self._lock:
            left, since = self._buckets.pop(client, (burst, now))
            left = min(burst, left + (now - since) * per_second)
            self._buckets[client] = (left - 1 if left >= 1 else left, now)  # a rejected request costs nothing
            if len(self._buckets) > _MAX_CLIENTS:
                self._buckets.popitem(last=False)
        if left < 1:
            limit = f"{per_second:g} per second are allowed ({_RATE_SOURCES[client_rate is None]})"
            retry_after = str(math.ceil((1 - left) / per_second))
            raise HttpError(HTTPStatus.TOO_MANY_REQUESTS, f"too many requests: {limit}", {"Retry-After": retry_after})


def rate_limit_key(address: str) -> str:
    """Return the key under which an address is counted: the /64 network of an IPv6 address.

    >>> rate_limit_key("2001:db8::1:2"), rate_limit_key("::ffff:192.0.2.1"), rate_limit_key("192.0.2.1")
    ('2001:db8::', '192.0.2.1', '192.0.2.1')
    """
    try:
        ipv6 = ipaddress.IPv6Address(address.partition("%")[0])
    except ValueError:
        return address
    if ipv6.ipv4_mapped is not None:
        return str(ipv6.ipv4_mapped)
    return str(ipaddress.IPv6Address(int(ipv6) >> (128 - _IPV6_PREFIX_BITS) << (128 - _IPV6_PREFIX_BITS)))
