"""The commands: names and options of Nutch 2, with GNU-style long forms beside them. No logic is here."""

from __future__ import annotations

from nutch2py.commands import (
    checker_commands,
    crawl_command,
    index_commands,
    job_commands,
    report_command,
    server_commands,
    setup_commands,
)
from nutch2py.commands import table_commands as tables
from nutch2py.commands.command import Arguments, Command, CommandParser

__all__ = ["COMMANDS", "Arguments", "Command", "command_parser"]

_MODULES = (
    crawl_command,
    job_commands,
    index_commands,
    tables,
    report_command,
    checker_commands,
    server_commands,
    setup_commands,
)
COMMANDS: dict[str, Command] = {name: command for room in _MODULES for name, command in room.COMMANDS.items()}


def command_parser(name: str) -> CommandParser:
    """Return the parser of a command."""
    command = COMMANDS[name]
    parser = CommandParser(prog=f"nutch2py {name}", description=command.summary, allow_abbrev=False)
    command.add_options(parser)
    parser.add_argument("-crawlId", "--crawl-id", default=None, metavar="id", help="the crawl, which names the tables")
    shared = parser.add_argument_group("everywhere")
    shared.add_argument("-D", action="append", default=[], metavar="name=value", help="set a property")
    shared.add_argument("--conf", metavar="DIR", help="configuration folder laid over the defaults (NUTCH_CONF_DIR)")
    runners = ("inline", "local", "hadoop", "spark")
    shared.add_argument("-r", "--runner", metavar="RUNNER", choices=runners, help="inline, local, hadoop or spark")
    shared.add_argument(
        "--log-file", metavar="FILE", help="write what is said to a file, too, with time, job and batch"
    )
    shared.add_argument("--log-format", choices=("text", "json"), default="text", help="of that file: text or json")
    loudness = shared.add_mutually_exclusive_group()
    loudness.add_argument(
        "-v", "--verbose", action="store_true", help="print more: what is logged, counters; of crawl, what its jobs say"
    )
    loudness.add_argument(
        "-q",
        "--quiet",
        action="store_true",
        help="print warnings and what was asked for: no log of a job, no progress",
    )
    shared.add_argument("--debug", action="store_true", help="show the traceback of a failure")
    return parser
