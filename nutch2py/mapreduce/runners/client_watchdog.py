"""Runs the Hadoop or Spark client for a driver, and stops it when the driver exits, even by SIGKILL.

YARN keeps an application running when its client dies; a rerun would then conflict with it. This small process, which
uses the standard library only, runs between the two. It forwards the client's output and watches its own standard
input, which the driver keeps open. At its end it kills the client with its children, and the application.

    python client_watchdog.py TAG [YARN] -- CLIENT...
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
    """Return the arguments of ``yarn`` that list the unfinished applications with a tag."""
    return ["application", "-list", "-appTags", tag, "-appStates", _UNFINISHED_STATES]


def parse_application_ids(listed: bytes) -> list[str]:
    """Parse the application ids in the output of the :func:`list_arguments` command."""
    return [name.decode() for name in _LISTED_APPLICATION.findall(listed)]


def _find_running_applications(yarn: Sequence[str], tag: str) -> list[str]:
    return parse_application_ids(_command_output([*yarn, *list_arguments(tag)]))


def _command_output(command: Sequence[str]) -> bytes:
    """Return the output of a command; empty when the command does not exist."""
    with contextlib.suppress(OSError):
        return subprocess.run(  # noqa: S603 - no shell; the runner's command
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False
        ).stdout
    return b""


def kill_applications(yarn: Sequence[str], names: Sequence[str]) -> None:
    """Kill applications; one that has finished meanwhile is not an error."""
    for name in names:
        _command_output([*yarn, "application", "-kill", name])


def main(arguments: Sequence[str]) -> int:
    """Run the client; return its exit code, 143 when the driver exits first."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the driver reads these, and closes our input
    tag, *rest = arguments
    split = rest.index("--")
    yarn, command = rest[:split], rest[split + 1 :]
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
    if gone.is_set() and yarn:
        kill_applications(yarn, known or _find_running_applications(yarn, tag))
    return 143 if gone.is_set() else code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
