"""Event streams count against the limit only while they are sent, and share one poller."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from starlette.responses import PlainTextResponse, Response

from nutch2py.errors import StoreError
from nutch2py.rest.context import RestContext
from nutch2py.rest.dispatch.sse import MAX_STREAMS, EventStreams, SharedPoller, event_stream
from nutch2py.rest.http_error import HttpError
from nutch2py.support.thread_limit import ThreadLimit
from tests.rest.conftest import settings

SCOPE = {"type": "http", "asgi": {"version": "3.0", "spec_version": "2.3"}}


def render_error(error: HttpError) -> Response:
    return PlainTextResponse(str(error), error.status, error.headers)


async def endless() -> AsyncIterator[bytes]:
    yield b": keep-alive\n\n"
    await asyncio.Event().wait()


async def failing() -> AsyncIterator[bytes]:
    yield b": keep-alive\n\n"
    raise ValueError("a bug")


async def stays() -> dict[str, Any]:
    await asyncio.Event().wait()
    raise AssertionError


async def hangs_up() -> dict[str, Any]:
    return {"type": "http.disconnect"}


async def accept(_: Any) -> None:
    pass


async def broken(_: Any) -> None:
    raise OSError("connection reset")


def test_unsent_streams_take_no_place() -> None:
    streams = EventStreams()
    responses = [streams.response(endless(), {}, render_error) for _ in range(2 * MAX_STREAMS)]
    assert {response.status_code for response in responses} == {200}
    assert streams.open_count == 0


@pytest.mark.parametrize(
    ("events", "receive", "send"),
    [(endless, hangs_up, accept), (endless, stays, broken), (failing, stays, accept)],
    ids=["client hangs up", "send fails", "source fails"],
)
def test_failed_stream_releases_its_place(events: Callable[[], AsyncIterator[bytes]], receive: Any, send: Any) -> None:
    streams = EventStreams()

    async def respond() -> None:
        for _ in range(2 * MAX_STREAMS):
            response = streams.response(events(), {}, render_error)
            await asyncio.gather(response(SCOPE, receive, send), return_exceptions=True)
            assert streams.open_count == 0

    asyncio.run(respond())


def test_streams_over_limit_are_rejected_until_one_ends() -> None:
    streams = EventStreams()

    async def status_of_one_more() -> int:
        sent: list[Any] = []

        async def collect(message: Any) -> None:
            sent.append(message)

        await streams.response(endless(), {}, render_error)(SCOPE, hangs_up, collect)
        return int(sent[0]["status"])

    async def respond() -> None:
        response = streams.response
        tasks = [
            asyncio.create_task(response(endless(), {}, render_error)(SCOPE, stays, accept)) for _ in range(MAX_STREAMS)
        ]
        while streams.open_count < MAX_STREAMS:
            await asyncio.sleep(0)
        assert await status_of_one_more() == 429
        tasks[0].cancel()
        await asyncio.wait(tasks[:1])
        assert await status_of_one_more() == 200
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)

    asyncio.run(respond())
    assert streams.open_count == 0


def test_streams_of_one_source_share_its_reads() -> None:
    reads: list[int] = []

    def read() -> int:
        reads.append(1)
        return len(reads)

    async def run() -> list[list[bytes]]:
        poller, stopping = SharedPoller(read, 0.02, ThreadLimit(4)), asyncio.Event()

        async def events() -> list[bytes]:
            found = []
            async for event in event_stream(poller, lambda value: [str(value).encode()], stopping):
                found.append(event)
                if len(reads) >= 3:
                    stopping.set()
            return found

        return list(await asyncio.gather(*(events() for _ in range(MAX_STREAMS))))

    streams = asyncio.run(run())
    assert all(stream[0] == b"1" for stream in streams)
    assert len(reads) < 2 * MAX_STREAMS  # each stream alone would read as often as it yields


@pytest.mark.parametrize("error", [StoreError("unavailable"), OSError("no descriptor")])
def test_stream_ends_when_its_source_fails(error: Exception) -> None:
    def read() -> int:
        raise error

    async def run() -> list[bytes]:
        poller = SharedPoller(read, 1.0, ThreadLimit(4))
        return [event async for event in event_stream(poller, lambda _: [], asyncio.Event(), b"retry: 3000\n\n")]

    assert asyncio.run(run()) == [b"retry: 3000\n\n"]


def test_job_configuration_is_built_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from nutch2py.rest.access.tokens import Caller, Role
    from nutch2py.rest.job_control.job_requests import CheckTableRequest

    context = RestContext(settings(tmp_path), is_local=True)
    built: list[str] = []
    build = RestContext.build_configuration

    def counting(self: RestContext, *args: Any) -> Any:
        built.append(args[1])
        return build(self, *args)

    monkeypatch.setattr(RestContext, "build_configuration", counting)
    job = context.start_job(CheckTableRequest(), Caller("me", Role.RUN))
    context.jobs.abort(job.id)
    assert built == ["default"]
