"""Commands that start the server and manage its tokens."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from nutch2py.commands.command import Arguments, Command, NumberArgument, port_number
from nutch2py.conf.property_ranges import NumberRange

if TYPE_CHECKING:
    from nutch2py.conf.configuration import Configuration

_ROLES = ("search", "read", "run", "admin")
_LEVELS = ("ALL", "TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL", "OFF")


def _serve_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-port", "--port", type=port_number, metavar="N", help="port (serve.port, 8080); 0: a free one")
    parser.add_argument("-host", "--host", metavar="ADDRESS", help="address (serve.host, 127.0.0.1)")


def _serve(args: Arguments, conf: Configuration) -> int:
    from nutch2py.server.http_server import serve

    if args.port is not None:
        conf.set("serve.port", args.port)
    if args.host:
        conf.set("serve.host", args.host)
    return serve(conf)


def _nutchserver_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-port", "--port", type=port_number, metavar="N", help="port (nutchserver.port, 8081); 0: a free one"
    )
    parser.add_argument("-host", "--host", metavar="ADDRESS", help="address (nutchserver.host, 127.0.0.1)")
    parser.add_argument("-log", "--log", choices=_LEVELS, metavar="LEVEL", help="log requests: DEBUG, INFO, …")
    parser.add_argument(
        "-stop", "--stop", nargs="?", const="false", choices=("true", "false"), metavar="force",
        help="stop the running server; true: even if jobs are running, which continue",
    )  # fmt: skip


def _nutchserver(args: Arguments, conf: Configuration) -> int:
    from nutch2py.server.http_server import nutchserver, stop_nutchserver

    if args.port is not None:
        conf.set("nutchserver.port", args.port)
    if args.host:
        conf.set("nutchserver.host", args.host)
    if args.stop is not None:
        return stop_nutchserver(conf, args.stop == "true")
    if args.log:
        conf.set("nutchserver.log", args.log)
    return nutchserver(conf)


def _token_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="name of the token; replaces a token of the same name")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("-role", "--role", choices=_ROLES, default="read", help="role of the token (default: read)")
    what.add_argument("-remove", "--remove", action="store_true", help="remove the token of this name")
    parser.add_argument("-rate", "--rate", type=_RATE, metavar="N", help="requests per second; 0: unlimited; "
                        "without it: rest.requests.per.second")  # fmt: skip


_RATE = NumberArgument(NumberRange(0, 1_000_000, False), checked_by_property=True)
"""Checked by ``rest.access.tokens.parse_rate``."""


def _token(args: Arguments, conf: Configuration) -> int:
    from nutch2py.rest.access.tokens import Role, add_token, parse_rate, remove_token

    if args.remove:
        remove_token(conf, args.name)
    else:
        rate = None if args.rate is None else parse_rate(args.rate)
        print(add_token(conf, args.name, Role.from_name(args.role), rate))
    return 0


COMMANDS: dict[str, Command] = {
    "serve": Command("serve the search page and the REST interface", _serve_options, _serve),
    "nutchserver": Command("serve REST with Nutch 2's paths at its port", _nutchserver_options, _nutchserver),
    "token": Command("create a token for the REST interface, or a key for the search", _token_options, _token),
}
