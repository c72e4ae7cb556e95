"""Origin of a request, and the detection of cross-site requests."""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.requests import Request


def request_origin(request: Request) -> str:
    """Return the header ``Origin``; "" without one, or for several, which no browser sends."""
    origins = request.headers.getlist("origin")
    return origins[0] if len(origins) == 1 else ""


def is_cross_site(request: Request) -> bool:
    """Return whether a browser sent the request for another site, by ``Sec-Fetch-Site`` or ``Origin``."""
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    if site is not None and site not in ("same-origin", "none"):
        return True
    if origin is None:
        return False
    try:
        return urlsplit(origin).netloc.lower() != request.headers.get("host", "").lower()
    except ValueError:
        return True
