"""Translates error messages of Hadoop's programs, which have no error codes, into advice for the user."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from nutch2py.errors import ConfigurationError, NutchError, RunnerError

INSTALLATION_HINT = "set HADOOP_HOME, or the property mapreduce.hadoop.home, to the folder of a Hadoop installation"
CANNOT_RUN_PREFIX = "cannot run "
"""Prefix of the watchdog's message that a command of Hadoop does not exist."""


_LESS_MEMORY_HINT = (
    "lower mapreduce.map.memory.mb, mapreduce.reduce.memory.mb or yarn.app.mapreduce.am.resource.mb below what YARN "
    "gives a container, or let it give more (yarn.scheduler.maximum-allocation-mb, yarn.nodemanager.resource.memory-mb)"
)
_MORE_SPACE_HINT = (
    "free space on HDFS (nutch2py package -clean, hadoop fs -expunge), or have the quota raised (hdfs dfsadmin "
    "-setSpaceQuota)"
)


_MAX_LINE_LENGTH = 300  # characters
_LOG_PREFIX = re.compile(
    r"^(\S+ \S+ [A-Z]+ [\w.$]+: )?(Error Launching job : )?(([\w$]+\.)+[\w$]+(Exception|Error): )*"
)

_NODE_LOST_HINT = (
    "a node was lost, or its NodeManager restarted, with the map output for reduce tasks: run the "
    "command again (with yarn.nodemanager.recovery.enabled a NodeManager keeps it)"
)


class _KnownError(NamedTuple):
    pattern: re.Pattern[bytes]
    error_class: type[NutchError]
    advice: str


_KNOWN_ERRORS = tuple(
    _KnownError(re.compile(said), kind, repair)
    for said, kind, repair in (
        (
            rb"JAVA_HOME (is not set|\S* ?does not exist)|java(: line \d+)?: (command )?not found|/java: No such file",
            ConfigurationError,
            "install a JDK that this Hadoop takes, and set JAVA_HOME to its folder",
        ),
        (CANNOT_RUN_PREFIX.encode(), ConfigurationError, INSTALLATION_HINT),
        (
            rb"unknown queue|Queue \S+ is STOPPED|Cannot submit application .* queue|not have permission to submit",
            ConfigurationError,
            "set mapreduce.job.queuename to a queue that takes jobs of this user (mapred queue -list)",
        ),
        (
            rb"maximum allowed allocation|more than the supported max container capability",
            ConfigurationError,
            _LESS_MEMORY_HINT,
        ),
        (
            rb"quota .*is exceeded|QuotaExceededException",
            RunnerError,
            _MORE_SPACE_HINT,
        ),
        (
            rb"minReplication",
            RunnerError,
            "no DataNode takes anything: see that they run and have space (hdfs dfsadmin -report)",
        ),
        (
            rb"in safe mode",
            RunnerError,
            "HDFS is read-only: see why (hdfs dfsadmin -report), and end that (hdfs dfsadmin -safemode leave)",
        ),
        (rb"ShuffleError", RunnerError, _NODE_LOST_HINT),
        (
            rb"Permission denied|AccessControlException",
            ConfigurationError,
            "let this user write there, or name another folder with mapreduce.hadoop.folder",
        ),
        (
            rb"No FileSystem for scheme|Incomplete HDFS URI|UnknownHostException|Wrong FS",
            ConfigurationError,
            "correct fs.defaultFS, yarn.resourcemanager.* or HADOOP_CONF_DIR",
        ),
    )
)


def explain_error(action: str, lines: Iterable[bytes]) -> NutchError | None:
    """Return the error for the last known line, which happened during ``action``; None if no line is known."""
    for line in reversed([*lines]):
        for meaning in _KNOWN_ERRORS:
            if meaning.pattern.search(line):
                return meaning.error_class(f"{action}: {simplify_line(line)}: {meaning.advice}")
    return None


def simplify_line(line: bytes) -> str:
    """Return a log line without time, level and Java exception names, shortened if necessary."""
    text = _LOG_PREFIX.sub("", line.decode("utf-8", "replace").strip())
    return text if len(text) <= _MAX_LINE_LENGTH else f"{text[:_MAX_LINE_LENGTH]}…"


def is_known_error(line: bytes) -> bool:
    """Return whether a line gives the reason for a rejected job."""
    return any(meaning.pattern.search(line) for meaning in _KNOWN_ERRORS)
