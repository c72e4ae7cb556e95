"""A server with scripted responses that fails in every way."""

import socket
import threading
import zlib
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@contextmanager
def server(*answers, sent=None):
    """Send the responses in sequence, the last one repeatedly; yield the address and the received requests.

    ``answers``: (status, body), or the name of a failure. ``sent``: counts the bytes of endless responses.
    """
    waiting, seen, sent = list(answers), [], [0] if sent is None else sent

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            seen.append(self.rfile.read(int(self.headers.get("Content-Length", 0))))
            answer = waiting.pop(0) if len(waiting) > 1 else waiting[0]
            if answer == "cut":
                self.send_response(200)
                self.send_header("Content-Length", "1000")
                self.end_headers()
                self.wfile.write(b'{"half')
                self.close_connection = True
            elif answer == "drop":
                self.connection.shutdown(socket.SHUT_RDWR)
                self.close_connection = True
            elif answer in ("endless", "endless chunks", "endless gzip", "endless error", "endless drip"):
                self.close_connection = True
                with suppress(OSError):
                    self._send_without_end(answer)
            elif answer == "hang":
                threading.Event().wait(1.5)
                self.close_connection = True
            else:
                status, body = answer
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        def _send_without_end(self, kind):
            """Send spaces, which JSON allows before an object, until the client closes the connection."""
            piece = b" " * 65_536
            self.send_response(500 if kind == "endless error" else 200)
            self.send_header("Content-Type", "application/json")
            if kind == "endless chunks":
                self.send_header("Transfer-Encoding", "chunked")
                piece = b"10000\r\n%b\r\n" % piece
            if kind == "endless gzip":
                self.send_header("Content-Encoding", "gzip")
                packer = zlib.compressobj(wbits=31)
            self.end_headers()
            while True:
                if kind == "endless gzip":
                    piece = packer.compress(b" " * 4_000_000) + packer.flush(zlib.Z_SYNC_FLUSH)
                if kind == "endless drip":
                    piece = b" "
                    threading.Event().wait(0.05)
                self.wfile.write(piece)
                sent[0] += len(piece)

        do_GET = do_PUT = do_POST  # noqa: N815

        def log_message(self, *_):
            """Disable the log."""

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=listening.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listening.server_address[1]}/solr/nutch", seen
    finally:
        listening.shutdown()
        listening.server_close()
