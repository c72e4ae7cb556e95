"""``nutch2py serve``: the application over HTTP, on loopback unless told otherwise."""

from __future__ import annotations

import logging
import socket
from contextlib import suppress
from http import HTTPStatus

import uvicorn

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError, InputError, NutchError
from nutch2py.server.app import create_app
from nutch2py.server.http_protocol import uvicorn_config
from nutch2py.server.security_middleware import is_loopback
from nutch2py.support.reporting import warn

_BACKLOG = 256


class HttpServer:
    """The application on a port, which it listens on from the start; ``run`` answers."""

    def __init__(self, conf: Configuration, address: tuple[str, int], property_prefix: str = "serve") -> None:
        """``property_prefix``: what begins the properties of the address, for messages."""
        self._socket = _listen(address, property_prefix)
        self.address: tuple[str, int] = self._socket.getsockname()[:2]
        self.is_local = is_loopback(self.address[0])
        try:
            self.app = create_app(conf, self.is_local)
        except NutchError:
            self.close()
            raise
        self.app.state.gatekeeper.context.stop_server = self.stop
        self._uvicorn = uvicorn.Server(uvicorn_config(self.app))

    @property
    def url(self) -> str:
        """Where the first page is."""
        name, port = self.address
        return f"http://[{name}]:{port}/" if ":" in name else f"http://{name}:{port}/"

    def run(self) -> None:
        """Answer until :meth:`stop`, or a signal in the main thread, which has its effect when all is closed."""
        try:
            self._uvicorn.run([self._socket])
        finally:
            self.close()

    def stop(self) -> None:
        """End what runs in another thread."""
        self._uvicorn.should_exit = True

    def close(self) -> None:
        """Give back the port."""
        self._socket.close()


def _listen(address: tuple[str, int], named: str) -> socket.socket:
    family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    # asyncio sends at once what it writes where the protocol is named; else an answer's body waits 40 ms for its head
    made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
        made.listen(_BACKLOG)
    except OSError as error:
        made.close()
        raise ConfigurationError(
            f"cannot listen on {address[0]} port {address[1]}: {error.strerror}: choose another with {named}.host, "
            f"{named}.port"
        ) from error
    return made


def serve(conf: Configuration) -> int:
    """Serve until Ctrl-C."""
    server = _create_server(conf, "serve", 8080)
    if not server.is_local:
        warn("serve.host is not loopback: whoever reaches this address can search and see cached pages")
        if not conf.get_trimmed("rest.tokens.file"):
            warn("the REST interface answers nobody at this address: rest.tokens.file is not set")
    return _run_until_interrupted(server, "serve")


def nutchserver(conf: Configuration) -> int:
    """Serve until Ctrl-C or GET /admin/stop, as Nutch 2's server does; on loopback only, unless there are tokens."""
    level = conf.get_trimmed("nutchserver.log", "OFF")
    if level in ("ALL", "TRACE", "DEBUG", "INFO"):
        logging.basicConfig(format="%(asctime)s %(message)s")
        logging.getLogger("nutch2py.rest").setLevel(logging.INFO)
    server = _create_server(conf, "nutchserver", 8081)
    if not server.is_local and not conf.get_trimmed("rest.tokens.file"):
        server.close()
        raise ConfigurationError("nutchserver.host is not loopback: set rest.tokens.file, as nutch2py token fills it")
    return _run_until_interrupted(server, "nutchserver")


def stop_nutchserver(conf: Configuration, force: bool) -> int:
    """Ask the server of nutchserver.host and nutchserver.port to stop; 1 when it does not, for jobs run."""
    import requests

    host = conf.get_trimmed("nutchserver.host", "127.0.0.1")
    port = conf.get_int("nutchserver.port", 8081)
    named = f"[{host}]" if ":" in host else host
    token = conf.get_trimmed("rest.token")
    session = requests.Session()
    session.trust_env = False  # no proxy: it is ours
    try:
        with session.get(
            f"http://{named}:{port}/admin/stop",
            params={"force": str(force).lower()},
            headers={"Authorization": f"Bearer {token}"} if token else {},
            timeout=30,
        ) as answer:
            text, status = answer.text, answer.status_code
    except requests.RequestException as error:
        raise InputError(f"no server answers at {host} port {port}: name it with -host and -port") from error
    if status != HTTPStatus.OK:
        raise InputError(f"the server at {host} port {port} answers {status}: {text.strip()[:300]}")
    print(text)
    return 0 if text.startswith("Stopping") else 1


def _create_server(conf: Configuration, named: str, default: int) -> HttpServer:
    port = conf.get_int(f"{named}.port", default)
    if not 0 <= port <= 65535:
        raise ConfigurationError(f"{named}.port is {port}: write a number from 0 to 65535")
    return HttpServer(conf, (conf.get_trimmed(f"{named}.host", "127.0.0.1"), port), named)


def _run_until_interrupted(server: HttpServer, named: str) -> int:
    print(f"{named}: {server.url}", flush=True)
    with suppress(KeyboardInterrupt):
        server.run()
    print(f"{named}: stopped")
    return 0
