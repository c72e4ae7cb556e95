"""Describes exit codes of tasks."""

from __future__ import annotations

import signal

_OUT_OF_MEMORY_HINT = "most likely the machine, or the container, was out of memory (see dmesg)"


def describe_exit(code: int) -> str:
    """Return ``was killed by SIGKILL: …`` or ``ended with exit code 3``; a shell reports signal n as 128 + n."""
    number = -code if code < 0 else code - 128
    try:
        name = signal.Signals(number).name
    except ValueError:
        return f"ended with exit code {code}"
    return f"was killed by {name}{f': {_OUT_OF_MEMORY_HINT}' if name == 'SIGKILL' else ''}"
