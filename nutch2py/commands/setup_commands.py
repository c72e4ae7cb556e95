"""Commands that prepare a crawl: the configuration folder, the doctor, plug-ins, versions and completion."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from nutch2py.commands.command import Arguments, Command, property_number
from nutch2py.commands.completion import SHELLS, completion_script
from nutch2py.conf.property_ranges import PROPERTY_RANGES

if TYPE_CHECKING:
    from nutch2py.conf.configuration import Configuration


def _doctor_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-json", "--json", action="store_true", help="JSON, one object per line")


def _doctor(args: Arguments, conf: Configuration) -> int:
    import orjson

    from nutch2py.conf.redaction import redact
    from nutch2py.doctor.check_result import CheckStatus
    from nutch2py.doctor.check_runner import run_checks, worst_status

    results = []
    for result in run_checks(conf):
        message = redact(result.message, conf.secret_values())
        results.append(result)
        if args.json:
            fields = {"check": result.check, "status": result.status, "message": message}
            print(orjson.dumps(fields).decode(), flush=True)
        else:
            print(f"{result.status:7}  {result.check}: {message}", flush=True)
    return 10 if worst_status(results) == CheckStatus.ERROR else 0


_INIT_PROPERTIES = {
    "agent": ("http.agent.name", "NAME", "name of the crawler"),
    "url": ("http.agent.url", "URL", "a page about the crawler, for site owners"),
    "email": ("http.agent.email", "ADDRESS", "contact address for site owners"),
    "store": ("storage.data.store", "WHERE", "embedded:FOLDER or hbase://HOST:PORT"),
    "solr": ("solr.server.url", "URL", "the Solr collection to send documents to"),
    "delay": ("fetcher.server.delay", "SECONDS", "between two requests to a server; 0: none"),
}


def _init_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="DIR", help="the folder to create")
    parser.add_argument("seeds", nargs="*", metavar="URL", help="seed URLs, for a seed file in the folder")
    for option, (name, metavar, help_text) in _INIT_PROPERTIES.items():
        number = property_number(name) if name in PROPERTY_RANGES else str
        parser.add_argument(f"-{option}", f"--{option}", type=number, metavar=metavar, help=help_text)


def _init(args: Arguments, conf: Configuration) -> int:
    from pathlib import Path
    from shlex import quote

    from nutch2py.commands.conf_template import SEEDS_FILE, write_conf_dir
    from nutch2py.conf.configuration import Configuration as NewConfiguration
    from nutch2py.errors import UsageError

    given = {name: getattr(args, option) for option, (name, _, _) in _INIT_PROPERTIES.items()}
    chosen = {name: value for name, value in given.items() if value is not None}
    NewConfiguration.load(overrides=chosen).check_numbers()
    if not args.folder.strip():
        raise UsageError("init names no folder: write init DIR, or init . for this one")
    folder = Path(args.folder)
    for path in write_conf_dir(folder, chosen, args.seeds):
        print(path)
    conf_dir, seeds = quote(str(folder)), quote(str(folder / SEEDS_FILE)) if args.seeds else "URL"
    print(f"Review the files, then: nutch2py doctor --conf {conf_dir}; nutch2py crawl --conf {conf_dir} {seeds}")
    return 0


def _plugin_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", nargs="?", default="", metavar="pluginId", help="only this plug-in, with details")
    parser.add_argument("class_name", nargs="?", default="", metavar="className", help="run main of this class of it")
    parser.add_argument("words", nargs="*", metavar="arg", help="arguments of main")
    parser.add_argument("-json", "--json", action="store_true", help="JSON, one object per line")


def _plugin(args: Arguments, conf: Configuration) -> int:
    from nutch2py.plugins.plugin_list import print_plugins, run_plugin_class

    if args.class_name:
        return run_plugin_class(conf, args.id, args.class_name, args.words)
    return print_plugins(conf, args.id, args.json)


def _completion_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS, help="the shell")


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

    versions = component_versions()
    if args.json:
        print(orjson.dumps(versions).decode())
    else:
        for name, version in versions.items():
            print(f"{name} {version or '(not installed)'}")
    return 0


COMMANDS: dict[str, Command] = {
    "init": Command("create a configuration folder for a new crawl", _init_options, _init),
    "doctor": Command("check the services, settings and files that a crawl needs", _doctor_options, _doctor),
    "version": Command("print the versions of the program and its parts", _version_options, _version),
    "plugin": Command("list the plug-ins, or run a class of one", _plugin_options, _plugin),
    "completion": Command("print a completion script for a shell", _completion_options, _completion),
}
