"""The command line: finds the command, reads the configuration, and turns errors into one line and an exit code.

Common options (``-D name=value``, ``-q`` …) may come before or after the command.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from nutch2py.commands import COMMAND_GROUPS, COMMANDS, command_parser
from nutch2py.commands.command import suggest_match
from nutch2py.commands.nutch_class_names import resolve_command
from nutch2py.conf.redaction import redact
from nutch2py.errors import NutchError, StoreError, UsageError
from nutch2py.support import log_file
from nutch2py.support.disk_errors import disk_error_message
from nutch2py.support.reporting import use_reporter, warnings_only_reporter
from nutch2py.support.terminal import escaped_streams
from nutch2py.version import __version__

if TYPE_CHECKING:
    from nutch2py.conf.configuration import Configuration

_LOG = logging.getLogger("nutch2py")
_OPTIONS_WITH_VALUE = frozenset(
    {"-D", "--conf", "-r", "--runner", "-crawlId", "--crawl-id", "--log-file", "--log-format"}
)
"""Options that may come before the command and take a value."""


def all_command_parsers() -> dict[str, argparse.ArgumentParser]:
    """Return the parser of every command."""
    return {name: command_parser(name) for name in COMMANDS}


def _usage() -> str:
    width = max(map(len, COMMANDS))
    lines = ["Usage: nutch2py COMMAND [options]", "where COMMAND is one of:"]
    for title, names in COMMAND_GROUPS.items():
        lines += ["", f"{title}:", *(f"  {name:{width}}  {COMMANDS[name].summary}" for name in names)]
    return "\n".join(
        [
            *lines,
            "",
            "Most commands print help when invoked with --help.",
            "Begin with: nutch2py crawl https://your.site/ && nutch2py search WORDS",
        ]
    )


def _load_configuration(args: argparse.Namespace) -> Configuration:
    from nutch2py.conf.configuration import Configuration
    from nutch2py.plugins.unknown_properties import unknown_plugin_ids, unread_properties
    from nutch2py.support.reporting import warn

    overrides: dict[str, str] = {}
    for setting in args.D:
        name, equals, value = setting.partition("=")
        if not equals or not name.strip():
            setting_text = "" if equals else f" {setting}"
            raise UsageError(f"-D{setting_text} sets nothing: write -D name=value")
        try:
            setting.encode()
        except UnicodeEncodeError as error:
            raise UsageError(f"the value of -D {name.strip()!a} is not UTF-8: write it in UTF-8") from error
        overrides[name.strip()] = value
    conf = Configuration.load(args.conf, overrides)
    for name, similar in unread_properties(conf):
        if similar:
            warn(f"there is no property {name}, did you mean {similar}? It is ignored")
        else:
            warn(f"there is no property {name}, which {conf.origin(name)} sets: it is ignored")
    for property_name, plugin_id, similar_id in unknown_plugin_ids(conf):
        hint = f", did you mean {similar_id}?" if similar_id else ":"
        warn(f"{property_name} names {plugin_id}, which is not an installed plug-in{hint} It is ignored")
    if args.crawl_id is not None:
        conf.set("storage.crawl.id", args.crawl_id)
    if args.runner is not None:
        conf.set("mapreduce.runner", args.runner)
    conf.check_numbers()
    return conf


def _split_command(argv: Sequence[str]) -> tuple[str | None, list[str]]:
    """Return the command and its arguments, with the options before the command moved after it."""
    before: list[str] = []
    rest = list(argv)
    while rest and rest[0].startswith("-"):
        option = rest.pop(0)
        before.append(option)
        if option in _OPTIONS_WITH_VALUE and rest:
            before.append(rest.pop(0))
    return (rest[0], [*rest[1:], *before]) if rest else (None, before)


def _run_command(argv: Sequence[str], secrets: list[str]) -> int:
    """Run a command. Add to ``secrets`` the values that its messages must not show."""
    name, rest = _split_command(argv)
    if name is None:
        if "--version" in rest:
            print(f"nutch2py {__version__}")
            return 0
        print(_usage())
        return 0 if {"--help", "-h", "-help"} & set(rest) else 1
    name = resolve_command(name)
    if name not in COMMANDS:
        raise UsageError(f"there is no command {name}{suggest_match(name, COMMANDS)}: nutch2py --help lists them")
    try:
        args = command_parser(name).parse_args(["--help" if word == "-help" else word for word in rest])
    except SystemExit:  # the help was printed
        return 0
    if args.log_file is not None:
        try:
            log_file.open_log(Path(args.log_file), args.log_format)
        except OSError as error:
            raise UsageError(f"--log-file {args.log_file} cannot be written: {error.strerror}") from error
    with log_file.log_to_stderr() if args.verbose else contextlib.nullcontext():
        conf = _load_configuration(args)
        secrets += conf.secret_values()
        log_file.add_secrets(secrets)
        if args.verbose:
            _LOG.info("configuration: %s", ", ".join(map(str, conf.conf_dirs)))
        with use_reporter(warnings_only_reporter()) if args.quiet else contextlib.nullcontext():
            return COMMANDS[name].run(args, conf)


def _prepare_streams() -> None:
    """Replace closed standard streams by the null device, and make output never fail for a character.

    The null device takes the lowest free numbers, which are those of the closed streams: otherwise output could go into
    the file of a table.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115  # for the whole process
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a page or an argument may contain unencodable characters
            stream.reconfigure(errors="backslashreplace")


def _flush_streams() -> None:
    """Flush the output. A full disk must not make Python lose the exit code at its end."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            with contextlib.suppress(OSError, ValueError):  # a stream of a test has no number
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    _prepare_streams()
    with escaped_streams():
        return _run_to_exit_code(sys.argv[1:] if argv is None else argv)


def _run_to_exit_code(words: Sequence[str]) -> int:
    secrets: list[str] = []
    try:
        return _run_command(words, secrets)
    except SystemExit as stop:
        if isinstance(stop.code, int) and stop.code:
            return stop.code
        print("nutch2py: the command exited early, for example by sys.exit in a plug-in", file=sys.stderr)
        return 255
    except KeyboardInterrupt:
        print("interrupted: run the same command again to continue", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of our output has exited
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except Exception as error:  # noqa: BLE001  # every error ends in one line and an exit code
        if "--debug" in words:
            import traceback  # costs start-up

            print(redact(traceback.format_exc(), secrets), end="", file=sys.stderr)
        return _report_failure(error, secrets)
    finally:
        if log_file.LOG_FILE_VARIABLE in os.environ and any(word.startswith("--log-file") for word in words):
            log_file.close_log()
        _flush_streams()


def _report_failure(error: Exception, secrets: list[str]) -> int:
    """Print one line about an error and return the exit code."""
    with contextlib.suppress(OSError):  # the output may be on the full disk, too: the exit code is enough
        return _print_failure(error, secrets)
    return error.exit_code if isinstance(error, NutchError) else StoreError.exit_code


def _print_failure(error: Exception, secrets: list[str]) -> int:
    log_file.write_log_lines("ERROR", redact(str(error) or type(error).__name__, secrets))
    if isinstance(error, NutchError):
        print(f"nutch2py: {redact(str(error), secrets)}", file=sys.stderr)
        return error.exit_code
    if (disk_message := disk_error_message(error, "what this command writes")) is not None:
        print(f"nutch2py: {redact(disk_message, secrets)}", file=sys.stderr)
        return StoreError.exit_code
    message = redact(f"{type(error).__name__}: {error}", secrets)
    print(f"nutch2py: {message} (--debug shows the traceback)", file=sys.stderr)
    return 255


if __name__ == "__main__":
    sys.exit(main())
