"""Conditional requests of known pages: If-Modified-Since and If-None-Match (RFC 9110, 13.1)."""

from __future__ import annotations

import time
from email.utils import formatdate

from nutch2py.records.webpage import FETCHED_STATUSES, Mark, WebPage


def get_stored_etag(page: WebPage) -> str:
    """Return the ETag of the stored copy, or "" if the page must be fetched unconditionally.

    This is the case if the schedule forces a refetch (the page is unfetched again), or if updatedb did not complete an
    earlier fetch (the fetch mark is still set): a 304 would then prevent the parse of its content.
    """
    if page.status not in FETCHED_STATUSES or page.markers.get(Mark.FETCH) is not None:
        return ""
    return page.headers.get("ETag") or ""


def build_conditional_headers(modified_time: int, etag: str) -> list[tuple[str, str]]:
    """Return the headers of a conditional request.

    Args:
        modified_time: Modification time of the stored copy in milliseconds, 0 for unknown.
        etag: ETag of the stored copy, "" for none.
    """
    headers: list[tuple[str, str]] = []
    if 0 < modified_time <= time.time() * 1000:  # a future time would return 304 until it has passed
        headers.append(("If-Modified-Since", formatdate(modified_time / 1000, usegmt=True)))
    if etag:
        headers.append(("If-None-Match", etag))
    return headers
