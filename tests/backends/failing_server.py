"""A server with scripted responses that fails in every way."""

import socket
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@contextmanager
def server(*answers):
    """Send the responses in sequence, the last one repeatedly; yield the address and the received requests."""
    waiting, seen = list(answers), []

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
