"""The search page over HTTP: content, headers, and rejected requests."""

import html
import http.client
import json
import signal
import socket
import subprocess
import sys
import threading
from urllib.parse import quote, urlencode

import pytest

from nutch2py.errors import ConfigurationError
from nutch2py.indexer.writers.embedded_writer import EmbeddedIndexWriter
from nutch2py.rest.access.tokens import Role, add_token
from nutch2py.search.engines.explanation_tree import format_tree
from nutch2py.search.engines.solr_edismax_searcher import filter_parameters
from nutch2py.search.search_backends import open_search_backend, open_searcher_manager
from nutch2py.server.http_server import HttpServer
from nutch2py.server.search_request import SearchRequest
from nutch2py.server.translations import Translations
from nutch2py.url.keys import reverse_url
from tests.indexer.pages import doc
from tests.server.conftest import fill, running


def get(server, path, method="GET", **headers):
    connection = http.client.HTTPConnection("127.0.0.1", server.address[1], timeout=10)
    connection.request(method, path, headers=headers)
    response = connection.getresponse()
    body = response.read().decode("utf-8")
    connection.close()
    return response, body


def ask(server, **arguments):
    return get(server, f"/?{urlencode(arguments)}")


def test_control_room_link_is_shown_only_to_authorized(conf, tmp_path):
    fill(conf)
    conf.set("rest.tokens.file", str(tmp_path / "tokens"))
    token = add_token(conf, "reader", Role.READ)
    with running(conf) as server:
        assert "/crawl/page?" not in get(server, "/?q=needle")[1]
        assert "/crawl/page?" not in get(server, "/?q=needle", Authorization="Bearer wrong")[1]
        response, body = get(server, "/?q=needle", Authorization=f"Bearer {token}")
        assert "/crawl/page?" in body
        assert "Authorization" in response.headers["Vary"]


@pytest.mark.parametrize("tokens", ["", "missing", "damaged"])
def test_search_works_without_tokens(conf, tmp_path, tokens):
    """Search and the box are public on any address; the control room is public on loopback only."""
    fill(conf)
    conf.set("search.cors.origins", "*")
    file = tmp_path / "tokens"
    if tokens:
        conf.set("rest.tokens.file", str(file))
        file.touch(0o600)
    sent = {"Authorization": "Bearer something"} if tokens else {}
    with running(conf) as server:
        server.app.state.authorizer.context.is_local = False
        if tokens == "missing":
            file.unlink()
        elif tokens:
            file.write_text("not three words\n")
        pages = {route.path for route in server.app.state.search.routes()} - {"/logo"}
        assert {"/", "/suggest", "/search.json", "/cached", "/explain", "/box.js"} <= pages
        for path in sorted(pages):
            key = quote(reverse_url("http://b.org/plain"))
            response, body = get(server, f"{path}?q=needle&id={key}", **sent)
            assert (path, response.status) == (path, 200), body
            assert "/crawl/page?" not in body
        for path in ("/?q=needle&part=1", "/api/v1/search?q=needle"):
            assert get(server, path, **sent)[0].status == 200
        assert get(server, "/crawl", **sent)[0].status == (503 if tokens else 403)


def test_start_page_shows_document_count(server):
    response, body = get(server, "/")
    assert (response.status, response.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert "34 documents" in body


def test_response_is_sent_immediately(server):
    with socket.create_connection(server.address) as client:
        client.sendall(b"GET /style.css HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert client.recv(12) == b"HTTP/1.1 200"
        (connection,) = server.uvicorn_server.server_state.connections
        ours = connection.transport.get_extra_info("socket")
        assert ours.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1


def test_own_pages_have_security_headers(server):
    for path in ("/", "/?q=needle", "/style.css", "/nothing", "/search.json?q=needle"):
        response, _ = get(server, path)
        policy = response.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert [part for part in policy.split("; ") if "script-src" in part] == ["script-src 'self'"]
        assert "frame-ancestors 'none'" in policy
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        assert response.headers["Set-Cookie"] is None


def view(server, url):
    return get(server, f"/cached/view?id={quote(reverse_url(url))}")


def test_cached_page_is_sandboxed(server):
    response, body = view(server, "http://a.org/evil")
    assert "needle in a trap" in body
    assert "document.cookie" not in body
    policy = response.headers["Content-Security-Policy"].split("; ")
    assert {"sandbox", "default-src 'none'", "form-action 'none'", "frame-ancestors 'self'"} <= set(policy)
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert response.headers["Cache-Control"] == "no-store"
    assert response.headers["Set-Cookie"] is None
    _, frame = get(server, f"/cached?id={quote(reverse_url('http://a.org/evil'))}")
    assert '<iframe sandbox="" src="/cached/view?id=org.a%3Ahttp%2Fevil"' in frame


def test_cached_page_is_decoded_and_keeps_type(server):
    response, body = view(server, "http://a.org/zh")
    assert "北京奥运会开幕" in body
    response, body = view(server, "http://b.org/plain")
    assert (response.headers["Content-Type"], body) == ("text/plain; charset=utf-8", "needle <b>plain</b>")


@pytest.mark.parametrize("url", ["http://b.org/secret", "http://hay.org/b/1/1", "http://no.such.page/"])
def test_noarchive_or_missing_page_has_no_cached_view(server, url):
    response, body = view(server, url)
    assert (response.status, "needle" in body) == (404, False)
    response, _ = get(server, f"/cached?id={quote(reverse_url(url))}")
    assert response.status == 404
    _, body = ask(server, q="secret")
    assert "cached" not in body


def test_score_is_explained(server):
    key = reverse_url("http://b.org/plain")
    _, body = get(server, f"/explain?{urlencode({'q': 'needle', 'id': key})}")
    assert "pagerank 2.0" in body
    assert "title:&#34;needl&#34;" in body
    assert "Matches: “needle” in the title; “needle” in the text. Most of the score comes from the title." in body
    assert "Its rank multiplies the score by 1.275 (pagerank 2.000)." in body  # 2 ^ 0.35
    response, _ = get(server, f"/explain?{urlencode({'q': 'other', 'id': key})}")
    assert response.status == 404


def test_freshness_penalty_is_explained(conf):
    conf.set("index.search.freshness", "0.1")  # the page was fetched on the first of January, 2026
    fill(conf)
    with running(conf) as server:
        _, body = get(server, f"/explain?{urlencode({'q': 'needle', 'id': reverse_url('http://b.org/plain')})}")
    assert "Its age multiplies the score by 0.500." in body


def test_near_duplicates_are_one_hit_with_others_below(conf):
    conf.set("index.search.collapse", "near")
    fill(conf)
    with running(conf) as server:
        body = html.unescape(ask(server, q="hay")[1])
        as_json = json.loads(get(server, "/search.json?q=hay")[1])
    assert body.count("<h2><a") == 1
    assert '<summary>29 more like this</summary><ul><li><a href="http://hay.org/' in body
    assert body.count('<li><a href="http://hay.org/') == 10
    assert 'class="pages"' not in body  # one page of hits
    assert "30 documents" in body
    assert (len(as_json["hits"]), as_json["hits"][0]["more"]) == (1, 29)


def test_dns_rebinding_host_is_rejected(server):
    response, body = get(server, "/?q=needle", Host="evil.example:8080")
    assert response.status == 421
    assert "Plain" not in body
    for host in ("localhost:1", "127.0.0.1", "[::1]:80"):
        assert get(server, "/?q=needle", Host=host)[0].status == 200


def test_head_has_no_body_and_other_methods_are_rejected(server):
    response, body = get(server, "/?q=needle", method="HEAD")
    assert (response.status, body) == (200, "")
    assert get(server, "/", method="POST")[0].status == 405


def test_new_commits_appear_without_restart(server, monkeypatch):
    assert "34 documents" in get(server, "/")[1]
    writer = EmbeddedIndexWriter(server.conf)
    writer.open(server.conf, {})
    writer.write(doc("org.new:http/", url="http://new.org/", host="new.org", title="New needle", content="x"))
    writer.commit()
    monkeypatch.setattr("nutch2py.search.engines.embedded_searcher_manager.COMMIT_CHECK_INTERVAL", -1.0)
    assert "5 documents" in ask(server, q="needle")[1]


def test_suggestions_follow_changed_pages(server, monkeypatch):
    """A commit that does not change the number of documents."""
    monkeypatch.setattr("nutch2py.search.engines.embedded_searcher_manager.COMMIT_CHECK_INTERVAL", -1.0)
    searchers, writer = open_searcher_manager(server.conf), EmbeddedIndexWriter(server.conf)
    writer.open(server.conf, {})
    for text, gone in (("harbourmaster", "harbinger"), ("harbinger", "harbourmaster")):
        writer.write(doc("org.new:http/", url="http://new.org/", host="new.org", title="New", content=text))
        writer.commit()
        with searchers.acquire() as index:
            assert index.suggest("harb").queries == [text], f"{gone} was before"


def test_missing_index_log_names_fix(conf, capsys):
    with running(conf) as made:
        response, body = get(made, "/?q=x")
    assert response.status == 503
    assert "run nutch2py crawl or index first" not in body
    assert "run nutch2py crawl or index first" in capsys.readouterr().err


def test_port_in_use_is_named_in_error(server):
    with pytest.raises(ConfigurationError, match=r"serve\.port"):
        HttpServer(server.conf, ("127.0.0.1", server.address[1]))


def test_many_concurrent_requests_are_answered(server):
    answers = []
    threads = [
        threading.Thread(target=lambda n=n: answers.append(ask(server, q=f"needle OR {n}")[0].status))
        for n in range(16)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [200] * 16


def test_non_web_links_are_not_linked(server):
    result = open_search_backend(server.conf).search("plain", 0, 1)
    evil = result._replace(hits=[result.hits[0]._replace(url="javascript:alert(1)")])
    assert 'href="javascript' not in server.app.state.search.templates.render_results(
        Translations("en"), SearchRequest({"q": "q"}), evil, {}
    )


def test_filter_values_are_parameters_of_their_own():
    value = 'x" OR {!func v=$q} ${json}'
    assert filter_parameters({"host": value}) == {"fq": ["{!field f=host v=$filter_host}"], "filter_host": value}


def test_explanation_skips_neutral_steps():
    inner = {"value": 2.0, "description": "inner", "details": []}
    assert format_tree({"value": 2.0, "description": "outer", "details": [inner]}) == ["2  inner"]


def test_serve_command_starts_and_stops(server):
    options = ["-D", f"storage.data.store={server.conf.get('storage.data.store')}", "--port", "0"]
    command = [sys.executable, "-m", "nutch2py.cli", "serve", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        line = process.stdout.readline()
        assert line.startswith("serve: http://127.0.0.1:")
        connection = http.client.HTTPConnection("127.0.0.1", int(line.rstrip("/\n").rsplit(":", 1)[1]), timeout=10)
        connection.request("GET", "/")
        assert connection.getresponse().status == 200
        connection.close()
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
        assert process.stdout.read() == "serve: stopped\n"
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
