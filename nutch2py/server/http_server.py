"""``nutch2py serve`` and ``nutchserver``: the application over HTTP, on loopback by default."""

from __future__ import annotations

import logging
import socket
from contextlib import suppress
from http import HTTPStatus

import uvicorn

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError, InputError, NutchError
from nutch2py.server.app import create_app
from nutch2py.server.connection_limits import uvicorn_config
from nutch2py.server.request_guard import is_loopback
from nutch2py.support.reporting import warn

_BACKLOG = 256


class HttpServer:
    """The application on a port. It listens from construction on; ``run`` serves.

    Attributes:
        address: Host and port.
        is_local: Whether only this machine can connect.
        app: The ASGI application.
        uvicorn_server: The server below, with its state and connections.
    """

    def __init__(self, conf: Configuration, address: tuple[str, int], property_prefix: str = "serve") -> None:
        """``property_prefix``: prefix of the address properties, for messages."""
        self._socket = _listen(address, property_prefix)
        self.address: tuple[str, int] = self._socket.getsockname()[:2]
        self.is_local = is_loopback(self.address[0])
        try:
            self.app = create_app(conf, self.is_local)
        except NutchError:
            self.close()
            raise
        self.app.state.authorizer.context.stop_server = self.stop
        self.uvicorn_server = uvicorn.Server(uvicorn_config(self.app))

    @property
    def url(self) -> str:
        """URL of the first page."""
        name, port = self.address
        return f"http://[{name}]:{port}/" if ":" in name else f"http://{name}:{port}/"

    def run(self) -> None:
        """Serve until :meth:`stop` or a signal in the main thread, which is raised again after shutdown."""
        try:
            self.uvicorn_server.run([self._socket])
        finally:
            self.close()

    def stop(self) -> None:
        """Stop a server that runs in another thread."""
        self.uvicorn_server.should_exit = True

    def close(self) -> None:
        """Close the port."""
        self._socket.close()


def _listen(address: tuple[str, int], property_prefix: str) -> socket.socket:
    family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    # asyncio sets TCP_NODELAY only if the protocol is given; else a response body waits 40 ms for its headers
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        raise ConfigurationError(
            f"cannot listen on {address[0]} port {address[1]}: {error.strerror}: choose another with "
            f"{property_prefix}.host, {property_prefix}.port"
        ) from error
    return listener


def serve(conf: Configuration) -> int:
    """Serve until Ctrl-C."""
    server = _create_server(conf, "serve", 8080)
    if not server.is_local:
        warn("serve.host is not loopback: anyone who reaches this address can search and see cached pages")
        if not conf.get_trimmed("rest.tokens.file"):
            warn("the REST API rejects all requests at this address: rest.tokens.file is not set")
    return _run_until_interrupted(server, "serve")


def nutchserver(conf: Configuration) -> int:
    """Serve until Ctrl-C or GET /admin/stop, as Nutch 2's server does; without tokens on loopback only."""
    level = conf.get_trimmed("nutchserver.log", "OFF")
    if level in ("ALL", "TRACE", "DEBUG", "INFO"):
        logging.basicConfig(format="%(asctime)s %(message)s")
        logging.getLogger("nutch2py.rest").setLevel(logging.INFO)
    server = _create_server(conf, "nutchserver", 8081)
    if not server.is_local and not conf.get_trimmed("rest.tokens.file"):
        server.close()
        raise ConfigurationError(
            "nutchserver.host is not loopback: create tokens with nutch2py token, and set rest.tokens.file"
        )
    return _run_until_interrupted(server, "nutchserver")


def stop_nutchserver(conf: Configuration, force: bool) -> int:
    """Ask the server at nutchserver.host and nutchserver.port to stop; return 1 if running jobs prevent it."""
    import requests

    host = conf.get_trimmed("nutchserver.host", "127.0.0.1")
    port = conf.get_int("nutchserver.port", 8081)
    url_host = f"[{host}]" if ":" in host else host
    token = conf.get_trimmed("rest.token")
    session = requests.Session()
    session.trust_env = False  # no proxy
    try:
        with session.get(
            f"http://{url_host}:{port}/admin/stop",
            params={"force": str(force).lower()},
            headers={"Authorization": f"Bearer {token}"} if token else {},
            timeout=30,
        ) as response:
            text, status = response.text, response.status_code
    except requests.RequestException as error:
        raise InputError(f"no server responds at {host} port {port}: set -host and -port") from error
    if status != HTTPStatus.OK:
        raise InputError(f"the server at {host} port {port} returned status {status}: {text.strip()[:300]}")
    print(text)
    return 0 if text.startswith("Stopping") else 1


def _create_server(conf: Configuration, name: str, default_port: int) -> HttpServer:
    port = conf.get_int(f"{name}.port", default_port)
    if not 0 <= port <= 65535:
        raise ConfigurationError(f"{name}.port is {port}: use a number from 0 to 65535")
    return HttpServer(conf, (conf.get_trimmed(f"{name}.host", "127.0.0.1"), port), name)


def _run_until_interrupted(server: HttpServer, name: str) -> int:
    print(f"{name}: {server.url}", flush=True)
    with suppress(KeyboardInterrupt):
        server.run()
    print(f"{name}: stopped")
    return 0
