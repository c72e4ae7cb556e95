"""``/api/events``: changes of jobs as server-sent events."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from nutch2py.errors import NutchError
from nutch2py.rest.access.tokens import Role
from nutch2py.rest.dispatch.authorization import Authorizer
from nutch2py.rest.dispatch.operation import error_response
from nutch2py.rest.dispatch.sse import SharedPoller, event_stream
from nutch2py.rest.job_control.job_processes import JobProcess

_POLL_SECONDS = 0.5


class JobEventStream:
    """Endpoint of the stream. ``shutdown_key``: key of the event in the ASGI state that is set at shutdown."""

    def __init__(self, authorizer: Authorizer, shutdown_key: str) -> None:
        self._authorizer, self._shutdown_key = authorizer, shutdown_key
        self._poller = SharedPoller(authorizer.context.jobs.all, _POLL_SECONDS, authorizer.thread_limit)

    async def respond(self, request: Request) -> Response:
        """Respond with a stream: first all running jobs, then each job that changes its state."""
        try:
            self._authorizer.authorize(request, Role.READ, modifies=False)
        except NutchError as error:
            return error_response(error)
        stopping: asyncio.Event = request.scope["state"][self._shutdown_key]
        events = event_stream(self._poller, _JobChanges(), stopping)
        return self._authorizer.event_streams.response(events, {"Cache-Control": "no-store"}, error_response)


class _JobChanges:
    """Compares the jobs of a stream with those of the last call."""

    def __init__(self) -> None:
        self._states: dict[str, str] | None = None

    def __call__(self, jobs: list[JobProcess]) -> Iterator[bytes]:
        """Yield an event for each changed job, oldest first; at the first call for each running one."""
        known, self._states = self._states, {job.id: job.state for job in jobs}
        for job in reversed(jobs):
            if job.state.is_alive if known is None else known.get(job.id) != job.state:
                yield _format_event(job)


def _format_event(job: JobProcess) -> bytes:
    return b"event: job\nid: " + job.id.encode() + b"\ndata: " + msgspec.json.encode(job) + b"\n\n"
