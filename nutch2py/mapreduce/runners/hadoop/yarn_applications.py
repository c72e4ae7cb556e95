"""Finds and kills the unfinished YARN applications of a job, which a driver has left running.

The watchdog runs this module as a script when the driver has exited, so it needs the standard library only.

    python yarn_applications.py TAG YARN [APPLICATION...]
"""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nutch2py.mapreduce.runners.hadoop.hadoop_client import HadoopClient

_LISTED_APPLICATION = re.compile(rb"^(application_\d+_\d+)\s", re.MULTILINE)
_UNFINISHED_STATES = "NEW,NEW_SAVING,SUBMITTED,ACCEPTED,RUNNING"


def kill_left_applications(client: HadoopClient, tag: str, report_progress: Callable[[str], None]) -> None:
    """Kill the applications that an earlier driver has left running: this run would conflict with them."""
    left = find_unfinished_applications(client, tag)
    if left:
        report_progress(f"an earlier driver left {', '.join(left)} running: ending it")
        _kill_applications(client.yarn_command, left)


def find_unfinished_applications(client: HadoopClient, tag: str) -> list[str]:
    """Return the ids of the unfinished applications with a tag."""
    return _parse_ids(client.run_yarn(*_list_arguments(tag), failure_message="cannot query YARN for running jobs"))


def main(arguments: Sequence[str]) -> int:
    """Kill the named applications; without names, the unfinished ones with the tag."""
    tag, yarn, *names = arguments
    _kill_applications(yarn, names or _parse_ids(_command_output([yarn, *_list_arguments(tag)])))
    return 0


def _list_arguments(tag: str) -> list[str]:
    return ["application", "-list", "-appTags", tag, "-appStates", _UNFINISHED_STATES]


def _parse_ids(listed: bytes) -> list[str]:
    return [name.decode() for name in _LISTED_APPLICATION.findall(listed)]


def _kill_applications(yarn: str, names: Sequence[str]) -> None:
    """Kill applications; one that has finished meanwhile is not an error."""
    for name in names:
        _command_output([yarn, "application", "-kill", name])


def _command_output(command: Sequence[str]) -> bytes:
    """Return the output of a command; empty when the command does not exist."""
    with contextlib.suppress(OSError):
        return subprocess.run(  # noqa: S603 - no shell; the runner's command
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False
        ).stdout
    return b""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
