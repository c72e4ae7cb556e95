"""indexer-elastic: sends documents to Elasticsearch or OpenSearch."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

from nutch2py.backends.document_weights import DocumentWeights
from nutch2py.backends.encoders.encoder_selection import require_no_encoder
from nutch2py.backends.index_fields import SKETCH_FIELD, TERMS_PREFIX
from nutch2py.backends.servers.elastic_client import (
    ELASTIC_SERVER_NAME,
    BulkAction,
    ElasticClient,
    parse_elastic_addresses,
)
from nutch2py.backends.servers.elastic_mapping import ElasticMapping, read_index_definition
from nutch2py.backends.servers.index_schema import collect_new_columns
from nutch2py.backends.servers.server_retry import RequestRejectedError, max_response_bytes
from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError, IndexingError
from nutch2py.indexer.index_writers import WriterParameters, missing_id_error
from nutch2py.indexer.search_fields import TermsFieldBuilder, strip_terms_fields
from nutch2py.indexer.writers.server_writer import DocumentBatch, ServerIndexWriter, document_to_json, send_bisecting
from nutch2py.records.document import NutchDocument, clean_text, format_java_float
from nutch2py.support.reporting import warn
from nutch2py.support.retry import service_wait_seconds

T = TypeVar("T")

_MAX_ID_BYTES = 512  # bytes of UTF-8
_TRANSPORT_PORT = 9300
_CONTENT_ERROR_STATUSES = (400, 413, 500)
"""Statuses of a whole request that one of its documents may cause."""


class ElasticIndexWriter(ServerIndexWriter):
    """Sends documents and deletes to an index of Elasticsearch (7 or later) or OpenSearch, at ``elastic.host``.

    Batches have ``elastic.max.bulk.docs`` documents or ``elastic.max.bulk.size`` characters; documents are searchable
    after :meth:`commit` (``_refresh``). An unavailable server is retried for ``service.wait.seconds``, an overloaded
    one (429) ``elastic.exponential.backoff.retries`` times, with delays from ``elastic.exponential.backoff.millis`` on.
    A document that the server rejects is reported, counted in ``rejected``, and skipped.

    A missing index is created from the file ``elastic.index.file`` (``schema/elastic/index.json``). The fields of an
    existing index are checked before the first document; one :class:`IndexingError` lists all incompatible fields. In
    index-writers.xml, the parameters of Nutch 1 are the properties without ``elastic.``.
    """

    java_class = "org.apache.nutch.indexwriter.elastic.ElasticIndexWriter"
    server_name = ELASTIC_SERVER_NAME
    supports_scores = True

    def __init__(self, conf: Configuration) -> None:
        self._needs_refresh = self._index_exists = self._is_index_checked = False
        self._known_fields: set[str] = set()  # checked fields
        self._mappings: list[ElasticMapping] = []
        self._client: ElasticClient | None = None
        self._score_actions: list[BulkAction] = []
        self._configure(conf, {})

    def _configure(self, conf: Configuration, writer_parameters: Mapping[str, str]) -> None:
        require_no_encoder(conf, "OpenSearch")
        parameters = WriterParameters(conf, "indexer-elastic", writer_parameters)

        def given_or(name: str, default: str) -> str:
            return parameters.get(name, "").strip() or default  # an empty value, as in the template, is unset

        get_int = parameters.get_int
        scheme = given_or("scheme", conf.get_trimmed("elastic.scheme", "http")).lower()
        port = get_int("port", conf.get_int("elastic.port", 9200))
        self.urls = parse_elastic_addresses(given_or("host", conf.get_trimmed("elastic.host")), port, scheme)
        self.index = given_or("index", conf.get_trimmed("elastic.index", "nutch"))
        self._batch = DocumentBatch(
            get_int("max.bulk.docs", conf.get_int("elastic.max.bulk.docs", 250)),
            get_int("max.bulk.size", conf.get_int("elastic.max.bulk.size", 2_500_500)),
        )
        millis = conf.get_int("elastic.exponential.backoff.millis", 100)
        self.first_delay = get_int("exponential.backoff.millis", millis) / 1000
        retries = conf.get_int("elastic.exponential.backoff.retries", 10)
        self.max_overloads = get_int("exponential.backoff.retries", retries)
        self.max_retry_seconds = conf.get_float("elastic.bulk.close.timeout", service_wait_seconds(conf))
        if (close_timeout := get_int("bulk.close.timeout", -1)) >= 0:
            self.max_retry_seconds = close_timeout
        self.timeout = conf.get_float("elastic.timeout", 120.0)
        user = given_or("username", conf.get_trimmed("elastic.username"))
        password = parameters.get("password", "") or conf.get("elastic.password", "")
        self.auth = (user, password) if parameters.get_bool("auth", bool(user and password)) else None
        if parameters.get("trust.store.path", "").strip() or parameters.get("key.store.path", "").strip():
            raise ConfigurationError(
                "trust.store.path and key.store.path of indexer-elastic are key stores of Java: export the "
                "certificate authority as PEM (keytool -exportcert -rfc), and set tls.ca to that file"
            )
        authority = given_or("tls.ca", conf.get_trimmed("elastic.tls.ca"))
        self.ca_file = str(conf.absolute(authority)) if authority else ""
        if self.ca_file and not Path(self.ca_file).is_file():
            raise ConfigurationError(f"elastic.tls.ca names {self.ca_file}, which is not a file: correct the path")
        self._terms_builder, self._weights = TermsFieldBuilder(conf), DocumentWeights(conf)
        self._conf = conf

    def prepare(self, conf: Configuration, parameters: Mapping[str, str], reindex: bool) -> None:
        """Check the address, create a missing index and check its fields, before the job's tasks start."""
        self.open(conf, parameters)
        if any(urlsplit(url).port == _TRANSPORT_PORT for url in self.urls):
            warn(
                f"elastic.port is {_TRANSPORT_PORT}, the transport port of servers (used by Nutch 2): "
                "the default HTTP port is 9200"
            )
        try:
            self._read_mappings(create=True)
        finally:
            self.close()

    def check(self, conf: Configuration, parameters: Mapping[str, str]) -> None:
        """Raise an error unless the server responds and its index, if it exists, is compatible."""
        self.open(conf, parameters)
        try:
            self._read_mappings(create=False)
        finally:
            self.close()

    def open(self, conf: Configuration, parameters: Mapping[str, str]) -> None:
        """Apply the parameters; the first batch connects."""
        self._configure(conf, parameters)
        self._client = self.create_client(self.timeout, self.max_retry_seconds)
        self._index_exists = self._is_index_checked = False
        self._known_fields.clear()

    def create_client(self, timeout: float, max_retry_seconds: float) -> ElasticClient:
        """Return a new client; raise ConfigurationError when no server is configured."""
        if not self.urls:
            raise ConfigurationError("elastic.host is not set: name the server, such as -D elastic.host=localhost")
        return ElasticClient(
            self.urls,
            self.index,
            auth=self.auth,
            ca_file=self.ca_file,
            timeout=timeout,
            max_retry_seconds=max_retry_seconds,
            first_delay=self.first_delay,
            max_overloads=self.max_overloads,
            max_response_bytes=max_response_bytes(self._conf),
        )

    @property
    def client(self) -> ElasticClient:
        """The client, between :meth:`open` and :meth:`close`."""
        if self._client is None:
            raise IndexingError("indexer-elastic is not open")
        return self._client

    def write(self, document: NutchDocument) -> None:
        """Add a document to the batch; it replaces one with the same id."""
        if not document.get("id"):
            raise missing_id_error(document)
        document_id = clean_text(document.id)
        if self._batch.add(
            document_id, document_to_json(document) | {"id": document_id} | self._terms_builder.build(document)
        ):
            self._flush()

    def get_scores(self, ids: Sequence[str]) -> Mapping[str, float | None]:
        """Return the field ``pagerank`` of the existing documents."""
        self._read_mappings(create=False)
        if not self._index_exists:
            return {}
        names = {elastic_document_id(clean_text(each)): each for each in ids}
        scores = self._call_server("read scores", lambda: self.client.get_field_values([*names], "pagerank"))
        return {names[name]: score for name, score in scores.items()}

    def get_click_factors(self, ids: Sequence[str]) -> Mapping[str, float | None]:
        """Return the field ``clicks`` of the existing documents."""
        names = {elastic_document_id(clean_text(each)): each for each in ids}
        factors = self._call_server("read click factors", lambda: self.client.get_source_values([*names], "clicks"))
        return {names[name]: factor for name, factor in factors.items()}

    def count_documents(self) -> int | None:
        """Return the number of searchable documents."""
        self._read_mappings(create=False)
        if not self._index_exists:
            return 0
        return self._call_server("count documents", self.client.count_documents)

    def find_documents(self, ids: Sequence[str]) -> Collection[str]:
        """Return the existing documents, also those that no search finds yet."""
        self._read_mappings(create=False)
        if not self._index_exists:
            return ()
        names = {elastic_document_id(clean_text(each)): each for each in ids}
        return [
            names[found] for found in self._call_server("look up documents", lambda: self.client.find_ids([*names]))
        ]

    def set_score(self, document_id: str, score: float) -> bool:
        """Add a partial update to the batch, if the server can rebuild the document from its stored fields."""
        has_weight = any(mapping.has_terms_fields for mapping in self._mappings)
        if not all(mapping.has_full_source for mapping in self._mappings) or (
            has_weight and self._weights.powers.keys() - {"pagerank"}
        ):
            return False
        fields = {"pagerank": format_java_float(score)}  # as text, as in documents
        if has_weight:
            fields[f"{TERMS_PREFIX}weight"] = str(self._weights.weight_of(NutchDocument({"pagerank": [repr(score)]})))
        self._score_actions.append(_update_action(clean_text(document_id), fields))
        return True

    def _flush(self) -> None:
        added, deleted = self._batch.drain()
        scores, self._score_actions = self._score_actions, []
        if scores:
            self._needs_refresh = True
            for start in range(0, len(scores), self._batch.max_documents):
                send_bisecting(scores[start : start + self._batch.max_documents], self._send_bulk, self._on_rejected)
        if not (added or deleted):
            return
        self._read_mappings(create=bool(added))
        if not self._index_exists:
            return  # no index, so nothing to delete
        if not all(
            mapping.has_terms_fields for mapping in self._mappings
        ):  # other indexes would treat terms as whole values
            added = {document_id: strip_terms_fields(fields) for document_id, fields in added.items()}
        # A strict index that is older than the field rejects it.
        elif any(mapping.find_field(SKETCH_FIELD) is None for mapping in self._mappings):
            for fields in added.values():
                fields.pop(SKETCH_FIELD, None)
        self._check_fields([*added.values()])
        actions = [_delete_action(document_id) for document_id in deleted]
        actions += [_index_action(document_id, fields) for document_id, fields in added.items()]
        self._needs_refresh = True
        send_bisecting(actions, self._send_bulk, self._on_rejected)

    def _send_bulk(self, actions: Sequence[BulkAction]) -> None:
        try:
            rejected_items = self.client.bulk(actions)
        except RequestRejectedError as error:
            if error.status in _CONTENT_ERROR_STATUSES:
                raise
            raise IndexingError(
                f"{ELASTIC_SERVER_NAME} at {self.client.url} rejects documents: {error} (HTTP {error.status})"
            ) from error
        self.accepted += sum(action.is_document for action in actions) - len(rejected_items)
        for item in rejected_items:
            self.reject_document(self.client.url, item.document_id, item.reason)

    def _on_rejected(self, action: BulkAction, error: RequestRejectedError) -> None:
        self.reject_document(self.client.url, action.document_id, f"{error} (HTTP {error.status})")

    def commit(self) -> None:
        """Send pending documents and make them searchable."""
        self._flush()
        if self._needs_refresh:
            self._call_server("refresh", self.client.refresh)
            self._needs_refresh = False

    def close(self) -> None:
        """Send pending documents and close the connections."""
        try:
            self._flush()
        finally:
            if self._client is not None:
                self._client.close()
            self._client = None
        self.report_rejected()

    def describe(self) -> str:
        """Return the settings."""
        return (
            f"ElasticIndexWriter\n\telastic.host : addresses of the cluster ({', '.join(self.urls) or 'not set'})\n"
            f"\telastic.index : {self.index}\n"
            f"\telastic.max.bulk.docs : documents sent at once ({self._batch.max_documents})\n"
            f"\telastic.max.bulk.size : characters sent at once ({self._batch.max_characters})\n"
            f"\telastic.username : use authentication ({str(self.auth is not None).lower()})\n"
        )

    def _read_mappings(self, create: bool) -> None:
        """Read the fields of the index; create a missing index when one is needed."""
        if self._index_exists or (self._is_index_checked and not create):
            return
        response = self._call_server("read mapping", self.client.get_mappings)
        if response is None and create:
            definition = read_index_definition(self._conf)
            self._call_server("create index", lambda: self.client.create_index(definition))
            response = self._call_server("read mapping", self.client.get_mappings)
        self._mappings = [ElasticMapping(each) for each in (response or {}).values()]
        self._index_exists, self._is_index_checked = response is not None, True
        self._raise_problems([mapping.find_type_problems() for mapping in self._mappings])

    def _check_fields(self, documents: list[dict[str, object]]) -> None:
        if all(document.keys() <= self._known_fields for document in documents):
            return
        columns = collect_new_columns(documents, self._known_fields)
        self._raise_problems([mapping.find_problems(columns, {}) for mapping in self._mappings])

    def _raise_problems(self, problems: Sequence[Mapping[str, str]]) -> None:
        all_problems = {name: problem for each in problems for name, problem in each.items()}
        if all_problems:
            raise IndexingError(
                f"the index {self.client.url} is not compatible: {'; '.join(all_problems.values())}. Set elastic.index "
                "to a new index, which is created with the right fields, or rename fields in index-writers.xml"
            )

    def _call_server(self, action: str, call: Callable[[], T]) -> T:
        try:
            return call()
        except RequestRejectedError as error:
            raise IndexingError(
                f"{ELASTIC_SERVER_NAME} rejects a request to {self.client.url} ({action}): "
                f"{error} (HTTP {error.status})"
            ) from error


def elastic_document_id(document_id: str) -> str:
    """Return the ``_id`` of a document: its id; a digest replaces the end of an id of more than 512 bytes.

    >>> elastic_document_id("org.example:http/"), len(elastic_document_id("org.example:http/" + 600 * "x"))
    ('org.example:http/', 512)
    """
    encoded = document_id.encode()
    if len(encoded) <= _MAX_ID_BYTES:
        return document_id
    digest = hashlib.sha256(encoded).hexdigest()
    return f"{encoded[: _MAX_ID_BYTES - len(digest) - 1].decode(errors='ignore')}#{digest}"


def _index_action(document_id: str, fields: Mapping[str, object]) -> BulkAction:
    import orjson

    try:
        source = orjson.dumps(fields)
    except TypeError:  # a plug-in has added invalid text without NutchDocument.add
        source = orjson.dumps(NutchDocument.from_json(fields).to_json())
    return BulkAction(
        document_id, b'{"index":{"_id":%b}}\n%b\n' % (orjson.dumps(elastic_document_id(document_id)), source), True
    )


def _update_action(document_id: str, fields: Mapping[str, str]) -> BulkAction:
    import orjson

    lines = b'{"update":{"_id":%b}}\n{"doc":%b}\n' % (
        orjson.dumps(elastic_document_id(document_id)),
        orjson.dumps(fields),
    )
    return BulkAction(document_id, lines, True)


def _delete_action(document_id: str) -> BulkAction:
    import orjson

    return BulkAction(document_id, b'{"delete":{"_id":%b}}\n' % orjson.dumps(elastic_document_id(document_id)), False)
