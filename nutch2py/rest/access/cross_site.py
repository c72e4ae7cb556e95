"""Origin of a request: a change needs proof that no page of another site made a browser send it.

A browser attaches a remembered Basic login to requests of every site, and sends neither ``Origin`` nor
``Sec-Fetch-Site`` with some: with a GET over plain HTTP to an address other than loopback, it sends none of them. So a
missing header proves nothing. A change needs one of these:

- ``Origin`` or ``Sec-Fetch-Site`` of a page of this server;
- a form token (:mod:`nutch2py.rest.access.form_tokens`), which a page of another site cannot read;
- no sign of a browser, and no Basic login: programs send a Bearer token, or nothing on loopback.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.requests import Request

_DEFAULT_PORTS = {"http": ":80", "https": ":443"}
_BROWSER_HEADERS = (
    "cookie",
    "dnt",
    "sec-ch-ua",
    "sec-fetch-dest",
    "sec-fetch-user",
    "sec-gpc",
    "upgrade-insecure-requests",
)
"""Headers that browsers send and programs do not; Node.js sends ``Sec-Fetch-Mode``."""
_BROWSER_MEDIA_TYPES = ("application/xhtml+xml", "image/apng", "image/avif", "image/webp", "text/css", "text/ping")


def request_origin(request: Request) -> str:
    """Return the header ``Origin``; "" without one, or for several, which no browser sends."""
    origins = request.headers.getlist("origin")
    return origins[0] if len(origins) == 1 else ""


def has_basic_login(request: Request) -> bool:
    """Return whether the request has a Basic login, which browsers remember and attach by themselves."""
    return request.headers.get("authorization", "").partition(" ")[0].lower() == "basic"


def check_change(
    request: Request, has_form_token: bool = False, allows_basic: bool = False, public_url: str = ""
) -> str:
    """Return why a request must not change anything, "" if it may.

    Args:
        request: the request.
        has_form_token: whether it carries a valid form token.
        allows_basic: whether programs with a Basic login may change things (``rest.basic.changes``).
        public_url: the address of this server behind a proxy (``search.page.address``), "" for none.
    """
    headers = request.headers
    if _is_foreign(headers, public_url):
        return "cross-site requests are rejected"
    if any("prefetch" in headers.get(name, "").lower() for name in ("sec-purpose", "purpose", "x-moz")):
        return "a browser prefetches this address: no change"
    if has_form_token:
        return ""
    sign = find_browser_sign(headers)
    if has_basic_login(request) and (sign or not allows_basic):
        return (
            "a Basic login only reads, apart from the forms of the control room: send the token of a program as "
            "Authorization: Bearer TOKEN (docs/rest.md)"
        )
    if sign and not _is_same_origin(headers):
        return (
            f"the request looks like that of a browser (header {sign}) and lacks proof of its origin: a browser sends "
            "Origin or Sec-Fetch-Site, a program no headers of a browser (docs/rest.md)"
        )
    return ""


def find_browser_sign(headers: Headers) -> str:
    """Return the name of the first header that shows a browser, "" for none.

    A page can remove none of these headers from a request to another site, and change only ``Accept``.
    """
    agent = headers.get("user-agent", "")
    if ("Mozilla/" in agent or "Opera/" in agent) and "PowerShell/" not in agent:  # PowerShell imitates a browser
        return "User-Agent"
    if headers.get("accept-language", "*").strip() != "*":  # Node.js sends *
        return "Accept-Language"
    if any(media_type in headers.get("accept", "").lower() for media_type in _BROWSER_MEDIA_TYPES):
        return "Accept"
    return next((name.title() for name in _BROWSER_HEADERS if name in headers), "")


def _is_foreign(headers: Headers, public_url: str) -> bool:
    """Return whether a header shows that another site caused the request."""
    if any(site not in ("same-origin", "none") for site in headers.getlist("sec-fetch-site")):
        return True
    origins = headers.getlist("origin")
    if origins:
        return len(origins) > 1 or not _is_own_url(origins[0], headers, public_url)
    referrers = headers.getlist("referer")
    return any(not _is_own_url(referrer, headers, public_url) for referrer in referrers if referrer.strip())


def _is_same_origin(headers: Headers) -> bool:
    """Return whether a header that no page can set proves the origin. Call :func:`_is_foreign` first."""
    return "origin" in headers or "sec-fetch-site" in headers


def _is_own_url(url: str, headers: Headers, public_url: str) -> bool:
    """Return whether a URL has the origin of this server, as far as a server behind a proxy knows it."""
    origin = _split_origin(url)
    if origin is None:
        return False
    if public_url and origin == _split_origin(public_url):
        return True
    scheme, host = origin
    forwarded = headers.get("x-forwarded-proto", scheme).strip().lower()
    own = headers.get("host", "").lower().removesuffix(_DEFAULT_PORTS[scheme])
    return scheme == forwarded and bool(own) and host == own


def _split_origin(url: str) -> tuple[str, str] | None:
    """Return scheme and host with a port that is not the default; None for a URL without them."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    port = _DEFAULT_PORTS.get(parts.scheme)
    return None if port is None else (parts.scheme, parts.netloc.lower().removesuffix(port))
