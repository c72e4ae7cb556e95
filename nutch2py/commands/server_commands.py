"""Commands that start servers and manage their tokens."""

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


def _mcp_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-role", "--role", choices=("search", "read", "run"), default="read",
        help="what the client may do: search, read pages, run crawls (default: read)",
    )  # fmt: skip


def _mcp(args: Arguments, conf: Configuration) -> int:
    from nutch2py.mcp_server import require_mcp
    from nutch2py.rest.access.tokens import Role

    require_mcp("nutch2py mcp")
    from nutch2py.mcp_server.protocol_server import serve_stdio

    return serve_stdio(conf, Role.from_name(args.role))


def _botkey_options(parser: argparse.ArgumentParser) -> None:
    what = parser.add_mutually_exclusive_group()
    what.add_argument("-show", "--show", action="store_true", help="print the directory of public keys as JSON")
    what.add_argument(
        "-rotate", "--rotate", action="store_true", help="add a key that signs from tomorrow on, when the old ones end"
    )
    what.add_argument(
        "-replace", "--replace", action="store_true", help="replace all keys at once: somebody may know them"
    )


def _botkey(args: Arguments, conf: Configuration) -> int:
    import json

    from nutch2py.errors import ConfigurationError
    from nutch2py.fetcher.signatures.signing_keys import KeyFile, require_cryptography

    require_cryptography("nutch2py botkey")
    name = conf.get_trimmed("http.signature.key.file")
    if not name:
        raise ConfigurationError(f"http.signature.key.file is not set: set it in {conf.site_file} or with -D")
    file = KeyFile(conf.absolute(name))
    if args.show:
        print(json.dumps({"keys": [key.public_jwk() for key in file.read()]}, indent=1))
        return 0
    key = file.rotate() if args.rotate else file.replace() if args.replace else file.create()
    print(f"{key.thumbprint} is in {file.path}")
    return 0


COMMANDS: dict[str, Command] = {
    "serve": Command("serve the search page and the REST interface", _serve_options, _serve),
    "mcp": Command("serve the crawl to language models over stdio (MCP)", _mcp_options, _mcp),
    "nutchserver": Command("serve REST with Nutch 2's paths at its port", _nutchserver_options, _nutchserver),
    "botkey": Command("create or rotate the key that signs requests (Web Bot Auth)", _botkey_options, _botkey),
    "token": Command("create a token for the REST interface, or a key for the search", _token_options, _token),
}
