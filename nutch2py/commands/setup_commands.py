"""What comes before a crawl: its configuration folder, and a look at what it stands on."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from nutch2py.commands.command import Arguments, Command
from nutch2py.commands.completion import SHELLS, completion_script

if TYPE_CHECKING:
    from nutch2py.conf.configuration import Configuration


def _doctor_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-json", "--json", action="store_true", help="one JSON object a line")


def _doctor(args: Arguments, conf: Configuration) -> int:
    import orjson

    from nutch2py.conf.redaction import redact
    from nutch2py.doctor.check_result import CheckStatus
    from nutch2py.doctor.check_runner import run_checks, worst_status

    findings = []
    for finding in run_checks(conf):
        told = redact(finding.message, conf.secret_values())
        findings.append(finding)
        if args.json:
            print(orjson.dumps({"part": finding.check, "state": finding.status, "told": told}).decode(), flush=True)
        else:
            print(f"{finding.status:4}  {finding.check}: {told}", flush=True)
    return 10 if worst_status(findings) == CheckStatus.ERROR else 0


_INIT_PROPERTIES = {
    "agent": ("http.agent.name", "NAME", "what the crawler calls itself"),
    "url": ("http.agent.url", "URL", "a page about it, for those whom it visits"),
    "email": ("http.agent.email", "ADDRESS", "whom they can write to"),
    "store": ("storage.data.store", "WHERE", "embedded:FOLDER or hbase://HOST:PORT"),
    "solr": ("solr.server.url", "URL", "the Solr collection to send to"),
    "delay": ("fetcher.server.delay", "SECONDS", "between two requests to a server"),
}


def _init_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="DIR", help="the folder to make")
    parser.add_argument("seeds", nargs="*", metavar="URL", help="where crawls begin, for a file of seeds in it")
    for option, (_, metavar, told) in _INIT_PROPERTIES.items():
        parser.add_argument(f"-{option}", f"--{option}", metavar=metavar, help=told)


def _init(args: Arguments, conf: Configuration) -> int:
    from pathlib import Path
    from shlex import quote

    from nutch2py.commands.conf_template import SEEDS_FILE, write_conf_dir
    from nutch2py.conf.configuration import Configuration as Made
    from nutch2py.errors import UsageError

    given = {name: getattr(args, option) for option, (name, _, _) in _INIT_PROPERTIES.items()}
    chosen = {name: value for name, value in given.items() if value is not None}
    Made.load(overrides=chosen).check_numbers()
    if not args.folder.strip():
        raise UsageError("init names no folder: write init DIR, or init . for this one")
    folder = Path(args.folder)
    for path in write_conf_dir(folder, chosen, args.seeds):
        print(path)
    where, seeds = quote(str(folder)), quote(str(folder / SEEDS_FILE)) if args.seeds else "URL"
    print(f"Look it through, then: nutch2py doctor --conf {where}; nutch2py crawl --conf {where} {seeds}")
    return 0


def _plugin_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", nargs="?", default="", metavar="pluginId", help="only this plug-in, and what it does")
    parser.add_argument("class_name", nargs="?", default="", metavar="className", help="run main of this class of it")
    parser.add_argument("words", nargs="*", metavar="arg", help="what main is given")
    parser.add_argument("-json", "--json", action="store_true", help="one JSON object a line")


def _plugin(args: Arguments, conf: Configuration) -> int:
    from nutch2py.plugins.plugin_list import print_plugins, run_plugin_class

    if args.class_name:
        return run_plugin_class(conf, args.id, args.class_name, args.words)
    return print_plugins(conf, args.id, args.json)


def _completion_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS, help="the shell that it is for")


def _completion(args: Arguments, _: Configuration) -> int:
    from nutch2py import commands

    summaries = {name: command.summary for name, command in commands.COMMANDS.items()}
    print(completion_script(args.shell, summaries, commands.command_parser), end="")
    return 0


def _version_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-json", "--json", action="store_true", help="as one JSON object")


def _version(args: Arguments, _: Configuration) -> int:
    import orjson

    from nutch2py.version import component_versions

    found = component_versions()
    if args.json:
        print(orjson.dumps(found).decode())
    else:
        for name, version in found.items():
            print(f"{name} {version or '(not installed)'}")
    return 0


COMMANDS: dict[str, Command] = {
    "init": Command("make a configuration folder for a new crawl", _init_options, _init),
    "doctor": Command("look at what a crawl stands on, and say what is wrong", _doctor_options, _doctor),
    "version": Command("print the versions of the program and its parts", _version_options, _version),
    "plugin": Command("list the plug-ins, or run a class of one", _plugin_options, _plugin),
    "completion": Command("print what completes commands and options in a shell", _completion_options, _completion),
}
