"""``nutch2py serve``: the application over HTTP, on loopback unless told otherwise."""

from __future__ import annotations

import socket

import uvicorn

from nutch2py.conf import Configuration
from nutch2py.errors import ConfigurationError
from nutch2py.reporting import warn
from nutch2py.server.app import application
from nutch2py.server.guard import is_loopback
from nutch2py.server.protocol import configured

_BACKLOG = 256


class Server:
    """The application on a port, which it listens on from the start; ``run`` answers."""

    def __init__(self, conf: Configuration, address: tuple[str, int], named: str = "serve") -> None:
        """``named``: what begins the properties of the address, for messages."""
        self._socket = _listening(address, named)
        self.address: tuple[str, int] = self._socket.getsockname()[:2]
        self.local = is_loopback(self.address[0])
        self.app = application(conf, self.local)
        self._uvicorn = uvicorn.Server(configured(self.app))

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


def _listening(address: tuple[str, int], named: str) -> socket.socket:
    made = socket.socket(socket.AF_INET6 if ":" in address[0] else socket.AF_INET)
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
    port = conf.get_int("serve.port", 8080)
    if not 0 <= port <= 65535:
        raise ConfigurationError(f"serve.port is {port}: write a number from 0 to 65535")
    server = Server(conf, (conf.get_trimmed("serve.host", "127.0.0.1"), port))
    if not server.local:
        warn("serve.host is not loopback: whoever reaches this address can search and see cached pages")
    print(f"serve: {server.url}", flush=True)
    try:
        server.run()
    except KeyboardInterrupt:
        print("serve: stopped")
    return 0
