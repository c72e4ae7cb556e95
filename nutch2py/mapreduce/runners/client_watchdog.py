"""Runs the Hadoop or Spark client for a driver, and stops it when the driver exits, even by SIGKILL.

YARN keeps an application running when its client dies; a rerun would then conflict with it. This small process, which
uses the standard library only, runs between the two. It forwards the client's output and watches its own standard
input, which the driver keeps open. At its end it kills the client with its children, and runs the kill command with
the ids of the applications that the client has submitted.

    python client_watchdog.py [KILL_COMMAND...] -- CLIENT...
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence

_SUBMITTED = re.compile(rb"Submitted application (application_\d+_\d+)")


def main(arguments: Sequence[str]) -> int:
    """Run the client; return its exit code, 143 when the driver exits first."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the driver reads these, and closes our input
    split = arguments.index("--")
    kill_command, command = arguments[:split], arguments[split + 1 :]
    try:
        client = subprocess.Popen(  # noqa: S603 - no shell; the runner's command
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as error:
        os.write(1, f"ERROR cannot run {command[0]} ({error.strerror})\n".encode())
        return 127
    known: list[str] = []
    gone = threading.Event()

    def end() -> None:
        gone.set()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(client.pid, signal.SIGKILL)

    def watch() -> None:
        while os.read(0, 4096):
            pass
        end()

    threading.Thread(target=watch, daemon=True).start()
    for line in client.stdout or ():
        submitted = _SUBMITTED.search(line)
        if submitted:
            known.append(submitted.group(1).decode())
        if not gone.is_set():
            try:
                os.write(1, line)
            except BrokenPipeError:
                end()
    code = client.wait()
    if gone.is_set() and kill_command:
        subprocess.run([*kill_command, *known], stdin=subprocess.DEVNULL, check=False)  # noqa: S603 - no shell
    return 143 if gone.is_set() else code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
