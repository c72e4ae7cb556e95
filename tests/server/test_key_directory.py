"""The directory of public keys at its well-known path."""

from __future__ import annotations

import http.client
import json
from pathlib import Path

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError
from nutch2py.fetcher.signatures.key_directory import DIRECTORY_PATH, MEDIA_TYPE
from nutch2py.fetcher.signatures.signing_keys import KeyFile
from nutch2py.server.app import create_app
from nutch2py.server.http_server import HttpServer
from tests.server.running_server import serving


def request(server: HttpServer, method: str = "GET", **headers: str) -> tuple[http.client.HTTPResponse, bytes]:
    connection = http.client.HTTPConnection(*server.address, timeout=60)
    connection.request(method, DIRECTORY_PATH, headers=headers)
    response = connection.getresponse()
    body = response.read()
    connection.close()
    return response, body


def test_directory_is_served_and_follows_rotation(conf: Configuration, tmp_path: Path) -> None:
    file = KeyFile(tmp_path / "keys.json")
    key = file.create()
    conf.set("http.signature.key.file", str(file.path))
    conf.set("http.signature.agent", f"https://bot.example{DIRECTORY_PATH}")
    with serving(HttpServer(conf, ("127.0.0.1", 0))) as server:
        response, body = request(server)
        assert (response.status, response.headers["Content-Type"]) == (200, MEDIA_TYPE)
        assert [jwk["kid"] for jwk in json.loads(body)["keys"]] == [key.thumbprint]
        assert f'keyid="{key.thumbprint}"' in response.headers["Signature-Input"]
        unchanged, body = request(server, **{"If-None-Match": response.headers["ETag"]})
        assert (unchanged.status, body) == (304, b"")
        head, body = request(server, "HEAD")
        assert (head.status, body, head.headers["ETag"]) == (200, b"", response.headers["ETag"])
        new = file.rotate()
        _, body = request(server)
        assert [jwk["kid"] for jwk in json.loads(body)["keys"]] == [key.thumbprint, new.thumbprint]
        file.path.write_text("{}")
        broken, body = request(server)
        assert broken.status == 503
        assert str(tmp_path) not in body.decode()


def test_server_without_valid_key_file_does_not_start(conf: Configuration, tmp_path: Path) -> None:
    conf.set("http.signature.key.file", str(tmp_path / "keys.json"))
    conf.set("http.signature.agent", "https://bot.example/")
    with pytest.raises(ConfigurationError, match="nutch2py botkey"):
        create_app(conf)
