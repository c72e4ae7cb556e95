"""The process in which a server runs expensive searches: the other end of the class ``SearchWorkerPool``.

It opens the index for reading, at a low priority, and answers one call after the other from standard input. It has its
own view of the index, which is that of the last commit some seconds ago, as the server's is. The kernel enforces the
limits of time: an unhandled signal ends a process whose search takes too long. The process dies with the server.
"""

from __future__ import annotations

import contextlib
import os
import sys
import traceback

import msgspec

from nutch2py.errors import NutchError
from nutch2py.search.engines.embedded_searcher_manager import EmbeddedSearcherManager
from nutch2py.search.search_worker.search_messages import SearchCall, SearchMethod, SearchReply
from nutch2py.support.worker_process import (
    WorkerSettings,
    encode_frame,
    open_worker_pipes,
    read_frame,
    set_time_limits,
)

_NICENESS = 5


def run_worker() -> None:
    """Answer the calls of standard input until it is closed."""
    source, sink = open_worker_pipes()
    lower_priority()
    searchers = EmbeddedSearcherManager(WorkerSettings.decode(read_frame(source)).to_conf())
    calls = msgspec.msgpack.Decoder(SearchCall)
    sink.write(encode_frame(SearchReply()))
    sink.flush()
    for message in iter(lambda: read_frame(source), b""):
        call = calls.decode(message)
        set_time_limits(call.cpu_seconds, call.wall_seconds)
        frame = encode_frame(run_call(searchers, call))
        set_time_limits(0, 0)
        sink.write(frame)
        sink.flush()


def lower_priority() -> None:
    """Let every other process of the machine run first."""
    with contextlib.suppress(OSError):
        os.nice(_NICENESS)
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


def run_call(searchers: EmbeddedSearcherManager, call: SearchCall) -> SearchReply:
    """Return the reply to a call; no error of a search ends the process."""
    try:
        with searchers.acquire() as searcher:
            if call.method is SearchMethod.SEARCH:
                result = searcher.search(
                    call.query, call.start, call.rows, call.options, cursor=call.cursor, with_facets=call.with_facets
                )
                return SearchReply(result=result)
            if call.method is SearchMethod.EXPLAIN:
                return SearchReply(text=searcher.explain(call.query, call.document_id))
            if call.method is SearchMethod.CORRECT_QUERY:
                return SearchReply(text=searcher.correct_query(call.query))
            return SearchReply(suggestions=searcher.suggest(call.query))
    except NutchError as error:
        return SearchReply(error=(type(error).__name__, str(error), error.public_message()))
    except Exception:  # noqa: BLE001 - the server reports it as its own
        return SearchReply(traceback=traceback.format_exc())
