"""The subset of Solr that index jobs use, without Java: ``small_solr.py PORT FILE [ADDRESS]``.

Documents are kept in FILE, as JSON by id. With port 0, it prints the port that it uses.
"""

from __future__ import annotations

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

FINE = b'{"responseHeader": {"status": 0}}'


def main(port: int, file: Path, address: str = "127.0.0.1") -> None:
    """Serve until killed."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if body.startswith(b"["):
                known = json.loads(file.read_text()) if file.exists() else {}
                known.update({document["id"]: document for document in json.loads(body)})
                part = file.with_suffix(".part")
                part.write_text(json.dumps(known))
                part.replace(file)
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(FINE)))
            self.end_headers()
            self.wfile.write(FINE)

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer((address, port), Handler)
    print(server.server_address[1], flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:])
