"""The command line: finds the command, reads the configuration, and turns failures into one line and an exit code.

Options that every command has (``-D name=value``, ``-q`` …) may stand before or after the command.
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

from nutch2py import log_file
from nutch2py.commands import COMMANDS, command_parser
from nutch2py.commands.command import did_you_mean
from nutch2py.commands.old_names import command_of
from nutch2py.disk import disk_trouble
from nutch2py.errors import NutchError, StoreError, UsageError
from nutch2py.reporting import quiet, reporting_to
from nutch2py.secrets import concealed
from nutch2py.version import __version__

if TYPE_CHECKING:
    from nutch2py.conf import Configuration

_LOG = logging.getLogger("nutch2py")
_WITH_VALUE = frozenset({"-D", "--conf", "-r", "--runner", "-crawlId", "--crawl-id", "--log-file", "--log-format"})
"""Options that may stand before the command, and have a word behind them."""


def commands() -> dict[str, argparse.ArgumentParser]:
    """Return the parser of every command."""
    return {name: command_parser(name) for name in COMMANDS}


def _usage() -> str:
    width = max(map(len, COMMANDS))
    lines = [f"  {name:{width}}  {command.summary}" for name, command in COMMANDS.items()]
    return "\n".join(
        [
            "Usage: nutch2py COMMAND [options]",
            "where COMMAND is one of:",
            *lines,
            "Most commands print help when invoked with --help.",
        ]
    )


def _configuration(args: argparse.Namespace) -> Configuration:
    from nutch2py.conf import Configuration
    from nutch2py.plugins import unknown_ids, unread
    from nutch2py.reporting import warn

    overrides: dict[str, str] = {}
    for setting in args.D:
        name, equals, value = setting.partition("=")
        if not equals or not name.strip():
            shown = "" if equals else f" {setting}"
            raise UsageError(f"-D{shown} sets nothing: write -D name=value")
        try:
            setting.encode()
        except UnicodeEncodeError as error:
            raise UsageError(f"what -D sets {name.strip()!a} to is not UTF-8: write it in UTF-8") from error
        overrides[name.strip()] = value
    conf = Configuration.load(args.conf, overrides)
    for name, meant in unread(conf):
        if meant:
            warn(f"there is no property {name}, did you mean {meant}? Nothing reads it")
        else:
            warn(f"there is no property {name}, which {conf.origin(name)} sets: nothing reads it")
    for property_name, plugin_id, near in unknown_ids(conf):
        meant = f", did you mean {near}?" if near else ":"
        warn(f"{property_name} names {plugin_id}, which is no plug-in here{meant} It is left out")
    if args.crawl_id is not None:
        conf.set("storage.crawl.id", args.crawl_id)
    if args.runner is not None:
        conf.set("mapreduce.runner", args.runner)
    conf.check_numbers()
    return conf


def _split_command(argv: Sequence[str]) -> tuple[str | None, list[str]]:
    """Return the command and its arguments, with the options that stood before the command put behind it."""
    before: list[str] = []
    rest = list(argv)
    while rest and rest[0].startswith("-"):
        option = rest.pop(0)
        before.append(option)
        if option in _WITH_VALUE and rest:
            before.append(rest.pop(0))
    return (rest[0], [*rest[1:], *before]) if rest else (None, before)


def _run(argv: Sequence[str], secrets: list[str]) -> int:
    """Run a command; put into ``secrets`` what its messages must not show."""
    name, rest = _split_command(argv)
    if name is None:
        if "--version" in rest:
            print(f"nutch2py {__version__}")
            return 0
        print(_usage())
        return 0 if {"--help", "-h", "-help"} & set(rest) else 1
    name = command_of(name)
    if name not in COMMANDS:
        raise UsageError(f"there is no command {name}{did_you_mean(name, COMMANDS)}: nutch2py --help lists them")
    try:
        args = command_parser(name).parse_args(["--help" if word == "-help" else word for word in rest])
    except SystemExit:  # the help was printed
        return 0
    if args.log_file is not None:
        try:
            log_file.open_log(Path(args.log_file), args.log_format)
        except OSError as error:
            raise UsageError(f"--log-file {args.log_file} cannot be written: {error.strerror}") from error
    with log_file.printing() if args.verbose else contextlib.nullcontext():
        conf = _configuration(args)
        secrets += conf.secrets()
        log_file.hide(secrets)
        if args.verbose:
            _LOG.info("configuration: %s", ", ".join(map(str, conf.folders)))
        with reporting_to(quiet()) if args.quiet else contextlib.nullcontext():
            return COMMANDS[name].run(args, conf)


def _open_streams() -> None:
    """Open on the null device the streams that the caller has closed, and let no letter end a command.

    They take the lowest numbers that are free, which are those streams' own: no table's file is ever printed into.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115  # for the whole process
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a page or a word may hold what it has no letters for
            stream.reconfigure(errors="backslashreplace")


def _close_streams() -> None:
    """Let Python not stumble, and lose the exit code, over lines at its end that a full disk does not take."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            with contextlib.suppress(OSError, ValueError):  # it has no number: a test's
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; return its exit code."""
    _open_streams()
    words = sys.argv[1:] if argv is None else argv
    secrets: list[str] = []
    try:
        return _run(words, secrets)
    except SystemExit as stop:
        if isinstance(stop.code, int) and stop.code:
            return stop.code
        print("nutch2py: the command was ended from within, as by sys.exit in a plug-in", file=sys.stderr)
        return 255
    except KeyboardInterrupt:
        print("interrupted: run the same command again to go on", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of our output is gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except Exception as error:  # noqa: BLE001  # whatever it is, it ends in a line and a code
        if "--debug" in words:
            import traceback  # costs start-up

            print(concealed(traceback.format_exc(), secrets), end="", file=sys.stderr)
        return _explain(error, secrets)
    finally:
        if log_file.PLACE in os.environ and any(word.startswith("--log-file") for word in words):
            log_file.close_log()
        _close_streams()


def _explain(error: Exception, secrets: list[str]) -> int:
    """Print one line about a failure; return its exit code."""
    with contextlib.suppress(OSError):  # the line goes to a disk that is full, too: the code says as much
        return _told(error, secrets)
    return error.exit_code if isinstance(error, NutchError) else StoreError.exit_code


def _told(error: Exception, secrets: list[str]) -> int:
    log_file.note("ERROR", concealed(str(error) or type(error).__name__, secrets))
    if isinstance(error, NutchError):
        print(f"nutch2py: {concealed(str(error), secrets)}", file=sys.stderr)
        return error.exit_code
    if (trouble := disk_trouble(error, "what this command writes")) is not None:
        print(f"nutch2py: {concealed(trouble, secrets)}", file=sys.stderr)
        return StoreError.exit_code
    told = concealed(f"{type(error).__name__}: {error}", secrets)
    print(f"nutch2py: {told} (--debug shows the traceback)", file=sys.stderr)
    return 255


if __name__ == "__main__":
    sys.exit(main())
