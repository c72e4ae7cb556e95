"""Events of the Chrome DevTools Protocol (domains Fetch and Target) with the fields that the renderer reads."""

from __future__ import annotations

from typing import NotRequired, TypedDict


class PausedRequest(TypedDict):
    """Request of a paused request event."""

    url: str
    method: str
    urlFragment: NotRequired[str]


class AuthRequiredEvent(TypedDict):
    """``Fetch.authRequired``."""

    requestId: str


class RequestPausedEvent(TypedDict):
    """``Fetch.requestPaused``."""

    requestId: str
    request: PausedRequest
    frameId: str
    resourceType: str
    redirectedRequestId: NotRequired[str]


class TargetCrashedEvent(TypedDict):
    """``Target.targetCrashed``."""

    targetId: str
    status: str
