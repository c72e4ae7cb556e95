"""Signed requests (Web Bot Auth), verified by http-message-signatures, which is not ours."""

from __future__ import annotations

import base64
import hashlib
import json
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from http_message_signatures import HTTPMessageVerifier, HTTPSignatureKeyResolver, InvalidSignature, algorithms

from nutch2py.cli import main
from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError, InputError
from nutch2py.fetcher.signatures import signing_keys
from nutch2py.fetcher.signatures.key_directory import build_directory
from nutch2py.fetcher.signatures.request_signer import RequestSigner
from nutch2py.fetcher.signatures.signing_keys import OVERLAP_SECONDS, KeyFile, SigningKey, choose_key
from nutch2py.records.webpage import CrawlStatus
from tests.fetcher.conftest import Crawl, loopback
from tests.site.certificate import self_signed
from tests.site.server import Reply, ScriptedSite

AGENT = "https://bot.example/.well-known/http-message-signatures-directory"
FORMS = {"dictionary": '"signature-agent";key="sig1"', "string": '"signature-agent"'}


class DirectoryKeys(HTTPSignatureKeyResolver):
    """Resolves keys as a site does: from the published directory."""

    def __init__(self, directory: bytes) -> None:
        self._keys = {jwk["kid"]: jwk["x"] for jwk in json.loads(directory)["keys"]}

    def resolve_public_key(self, key_id: str) -> Ed25519PublicKey:
        if key_id not in self._keys:
            raise InvalidSignature("unknown key")
        return Ed25519PublicKey.from_public_bytes(base64.urlsafe_b64decode(self._keys[key_id] + "="))


def verify(url: str, headers: dict[str, str], keys: list[SigningKey], form: str = "dictionary") -> Any:
    verifier = HTTPMessageVerifier(
        signature_algorithm=algorithms.ED25519,
        key_resolver=DirectoryKeys(build_directory(keys, "bot.example").body),
    )
    message = SimpleNamespace(method="GET", url=url, headers=headers)
    (result,) = verifier.verify(message, expect_tag="web-bot-auth", require_components=("@authority", FORMS[form]))
    return result


def as_headers(lines: tuple[str, ...]) -> dict[str, str]:
    return dict(line.split(": ", 1) for line in lines)


@pytest.fixture
def key_file(tmp_path: Path) -> KeyFile:
    file = KeyFile(tmp_path / "keys.json")
    file.create()
    return file


@pytest.fixture
def tls_site(tmp_path: Path) -> Iterator[ScriptedSite]:
    with ScriptedSite(certificate=self_signed(tmp_path, "a.test")) as running:
        yield running


@pytest.mark.parametrize("form", FORMS)
def test_page_robots_txt_and_redirect_are_signed_anew(
    key_file: KeyFile, tls_site: ScriptedSite, crawl: Crawl, form: str
) -> None:
    tls_site.on("/robots.txt", Reply(body=b"User-agent: *\nAllow: /"))
    tls_site.on("/p", Reply(302, headers=[("Location", tls_site.url("/q", "b.test"))]))
    tls_site.on("/q", Reply(body=b"<p>moved"))
    page = crawl(
        tls_site.url("/p", "a.test"),
        http_signature_key_file=str(key_file.path),
        http_signature_agent=AGENT,
        http_signature_agent_form=form,
        http_redirect_max="3",
    )
    assert page.status == CrawlStatus.REDIR_TEMP
    assert {request.path for request in tls_site.seen} == {"/robots.txt", "/p", "/q"}
    nonces = set()
    for request in tls_site.seen:
        headers = {name.lower(): value for name, value in request.headers.items()}
        url = f"https://{headers['host']}{request.path}"
        result = verify(url, headers, key_file.read(), form)
        nonces.add(result.nonce)
        assert result.parameters["expires"] - result.parameters["created"] == 300
        with pytest.raises(InvalidSignature):
            verify(url.replace(".test", ".evil"), headers, key_file.read(), form)
    assert len(nonces) == len(tls_site.seen)


def test_request_over_http_is_not_signed(key_file: KeyFile, crawl: Crawl) -> None:
    """Also when a connection handle has just sent a signed request."""
    with ScriptedSite() as site:
        site.on("/p", Reply(body=b"<p>text"))
        crawl(site.url("/p", "a.test"), http_signature_key_file=str(key_file.path), http_signature_agent=AGENT)
    assert not [name for request in site.seen for name in request.headers if name.lower().startswith("signature")]


def test_handle_that_signed_sends_no_signature_over_http(
    key_file: KeyFile, tls_site: ScriptedSite, crawl: Crawl
) -> None:
    tls_site.on("/p", Reply(body=b"<p>text"))
    with ScriptedSite() as plain:
        plain.on("/p", Reply(body=b"<p>text"))
        urls = [tls_site.url("/p", "a.test"), plain.url("/p", "a.test")]
        properties = {"http_signature_key_file": str(key_file.path), "http_signature_agent": AGENT}
        crawl(*urls, threads=1, fetcher_queue_mode="byHost", **properties)
    assert tls_site.gets("/p") == plain.gets("/p") == 1
    assert not [name for request in plain.seen for name in request.headers if name.lower().startswith("signature")]


def test_handler_that_does_not_sign_is_reported(
    key_file: KeyFile, tls_site: ScriptedSite, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tls_site.on("/p", Reply(body=b"<p>text"))
    conf = loopback(tmp_path, fetcher_download_handler="aiohttp", http_signature_agent=AGENT)
    conf.set("http.signature.key.file", str(key_file.path))
    Crawl(conf)(tls_site.url("/p", "a.test"))
    assert "requests are not signed: http.signature.key.file needs" in capsys.readouterr().err
    assert not [name for request in tls_site.seen for name in request.headers if name.lower().startswith("signature")]


def test_wrong_expired_and_changed_signatures_are_rejected(key_file: KeyFile) -> None:
    keys, now = key_file.read(), time.time()
    signer = RequestSigner(keys, AGENT)
    url = "https://Example.ORG:443/a?b"
    headers = as_headers(signer.header_lines(url))
    assert verify(url, headers, keys).covered_components['"@authority"'] == "example.org"
    with pytest.raises(InvalidSignature):
        verify(url, headers, [SigningKey.generate(0)])
    with pytest.raises(InvalidSignature):
        verify(url, {**headers, "Signature-Agent": 'sig1="https://other.example/"'}, keys)
    early = RequestSigner(keys, AGENT, clock=lambda: now - 1000)
    assert early.header_lines(url) == (), "the key is not valid yet"
    late = RequestSigner([SigningKey(keys[0].public, keys[0].seed, 0)], AGENT, clock=lambda: now - 1000)
    with pytest.raises(InvalidSignature):
        verify(url, as_headers(late.header_lines(url)), keys)


def test_signatures_for_many_hosts_are_verified(key_file: KeyFile) -> None:
    keys = key_file.read()
    signer = RequestSigner(keys, AGENT)
    urls = [f"https://host{number}.example.org:{1 + 13 * number}/{number}" for number in range(250)]
    assert len({verify(url, as_headers(signer.header_lines(url)), keys).nonce for url in urls}) == 250


def test_rotation_publishes_new_key_before_it_signs(key_file: KeyFile) -> None:
    (old,) = key_file.read()
    new = key_file.rotate()
    keys, now = key_file.read(), time.time()
    directory = json.loads(build_directory(keys, "bot.example").body)
    assert {jwk["kid"] for jwk in directory["keys"]} == {old.thumbprint, new.thumbprint}
    chosen = [choose_key(keys, at) for at in (now, now + OVERLAP_SECONDS - 5, now + OVERLAP_SECONDS + 5)]
    assert [key and key.thumbprint for key in chosen] == [old.thumbprint, old.thumbprint, new.thumbprint]
    replaced = key_file.replace()
    assert [key.thumbprint for key in key_file.read()] == [replaced.thumbprint]


def test_directory_is_signed_and_holds_no_private_key(key_file: KeyFile) -> None:
    keys = key_file.read()
    directory = build_directory(keys, "bot.example")
    assert all("d" not in jwk for jwk in json.loads(directory.body)["keys"])
    verifier = HTTPMessageVerifier(signature_algorithm=algorithms.ED25519, key_resolver=DirectoryKeys(directory.body))
    request = SimpleNamespace(method="GET", url=AGENT, headers={})
    response = SimpleNamespace(status_code=200, headers=directory.headers, request=request)
    (result,) = verifier.verify(response, expect_tag="http-message-signatures-directory", body=directory.body)
    assert set(result.covered_components) > {'"@authority";req', '"content-digest"'}


def test_thumbprint_is_that_of_rfc_8037() -> None:
    """Appendix A.3 of RFC 8037."""
    public = base64.urlsafe_b64decode("11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo=")
    assert SigningKey(public, b"", 0).thumbprint == "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"


def test_private_key_is_in_no_message(
    key_file: KeyFile, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    option = ["-D", f"http.signature.key.file={key_file.path}"]
    seeds = [json.loads(key_file.path.read_text())["keys"][0]["d"]]
    assert main(["botkey", "-show", *option]) == 0
    assert main(["botkey", "-rotate", *option]) == 0
    seeds += [jwk["d"] for jwk in json.loads(key_file.path.read_text())["keys"]]
    assert main(["botkey", *option]) == InputError.exit_code
    key_file.path.write_text(key_file.path.read_text().replace('"kty"', '"kt"'))
    assert main(["botkey", "-show", "--debug", *option]) == ConfigurationError.exit_code
    output = capsys.readouterr()
    assert not [seed for seed in seeds if seed in output.out + output.err]
    assert seeds[0] not in repr(SigningKey.generate(0)) + repr(key_file)


@pytest.mark.parametrize("mode", [0o644, 0o640])
def test_key_file_that_others_can_read_is_rejected(key_file: KeyFile, mode: int) -> None:
    assert key_file.path.stat().st_mode & 0o777 == 0o600
    key_file.path.chmod(mode)
    with pytest.raises(ConfigurationError, match="can be read by others: chmod 600"):
        key_file.read()


@pytest.mark.parametrize("path", ["/proc/keys.json", "/dev/null/keys.json"])
def test_key_file_that_cannot_be_written_is_reported(path: str) -> None:
    for change in (KeyFile(Path(path)).create, KeyFile(Path(path)).replace):
        with pytest.raises(InputError, match=f"cannot write {path}: .*: correct http.signature.key.file"):
            change()


@pytest.mark.parametrize("path", [".", "/dev/null"])
def test_key_file_that_is_no_file_is_reported(path: str) -> None:
    with pytest.raises(ConfigurationError, match="is not a file of nutch2py botkey"):
        KeyFile(Path(path)).read()


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"keys": []}', '{"keys": [{"kty": "RSA"}]}', '{"keys": [1]}', "[" * 100_000, "\x00\xff"]
)
def test_damaged_key_file_is_reported(key_file: KeyFile, text: str) -> None:
    key_file.path.write_text(text, encoding="latin-1")
    with pytest.raises(ConfigurationError, match=r"nutch2py botkey"):
        key_file.read()


def test_key_file_with_wrong_public_key_is_rejected(key_file: KeyFile) -> None:
    text = json.loads(key_file.path.read_text())
    text["keys"][0]["x"] = signing_keys.encode_base64url(hashlib.sha256(b"other").digest())
    key_file.path.write_text(json.dumps(text))
    with pytest.raises(ConfigurationError, match="damaged"):
        key_file.read()


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"http.signature.agent": ""}, "http.signature.agent is not an HTTPS URL"),
        ({"http.signature.agent": "http://bot.example/"}, "http.signature.agent is not an HTTPS URL"),
        ({"http.signature.agent": 'https://bot.example/"\r\nX: y'}, "http.signature.agent is not an HTTPS URL"),
        ({"http.signature.agent.form": "both"}, "neither dictionary nor string"),
        ({"http.signature.key.file": "/nowhere/keys"}, "cannot read the keys"),
    ],
)
def test_wrong_property_is_reported(key_file: KeyFile, properties: dict[str, str], message: str) -> None:
    conf = Configuration.load(
        overrides={"http.signature.key.file": str(key_file.path), "http.signature.agent": AGENT, **properties}
    )
    with pytest.raises(ConfigurationError, match=message):
        RequestSigner.from_conf(conf)


def test_ended_keys_are_reported(key_file: KeyFile) -> None:
    text = json.loads(key_file.path.read_text())
    text["keys"][0]["exp"] = int(time.time()) - 1
    key_file.path.write_text(json.dumps(text))
    conf = Configuration.load(overrides={"http.signature.key.file": str(key_file.path), "http.signature.agent": AGENT})
    with pytest.raises(ConfigurationError, match=r"no key of .* is valid now"):
        RequestSigner.from_conf(conf)
