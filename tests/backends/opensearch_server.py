"""A real OpenSearch for the tests: started by scripts/services on a free port, stopped and removed at the end."""

import base64
import json
import ssl
import threading
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import Request, urlopen

import pytest

from tests.services import Service, running


class OpenSearchServer(Service):
    """An instance of OpenSearch."""

    kind = "opensearch"

    @property
    def url(self):
        """The address of the node."""
        return self.endpoint

    def call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = Request(f"{self.url}/{path}", data, {"Content-Type": "application/json"}, method=method)
        with urlopen(request) as answer:
            return json.load(answer)

    def search(self, query="*:*", index="nutch"):
        found = self.call("GET", f"{index}/_search?size=10000&q={quote(query)}&default_operator=AND")
        return found["hits"]["hits"]

    def ids(self, query="*:*", index="nutch"):
        return [hit["_source"]["id"] for hit in self.search(query, index)]

    def document(self, document_id, index="nutch"):
        return self.call("GET", f"{index}/_doc/{quote(document_id, safe='')}")["_source"]

    def fields(self, index="nutch"):
        return self.call("GET", f"{index}/_mapping")[index]["mappings"]["properties"]

    def clear(self):
        self.call("DELETE", "*")


@pytest.fixture(scope="session")
def opensearch_server():
    """Yield a running OpenSearch, or skip without Java or Maven."""
    with running(OpenSearchServer()) as server:
        yield server


@pytest.fixture
def opensearch(opensearch_server):
    """Return OpenSearch without any index, running even if the previous test stopped it."""
    opensearch_server.start()
    opensearch_server.clear()
    return opensearch_server


@contextmanager
def guarded(url, folder, user, password):
    """Proxy ``url`` by TLS with a login; yield the address and the file of the trusted certificate."""
    certificate, key = _certificate(folder)
    wanted = "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if self.headers.get("Authorization") != wanted:
                self._answer(401, b'{"error":{"type":"security_exception","reason":"missing authentication"}}')
                return
            kind = {"Content-Type": self.headers.get("Content-Type", "application/json")}
            try:
                with urlopen(Request(url + self.path, body or None, kind, method=self.command)) as answer:
                    self._answer(answer.status, answer.read())
            except HTTPError as error:
                with error:
                    self._answer(error.code, error.read())

        do_POST = do_PUT = do_GET  # noqa: N815

        def _answer(self, status, body):
            self.send_response_only(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            """Disable the log."""

    listening = _QuietServer(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    listening.socket = context.wrap_socket(listening.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=listening.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield f"https://127.0.0.1:{listening.server_address[1]}", str(certificate)
    finally:
        listening.shutdown()
        listening.server_close()


class _QuietServer(ThreadingHTTPServer):
    """Ignore clients that hang up because they do not trust the certificate."""

    def handle_error(self, request, client_address):
        """Disable the log."""


def _certificate(folder):
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(
            name, name, key.public_key(), x509.random_serial_number(), now, now + timedelta(hours=1)
        )
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    (folder / "certificate.pem").write_bytes(certificate.public_bytes(pem))
    plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    (folder / "key.pem").write_bytes(key.private_bytes(pem, *plain))
    return folder / "certificate.pem", folder / "key.pem"
