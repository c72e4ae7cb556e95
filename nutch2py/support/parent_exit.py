"""Ends a process when the process that started it ends, even by SIGKILL."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time

_PR_SET_PDEATHSIG = 1  # of prctl(2)
_POLL_SECONDS = 0.1


def exit_with_parent(parent_pid: int) -> None:
    """Make this process end when the thread that started it ends; call it before anything that takes long.

    Linux sends SIGKILL. Elsewhere, or where prctl is not available, a thread polls the id of the parent process, which
    changes when the parent ends. ``parent_pid``: id of the starting process, which may have ended already.
    """
    if not _set_parent_death_signal():
        threading.Thread(target=_poll_parent, args=(parent_pid,), name="parent-watch", daemon=True).start()
    if os.getppid() != parent_pid:  # it ended before this call
        os._exit(1)


def _set_parent_death_signal() -> bool:
    if sys.platform != "linux":
        return False
    import ctypes

    with contextlib.suppress(OSError, AttributeError):
        return bool(ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL) == 0)
    return False


def _poll_parent(parent_pid: int) -> None:
    while os.getppid() == parent_pid:
        time.sleep(_POLL_SECONDS)
    os._exit(1)
