"""The commands: names and options of Nutch 2, and GNU-style long options. They contain no logic of their own.

Exports: ``COMMANDS``, ``COMMAND_GROUPS``, ``Arguments``, ``Command``, ``command_parser``, ``command.suggest_match``,
``nutch_class_names.resolve_command``.
"""

from __future__ import annotations

from nutch2py.commands import (
    checker_commands,
    crawl_command,
    index_commands,
    job_commands,
    report_command,
    server_commands,
    setup_commands,
    table_commands,
)
from nutch2py.commands.command import Arguments, Command, CommandParser

__all__ = ["COMMANDS", "COMMAND_GROUPS", "Arguments", "Command", "command_parser"]

_MODULES = (
    crawl_command,
    job_commands,
    index_commands,
    table_commands,
    report_command,
    checker_commands,
    server_commands,
    setup_commands,
)
COMMANDS: dict[str, Command] = {name: command for module in _MODULES for name, command in module.COMMANDS.items()}

COMMAND_GROUPS: dict[str, tuple[str, ...]] = {
    "To begin": ("crawl", "search", "serve", "mcp"),
    "Rounds of a crawl, job by job": (
        "inject", "generate", "freegen", "fetch", "parse", "updatedb", "pagerank", "dedup", "index", "clean",
    ),
    "What the table holds": (
        "readdb", "export", "import", "readlinkdb", "report", "domainstats", "protocolstats", "crawlcomplete",
        "nodedumper", "webgraph",
    ),
    "Hosts": ("hostinject", "updatehostdb", "readhostdb"),
    "Search quality": ("searchlog", "evaluate"),
    "Try one URL": ("parsechecker", "indexchecker", "filterchecker", "normalizerchecker", "robotsparser"),
    "Care of tables": (
        "createtable", "checktable", "dueindex", "unlock", "exporttable", "importtable", "copytable", "mergedb",
    ),
    "Set-up and operation": (
        "init", "doctor", "jobs", "showproperties", "token", "botkey", "plugin", "package", "completion", "version",
    ),
    "Names of Nutch 2": (
        "solrindex", "solrdedup", "solrclean", "elasticindex", "nutchserver",
    ),
}  # fmt: skip
"""The commands by purpose, as the list of commands shows them: each stands in one group."""


def command_parser(name: str) -> CommandParser:
    """Return the parser of a command."""
    command = COMMANDS[name]
    parser = CommandParser(prog=f"nutch2py {name}", description=command.summary, allow_abbrev=False)
    command.add_options(parser)
    parser.add_argument(
        "-crawlId", "--crawl-id", default=None, metavar="id", help="id of the crawl, part of table names"
    )
    shared = parser.add_argument_group("common options")
    shared.add_argument("-D", action="append", default=[], metavar="name=value", help="set a property")
    shared.add_argument("--conf", metavar="DIR", help="configuration folder, overrides the defaults (NUTCH_CONF_DIR)")
    runners = ("inline", "local", "hadoop", "spark")
    shared.add_argument("-r", "--runner", metavar="RUNNER", choices=runners, help="inline, local, hadoop or spark")
    shared.add_argument("--log-file", metavar="FILE", help="also write the output to a file, with time, job and batch")
    shared.add_argument("--log-format", choices=("text", "json"), default="text", help="format of that file")
    loudness = shared.add_mutually_exclusive_group()
    loudness.add_argument(
        "-v", "--verbose", action="store_true", help="print more: log records and counters; for crawl, job logs"
    )
    loudness.add_argument(
        "-q",
        "--quiet",
        action="store_true",
        help="print only warnings and results: no job log, no progress",
    )
    shared.add_argument("--debug", action="store_true", help="show the traceback of a failure")
    return parser
