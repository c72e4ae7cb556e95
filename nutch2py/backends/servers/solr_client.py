"""SolrClient: requests to a Solr collection that survive a restart of Solr, with Solr's reason of rejections."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from nutch2py.backends.servers.index_schema import parse_number
from nutch2py.backends.servers.server_retry import (
    DEFAULT_RESPONSE_BYTES,
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

TOO_MANY_CLAUSES = frozenset({"TooManyClauses", "TooManyNestedClauses"})
"""Lucene's exceptions for a query of more than ``maxClauseCount`` words and fields."""
_BEFORE_REASON = re.compile(r"^.*?\(HTTP \d{3}\)[: ]*")
_REASON = re.compile(r"^\[Reason: (.*)\]$")
_STATE_REPLAYING = 0  # UpdateLog.State
_CONNECT_SECONDS = 10.0
_FATAL_ERRORS = frozenset({"StackOverflowError", *TOO_MANY_CLAUSES})
"""Solr's exceptions for input that is too long or nested too deeply: a retry cannot help."""
_NO_MACROS = "expandMacros=false"
"""Otherwise Solr replaces ``${name}`` in the whole body of a request, values of filters included, by parameters."""


class SolrRejectedError(RequestRejectedError):
    """Solr rejected a request: ``str(error)`` is Solr's message, ``error_types`` are the exceptions that it threw."""


class SolrClient:
    """One collection, at one or several addresses; requests go to the current one until it fails.

    Failed connections and the statuses 404 (a node that is stopping), 429, 502, 503 and 504 are retried, at the next
    address when there are several, until ``max_retry_seconds`` have passed without a response; then
    :class:`IndexingError` is raised. Repeating an update is harmless: documents are replaced by id. Other statuses
    raise :class:`SolrRejectedError`; 401 and 403 raise IndexingError at once.

    ``timeout``: seconds to wait for a response, and for its body. ``headers``: for every request.
    ``max_response_bytes``: see :func:`open_bounded_session`. An object serves one thread.
    """

    def __init__(
        self,
        urls: Sequence[str],
        auth: tuple[str, str] | None = None,
        headers: dict[str, str] | None = None,
        timeout: float = 120.0,
        max_retry_seconds: float = 600.0,
        max_response_bytes: int = DEFAULT_RESPONSE_BYTES,
    ) -> None:
        import pysolr

        from nutch2py.backends.servers.bounded_session import open_bounded_session

        logging.getLogger("pysolr").setLevel(logging.CRITICAL)  # it logs a traceback of errors that are handled here
        self.urls = [url.rstrip("/") for url in urls]
        self.session: requests.Session = open_bounded_session("Solr", max_response_bytes, timeout)
        self.session.headers.update(headers or {})
        self.session.hooks["response"].append(self._store_response)  # pysolr reports a response as text only
        self._last_response: requests.Response | None = None
        self._auth, self._was_unavailable = auth, False
        self._retrying_client = RetryingClient(
            self.urls,
            "Solr",
            "solr.server.url",
            max_retry_seconds,
            retried_statuses=(404,),
            fatal_error_types=_FATAL_ERRORS,
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
        """Add or replace documents. ``commit_within``: milliseconds until they must be searchable."""
        self.call_with_retry(lambda solr: _check_response(solr.add(documents, commitWithin=commit_within)))

    def get_field_values(self, key: str, ids: Sequence[str], field: str) -> dict[str, float | None]:
        """Return a numeric field of the existing documents by ``key``; None for a document without it, or with 0."""
        query = {"query": {"terms": {"f": key, "separator": "\n", "query": "\n".join(ids)}}, "limit": len(ids)}
        params = {"fl": f"id_:field({key}),value_:field({field})", "wt": "json", "echoParams": "none"}
        response = self.post_json("select", {**query, "params": params})
        return {str(each["id_"]): each.get("value_") or None for each in response["response"]["docs"]}

    def get_stored_numbers(self, key: str, ids: Sequence[str], field: str) -> dict[str, float | None]:
        """Return a stored field of the existing documents by ``key`` as a number, whatever its type; else None."""
        query = {"query": {"terms": {"f": key, "separator": "\n", "query": "\n".join(ids)}}, "limit": len(ids)}
        params = {"fl": f"id_:field({key}),{field}", "wt": "json", "echoParams": "none"}
        response = self.post_json("select", {**query, "params": params})
        return {str(each["id_"]): parse_number(each.get(field)) for each in response["response"]["docs"]}

    def find_ids(self, key: str, ids: Sequence[str]) -> list[str]:
        """Return those of ``ids`` whose documents exist by ``key``, whether committed or not."""
        params = {"fl": f"id_:field({key})", "wt": "json", "echoParams": "none"}
        query = {"query": {"terms": {"f": key, "separator": "\n", "query": "\n".join(ids)}}, "limit": len(ids)}
        committed = self.post_json("select", {**query, "params": params})["response"]["docs"]
        found = {str(each["id_"]) for each in committed}
        if len(found) < len(ids):
            found.update(self._find_uncommitted(key, [each for each in ids if each not in found]))
        return [each for each in ids if each in found]

    def _find_uncommitted(self, key: str, ids: Sequence[str]) -> Iterator[str]:
        """Yield documents of the update log; none where Solr keeps none."""
        try:
            response = self.post_json("get", {"params": {"id": [*ids], "fl": key, "wt": "json"}})
        except SolrRejectedError:
            return
        for document in response.get("response", {}).get("docs", []):
            yield str(document[key])

    def set_field_values(self, documents: Sequence[dict[str, Any]], commit_within: int | None = None) -> None:
        """Set fields of existing documents (``{key: id, field: {"set": value}}``); skip others."""
        import orjson

        within = "" if commit_within is None else f"&commitWithin={commit_within}"
        body = orjson.dumps([{**each, "_version_": 1} for each in documents])  # 1: the document exists, in any version
        path, headers = f"update?wt=json&failOnVersionConflicts=false{within}", {"Content-Type": "application/json"}
        self.call_with_retry(lambda solr: _check_response(solr._send_request("post", path, body, headers)))

    def delete(self, ids: list[str]) -> None:
        """Delete documents by id."""
        self.call_with_retry(lambda solr: _check_response(solr.delete(id=ids)))

    def commit(self) -> None:
        """Make sent documents durable and searchable.

        A restarted server replays its log and ignores a commit that arrives meanwhile, with a successful response
        (DistributedUpdateProcessor: "Ignoring commit while not ACTIVE"). So this method waits for the end of the
        replay.
        """

        def commit(solr: Any) -> None:
            if self._was_unavailable:
                self._check_log_replay(solr.url)
            _check_response(solr.commit())

        self.call_with_retry(commit)
        self._was_unavailable = False

    def _check_log_replay(self, url: str) -> None:
        """Raise a connection error while the server replays its log; return when it does not report that."""
        import requests

        node, _, core = url.rstrip("/").rpartition("/")
        query = {"group": "core", "prefix": "TLOG.state", "wt": "json"}
        response = self.session.get(f"{node}/admin/metrics", params=query, timeout=_CONNECT_SECONDS, auth=self._auth)
        try:
            metrics = response.json()["metrics"].items() if response.ok else ()
            states = [values.get("TLOG.state") for name, values in metrics if name.startswith(f"solr.core.{core}")]
        except (ValueError, KeyError, AttributeError):
            return
        if _STATE_REPLAYING in states:
            raise requests.ConnectionError("it replays its log")

    def search(self, query: str, handler: str = "select", **parameters: Any) -> dict[str, Any]:
        """Return Solr's response to a query."""
        response: dict[str, Any] = self.call_with_retry(
            lambda solr: solr.search(query, search_handler=handler, expandMacros="false", **parameters).raw_response
        )
        return response

    def get_json(self, path: str) -> dict[str, Any]:
        """Return the JSON of ``path`` within the collection, such as ``schema``."""
        response: dict[str, Any] = self.call_with_retry(lambda solr: json.loads(solr._send_request("get", path)))
        return response

    def post_json(self, path: str, payload: dict[str, Any]) -> dict[str, Any]:
        """Return the response to a request in Solr's JSON, such as to ``select``."""
        import orjson

        body, headers = orjson.dumps(payload), {"Content-Type": "application/json"}
        response: dict[str, Any] = self.call_with_retry(
            lambda solr: json.loads(solr._send_request("post", f"{path}?{_NO_MACROS}", body, headers))
        )
        return response

    def close(self) -> None:
        """Close the connections."""
        self.session.close()

    def call_with_retry(self, call: Callable[[Any], T]) -> T:
        """Make a request, with retries; see the class."""
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
        """Return the meaning of a failure; raise IndexingError or ConfigurationError when a retry cannot help."""
        import requests

        errors = requests.exceptions
        broken = any(isinstance(cause, errors.RequestException) for cause in iter_causes(error))
        response = None if broken or isinstance(error, json.JSONDecodeError) else self._last_response
        status = 0 if response is None else response.status_code
        if status in (401, 403):
            raise IndexingError(
                f"Solr at {self.url} rejects the login (HTTP {status}): set solr.auth to true, and "
                "solr.auth.username and solr.auth.password"
            ) from error
        if isinstance(error, (errors.InvalidURL, errors.InvalidSchema, errors.MissingSchema)):
            raise ConfigurationError(
                f"solr.server.url is {self.url!r}: write http://HOST:8983/solr/COLLECTION"
            ) from error
        if isinstance(error, json.JSONDecodeError) and not broken:
            return RequestFailure(0, "the response is not Solr's")
        text = " ".join(str(error).split())
        self._was_unavailable |= status == 0 or status >= 500
        if response is None:
            return RequestFailure(0, describe_connection_error(error) or redact_address(text)[:300])
        text = _REASON.sub(r"\1", _BEFORE_REASON.sub("", text))
        return RequestFailure(status, redact_address(text)[:300], _exception_names(response))


def _exception_names(response: requests.Response) -> frozenset[str]:
    """Return the names of the exceptions in a response of Solr: in its trace, classes and message."""
    try:
        error = response.json()["error"]
        texts = [error.get("trace"), error.get("msg"), *(error.get("metadata") or ())]
    except (ValueError, LookupError, TypeError, AttributeError):
        return frozenset()  # not a response of Solr, or one in XML
    return frozenset[str]().union(*(find_java_exceptions(text) for text in texts if isinstance(text, str)))


def _check_response(response: str) -> None:
    """Check that Solr itself sent the success, not a proxy."""
    if "responseHeader" not in response:
        raise json.JSONDecodeError("not a response of Solr", response[:100], 0)


class _OrjsonEncoder:
    """The part of json.JSONEncoder that pysolr calls, three times as fast."""

    def encode(self, value: Any) -> str:
        """Return JSON text."""
        import orjson

        return orjson.dumps(value).decode()


def resolve_solr_addresses(conf: Configuration, urls_text: str, server_type: str, collection: str) -> list[list[str]]:
    """Return the collections to write to, each with its addresses.

    Args:
        conf: Configuration with ``solr.zookeeper.hosts``.
        urls_text: URLs separated by commas or spaces.
        server_type: ``http``: each URL is a collection of its own, and all receive every document. ``lb``: the URLs are
            the same collection. ``cloud``: the URLs are nodes, ``http://HOST:8983/solr``, of a SolrCloud with
            ``collection``; without URLs ZooKeeper lists the nodes.
        collection: Name of the collection in a SolrCloud.

    Raises:
        ConfigurationError: There is no address.

    """
    urls = [url.rstrip("/") for url in re.split(r"[,\s]+", urls_text) if url]
    invalid = next((url for url in urls if not re.match(r"https?://[^/]", url)), None)
    if invalid is not None:
        raise ConfigurationError(
            f"solr.server.url has {redact_address(invalid)!r}: write http://HOST:8983/solr/COLLECTION"
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
        raise IndexingError(f"ZooKeeper at {hosts} does not list the nodes of Solr: {error}") from error
    finally:
        client.stop()
        client.close()
    if not names:
        raise IndexingError(f"ZooKeeper at {hosts} lists no running node of Solr: start one")
    return [f"http://{name.replace('_', '/', 1)}" for name in sorted(names)]


def solr_credentials(conf: Configuration) -> tuple[str, str] | None:
    """Return user name and password when ``solr.auth`` is true."""
    if not conf.get_bool("solr.auth", False):
        return None
    return conf.get_trimmed("solr.auth.username"), conf.get("solr.auth.password", "")
