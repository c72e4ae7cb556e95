"""FtpSite: a small FTP server for tests: login, passive mode, LIST, RETR, SIZE, MDTM."""

from __future__ import annotations

import socket
import threading
from socketserver import StreamRequestHandler, ThreadingTCPServer
from typing import Self


class FtpSite:
    """Serves files by path on 127.0.0.1 and a free port; records fetches and logins."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self.files = files
        self.retrieved: list[str] = []
        self.logins: set[tuple[str, str]] = set()
        site = self

        class Session(StreamRequestHandler):
            folder = "/"
            user = ""

            def say(self, text: str) -> None:
                self.wfile.write(f"{text}\r\n".encode())

            def handle(self) -> None:
                self.say("220 ready")
                data: socket.socket | None = None
                for line in self.rfile:
                    command, _, value = line.decode().strip().partition(" ")
                    match command.upper():
                        case "USER":
                            self.user = value
                            self.say("331 password")
                        case "PASS":
                            site.logins.add((self.user, value))
                            self.say("230 in")
                        case "PWD":
                            self.say(f'257 "{self.folder}"')
                        case "CWD":
                            folder = (value if value.startswith("/") else self.folder + value).rstrip("/") + "/"
                            there = any(path.startswith(folder) for path in site.files)
                            self.folder = folder if there else self.folder
                            self.say("250 there" if there else "550 no folder")
                        case "EPSV":
                            if data is not None:
                                data.close()
                            data = socket.create_server(("127.0.0.1", 0))
                            self.say(f"229 passive (|||{data.getsockname()[1]}|)")
                        case "TYPE":
                            self.say("200 good")
                        case "SIZE" | "MDTM" | "RETR":
                            path = value if value.startswith("/") else self.folder + value
                            if path not in site.files:
                                self.say("550 no file")
                            elif command == "SIZE":
                                self.say(f"213 {len(site.files[path])}")
                            elif command == "MDTM":
                                self.say("213 20200913122640")
                            else:
                                site.retrieved.append(path)
                                self.send(data, site.files[path])
                        case "LIST":
                            self.send(data, self.listing().encode())
                        case "QUIT":
                            self.say("221 bye")
                            break
                        case _:
                            self.say("502 what?")
                if data is not None:
                    data.close()

            def send(self, data: socket.socket | None, content: bytes) -> None:
                assert data is not None
                self.say("150 comes")
                with data, data.accept()[0] as connection:
                    try:
                        connection.sendall(content)
                    except OSError:  # the client has enough
                        self.say("426 broken off")
                        return
                self.say("226 done")

            def listing(self) -> str:
                inside = [path.removeprefix(self.folder) for path in site.files if path.startswith(self.folder)]
                lines = {}
                for name in inside:
                    top, slash, _ = name.partition("/")
                    size = 4096 if slash else len(site.files[self.folder + name])
                    lines[top] = f"{'d' if slash else '-'}rw-r--r-- 1 ftp ftp {size} Jan 01 12:00 {top}\r\n"
                return "".join(lines.values())

        class Server(ThreadingTCPServer):
            allow_reuse_address = daemon_threads = True

        self._server = Server(("127.0.0.1", 0), Session)
        self.port: int = self._server.server_address[1]

    def url(self, path: str) -> str:
        """Return the URL of a path."""
        return f"ftp://127.0.0.1:{self.port}{path}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
