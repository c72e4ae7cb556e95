"""The Tika server parser, with a local server that responds in Tika's form."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.parser.row_parser import RowParser

from .pages import KEY, fetched


class Handler(BaseHTTPRequestHandler):
    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if body == b"\0bad":
            self.send_error(422)
            return
        text = f"\n{body[1:].decode()}\n\n see http://o.test/x "
        first = {"dc:title": "Title", "dc:creator": ["A", "B"], "X-TIKA:content": text}
        answer = b"no json" if body == b"\0odd" else json.dumps([first, {"X-TIKA:content": self.path}]).encode()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@pytest.fixture
def server() -> Iterator[str]:
    made = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=made.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{made.server_port}"
    made.shutdown()
    thread.join()
    made.server_close()


def test_unknown_type_is_sent_to_tika_server(conf: Configuration, server: str) -> None:
    conf.set("plugin.includes", "parse-(html|tika|tika-server)|urlnormalizer-basic|urlfilter-validator")
    conf.set("tika.server.url", f"{server}/")
    page = fetched(b"\0words", "application/x-unknown")
    assert RowParser(conf).parse_row(KEY, page).label == "success"
    assert (page.title, page.text) == ("Title", "words\nsee http://o.test/x\n/rmeta/text")
    assert (list(page.outlinks), page.metadata["dc:creator"]) == (["http://o.test/x"], b"A")
    for body in (b"\0bad", b"\0odd"):
        page = fetched(body, "application/x-unknown")
        assert RowParser(conf).parse_row(KEY, page).label == "failed"
    conf.set("tika.server.url", "http://127.0.0.1:9")
    outcome = RowParser(conf).parse_row(KEY, fetched(b"\0x", "application/x-unknown"))
    assert outcome.status is not None
    assert outcome.status.args[0].startswith("Tika server http://127.0.0.1:9: ")


def test_nothing_is_sent_unless_plugin_and_url_are_set(conf: Configuration, server: str) -> None:
    page = fetched(b"\0words", "application/x-unknown")
    assert "ParserNotFound" in str(RowParser(conf).parse_row(KEY, page).status)
    conf.set("plugin.includes", "parse-(html|tika-server)")
    assert "tika.server.url is not an http or https URL" in str(RowParser(conf).parse_row(KEY, page).status)
