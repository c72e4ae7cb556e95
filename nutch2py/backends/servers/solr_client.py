"""SolrClient: requests to a Solr collection that outlast a restart, and say what Solr objects to."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from nutch2py.backends.servers.server_retry import (
    RequestFailure,
    RequestRejectedError,
    RetryingClient,
    describe_connection_error,
)
from nutch2py.conf.configuration import Configuration
from nutch2py.conf.redaction import redact_address
from nutch2py.errors import ConfigurationError, IndexingError, iter_causes
from nutch2py.support.java_exceptions import find_java_exceptions

if TYPE_CHECKING:
    import pysolr
    import requests

T = TypeVar("T")

_BEFORE_REASON = re.compile(r"^.*?\(HTTP \d{3}\)[: ]*")
_REASON = re.compile(r"^\[Reason: (.*)\]$")
_STATE_REPLAYING = 0  # UpdateLog.State
_CONNECT_SECONDS = 10.0
_STACK_OVERFLOW = "StackOverflowError"
"""What Solr throws at what is too long or nested too deeply for it: that will not pass."""


class SolrRejectedError(RequestRejectedError):
    """Solr answered, and does not take what was sent: ``str(error)`` is Solr's words, ``kinds`` what it threw."""


class SolrClient:
    """One collection, at one or several addresses; the first that answers serves until it fails.

    A connection that is refused, cut or too slow, and the answers 404 (a node that is stopping), 429, 502, 503 and 504,
    are tried again, at the next address when there are several, until ``patience`` seconds have passed without an
    answer; then :class:`IndexingError`. Repeating an update is harmless:
    documents are replaced by id. Other answers are :class:`SolrRejectedError`, 401 and 403 an IndexingError at once.

    ``timeout``: seconds to wait for an answer. ``headers``: for every request. One object serves one thread.
    """

    def __init__(
        self,
        urls: Sequence[str],
        auth: tuple[str, str] | None = None,
        headers: dict[str, str] | None = None,
        timeout: float = 120.0,
        max_retry_seconds: float = 600.0,
    ) -> None:
        import pysolr
        import requests

        logging.getLogger("pysolr").setLevel(logging.CRITICAL)  # it logs a traceback of what is handled here
        self.urls = [url.rstrip("/") for url in urls]
        self.session: requests.Session = requests.Session()
        self.session.headers.update(headers or {})
        self.session.hooks["response"].append(self._store_response)  # pysolr tells of an answer in words only
        self._last_response: requests.Response | None = None
        self._auth, self._was_unavailable = auth, False
        self._retrying_client = RetryingClient(
            self.urls,
            "Solr",
            "solr.server.url",
            max_retry_seconds,
            retried_statuses=(404,),
            fatal_error_type=_STACK_OVERFLOW,
            rejection_class=SolrRejectedError,
        )
        self._pysolr_clients: list[pysolr.Solr] = [
            pysolr.Solr(
                url, encoder=_OrjsonEncoder(), timeout=(_CONNECT_SECONDS, timeout), auth=auth, session=self.session
            )
            for url in self.urls
        ]

    @property
    def url(self) -> str:
        """The address in use, as messages may show it."""
        return self._retrying_client.url

    def add(self, documents: list[dict[str, Any]], commit_within: int | None = None) -> None:
        """Add or replace documents; ``commit_within``: milliseconds until they must be searchable."""
        self.call_with_retry(lambda solr: _check_response(solr.add(documents, commitWithin=commit_within)))

    def get_field_values(self, key: str, ids: Sequence[str], field: str) -> dict[str, float | None]:
        """Return a number of each document that is found by its ``key``, None of one that has none or 0."""
        asked = {"query": {"terms": {"f": key, "separator": "\n", "query": "\n".join(ids)}}, "limit": len(ids)}
        shown = {"fl": f"id_:field({key}),value_:field({field})", "wt": "json", "echoParams": "none"}
        answer = self.post_json("select", {**asked, "params": shown})
        return {str(each["id_"]): each.get("value_") or None for each in answer["response"]["docs"]}

    def set_field_values(self, documents: Sequence[dict[str, Any]], commit_within: int | None = None) -> None:
        """Set fields of documents that are there (``{key: id, field: {"set": value}}``); others are passed over."""
        import orjson

        within = "" if commit_within is None else f"&commitWithin={commit_within}"
        body = orjson.dumps([{**each, "_version_": 1} for each in documents])  # 1: whatever its version, it is there
        path, headers = f"update?wt=json&failOnVersionConflicts=false{within}", {"Content-Type": "application/json"}
        self.call_with_retry(lambda solr: _check_response(solr._send_request("post", path, body, headers)))

    def delete(self, ids: list[str]) -> None:
        """Delete documents by id."""
        self.call_with_retry(lambda solr: _check_response(solr.delete(id=ids)))

    def commit(self) -> None:
        """Make what was sent durable and searchable.

        A server that has come back replays its log, and a commit that arrives meanwhile it answers and passes over
        (DistributedUpdateProcessor: "Ignoring commit while not ACTIVE"). So that is waited for.
        """

        def committed(solr: Any) -> None:
            if self._was_unavailable:
                self._check_log_replay(solr.url)
            _check_response(solr.commit())

        self.call_with_retry(committed)
        self._was_unavailable = False

    def _check_log_replay(self, url: str) -> None:
        """Raise, as a server that is away does, while it replays its log; where it does not tell, go on."""
        import requests

        place, _, core = url.rstrip("/").rpartition("/")
        asked = {"group": "core", "prefix": "TLOG.state", "wt": "json"}
        answer = self.session.get(f"{place}/admin/metrics", params=asked, timeout=_CONNECT_SECONDS, auth=self._auth)
        try:
            found = answer.json()["metrics"].items() if answer.ok else ()
            states = [told.get("TLOG.state") for name, told in found if name.startswith(f"solr.core.{core}")]
        except (ValueError, KeyError, AttributeError):
            return
        if _STATE_REPLAYING in states:
            raise requests.ConnectionError("it replays its log")

    def search(self, query: str, handler: str = "select", **parameters: Any) -> dict[str, Any]:
        """Return Solr's whole answer to a query."""
        found: dict[str, Any] = self.call_with_retry(
            lambda solr: solr.search(query, search_handler=handler, **parameters).raw_response
        )
        return found

    def get_json(self, path: str) -> dict[str, Any]:
        """Return the JSON of ``path`` within the collection, such as ``schema``."""
        answer: dict[str, Any] = self.call_with_retry(lambda solr: json.loads(solr._send_request("get", path)))
        return answer

    def post_json(self, path: str, payload: dict[str, Any]) -> dict[str, Any]:
        """Return the answer to a question in Solr's JSON, such as to ``select``."""
        import orjson

        body, headers = orjson.dumps(payload), {"Content-Type": "application/json"}
        answer: dict[str, Any] = self.call_with_retry(
            lambda solr: json.loads(solr._send_request("post", path, body, headers))
        )
        return answer

    def close(self) -> None:
        """Give back the connections."""
        self.session.close()

    def call_with_retry(self, call: Callable[[Any], T]) -> T:
        """Make a request, again and again if that may help; see the class."""
        import pysolr
        import requests

        failures = (pysolr.SolrError, requests.RequestException, json.JSONDecodeError)

        def send(at: int) -> T:
            self._last_response = None
            return call(self._pysolr_clients[at])

        return self._retrying_client.call(send, failures, self._to_failure)

    def _store_response(self, response: requests.Response, **_: Any) -> None:
        self._last_response = response

    def _to_failure(self, error: Exception) -> RequestFailure:
        """Return what a failure means; IndexingError or ConfigurationError when trying again cannot help."""
        import requests

        errors = requests.exceptions
        broken = any(isinstance(cause, errors.RequestException) for cause in iter_causes(error))
        answer = None if broken or isinstance(error, json.JSONDecodeError) else self._last_response
        status = 0 if answer is None else answer.status_code
        if status in (401, 403):
            raise IndexingError(
                f"Solr at {self.url} wants another login (HTTP {status}): set solr.auth to true, and "
                "solr.auth.username and solr.auth.password"
            ) from error
        if isinstance(error, (errors.InvalidURL, errors.InvalidSchema, errors.MissingSchema)):
            raise ConfigurationError(
                f"solr.server.url is {self.url!r}: write http://HOST:8983/solr/COLLECTION"
            ) from error
        if isinstance(error, json.JSONDecodeError) and not broken:
            return RequestFailure(0, "the answer is not Solr's")
        text = " ".join(str(error).split())
        self._was_unavailable |= status == 0 or status >= 500
        if answer is None:
            return RequestFailure(0, describe_connection_error(error) or redact_address(text)[:300])
        text = _REASON.sub(r"\1", _BEFORE_REASON.sub("", text))
        return RequestFailure(status, redact_address(text)[:300], _exception_names(answer))


def _exception_names(answer: requests.Response) -> frozenset[str]:
    """Return the names of the exceptions that Solr tells of in an answer: its trace, classes and message."""
    try:
        error = answer.json()["error"]
        texts = [error.get("trace"), error.get("msg"), *(error.get("metadata") or ())]
    except (ValueError, LookupError, TypeError, AttributeError):
        return frozenset()  # no answer of Solr, or of one that speaks XML
    return frozenset[str]().union(*(find_java_exceptions(text) for text in texts if isinstance(text, str)))


def _check_response(response: str) -> None:
    """Check that it was Solr who said that all is well, not the page of a proxy before it."""
    if "responseHeader" not in response:
        raise json.JSONDecodeError("not an answer of Solr", response[:100], 0)


class _OrjsonEncoder:
    """The part of json.JSONEncoder that pysolr calls, thrice as fast."""

    def encode(self, value: Any) -> str:
        """Return JSON text."""
        import orjson

        return orjson.dumps(value).decode()


def resolve_solr_addresses(conf: Configuration, urls_text: str, server_type: str, collection: str) -> list[list[str]]:
    """Return the collections to write to, each as the addresses that it can be reached at.

    ``server_type``: ``http`` (each URL of ``urls_text`` is a collection of its own, and all get every document), ``lb`` (the URLs
    are the same collection) or ``cloud`` (the URLs are nodes, ``http://HOST:8983/solr``, of one SolrCloud with the
    ``collection``; without URLs they are asked of ``solr.zookeeper.hosts``). ConfigurationError when there are none.
    """
    urls = [url.rstrip("/") for url in re.split(r"[,\s]+", urls_text) if url]
    wrong = next((url for url in urls if not re.match(r"https?://[^/]", url)), None)
    if wrong is not None:
        raise ConfigurationError(
            f"solr.server.url has {redact_address(wrong)!r}: write http://HOST:8983/solr/COLLECTION"
        )
    if server_type not in ("http", "lb", "cloud"):
        raise ConfigurationError(f"solr.server.type is {server_type!r}: write http, lb or cloud")
    if server_type == "cloud":
        if not collection:
            raise ConfigurationError("solr.server.type is cloud: name the collection with solr.collection")
        nodes = urls or _read_live_nodes(conf.get_trimmed("solr.zookeeper.hosts"))
        return [[url if url.endswith(f"/{collection}") else f"{url}/{collection}" for url in nodes]]
    if not urls:
        raise ConfigurationError(
            "Missing SOLR URL. Should be set via -D solr.server.url=http://HOST:8983/solr/COLLECTION"
        )
    return [urls] if server_type == "lb" else [[url] for url in urls]


def _read_live_nodes(hosts: str) -> list[str]:
    if not hosts:
        raise ConfigurationError("solr.server.type is cloud: set solr.server.url or solr.zookeeper.hosts")
    try:
        from kazoo.client import KazooClient
        from kazoo.exceptions import KazooException
        from kazoo.handlers.threading import KazooTimeoutError
    except ImportError as error:
        raise ConfigurationError(
            "solr.zookeeper.hosts needs the package kazoo: install nutch2py[cloud], or name the nodes with "
            "solr.server.url"
        ) from error
    client = KazooClient(hosts=hosts, read_only=True, timeout=10.0)
    try:
        client.start(timeout=15.0)
        names = client.get_children("/live_nodes")
    except (KazooException, KazooTimeoutError) as error:
        raise IndexingError(f"ZooKeeper at {hosts} does not tell the nodes of Solr: {error}") from error
    finally:
        client.stop()
        client.close()
    if not names:
        raise IndexingError(f"ZooKeeper at {hosts} knows no node of Solr that runs: start one")
    return [f"http://{name.replace('_', '/', 1)}" for name in sorted(names)]


def solr_credentials(conf: Configuration) -> tuple[str, str] | None:
    """Return user name and password when ``solr.auth`` asks for them."""
    if not conf.get_bool("solr.auth", False):
        return None
    return conf.get_trimmed("solr.auth.username"), conf.get("solr.auth.password", "")
