"""Runs the client of Hadoop or Spark for a driver, and ends its work when the driver goes, even if by SIGKILL.

YARN lets an application go on when its client dies; a rerun would then work against it. This small process, of the
standard library only, stands between the two: it passes the client's lines on, watches its own standard input, which
the driver holds open, and when that ends it kills the client with its children, and the application.

    python guard.py TAG [YARN] -- CLIENT...
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
_LISTED_APPLICATION = re.compile(rb"^(application_\d+_\d+)\s", re.MULTILINE)
_UNFINISHED_STATES = "NEW,NEW_SAVING,SUBMITTED,ACCEPTED,RUNNING"


def list_arguments(tag: str) -> list[str]:
    """Return the words after ``yarn`` that list the applications with a tag that have not ended."""
    return ["application", "-list", "-appTags", tag, "-appStates", _UNFINISHED_STATES]


def parse_application_ids(listed: bytes) -> list[str]:
    """Return the ids in what the command of :func:`list_arguments` has put out."""
    return [name.decode() for name in _LISTED_APPLICATION.findall(listed)]


def _find_running_applications(yarn: Sequence[str], tag: str) -> list[str]:
    return parse_application_ids(_command_output([*yarn, *list_arguments(tag)]))


def _command_output(command: Sequence[str]) -> bytes:
    """Return what a command puts out; nothing when it is not there."""
    with contextlib.suppress(OSError):
        return subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False
        ).stdout
    return b""


def kill_applications(yarn: Sequence[str], names: Sequence[str]) -> None:
    """Kill applications; one that has ended meanwhile is no error."""
    for name in names:
        _command_output([*yarn, "application", "-kill", name])


def main(arguments: Sequence[str]) -> int:
    """Run the client to its end; return its exit code, 143 when the driver went first."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the driver gets these, and closes our input
    tag, *rest = arguments
    split = rest.index("--")
    yarn, command = rest[:split], rest[split + 1 :]
    try:
        client = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as error:
        os.write(1, f"ERROR cannot run {command[0]} ({error.strerror})\n".encode())
        return 127
    assert client.stdout is not None
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
    for line in client.stdout:
        submitted = _SUBMITTED.search(line)
        if submitted:
            known.append(submitted.group(1).decode())
        if not gone.is_set():
            try:
                os.write(1, line)
            except BrokenPipeError:
                end()
    code = client.wait()
    if gone.is_set() and yarn:
        kill_applications(yarn, known or _find_running_applications(yarn, tag))
    return 143 if gone.is_set() else code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
