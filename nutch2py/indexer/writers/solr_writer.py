"""indexer-solr: sends documents to Solr."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

from nutch2py.backends.document_weights import DocumentWeights
from nutch2py.backends.encoders.encoder_selection import require_no_encoder
from nutch2py.backends.index_fields import TERMS_PREFIX
from nutch2py.backends.servers.index_schema import collect_new_columns
from nutch2py.backends.servers.server_retry import RequestRejectedError, max_response_bytes
from nutch2py.backends.servers.solr_client import (
    SolrClient,
    SolrRejectedError,
    resolve_solr_addresses,
    solr_credentials,
)
from nutch2py.backends.servers.solr_schema import EXPECTED_FIELDS, SolrSchema
from nutch2py.conf.configuration import Configuration
from nutch2py.conf.redaction import redact_address
from nutch2py.errors import IndexingError
from nutch2py.indexer.field_mapping import FieldMapping
from nutch2py.indexer.index_writers import WriterParameters, missing_id_error
from nutch2py.indexer.search_fields import TermsFieldBuilder, strip_terms_fields
from nutch2py.indexer.writers.server_writer import DocumentBatch, ServerIndexWriter, document_to_json, send_bisecting
from nutch2py.records.document import NutchDocument, clean_text
from nutch2py.support.reporting import warn
from nutch2py.support.retry import service_wait_seconds

_BATCH_CHARACTERS = 8_000_000
_SCORES_PER_REQUEST = 1000


class SolrIndexWriter(ServerIndexWriter):
    """Sends documents and deletes to one or several Solr collections (``solr.server.url``).

    Batches have ``solr.commit.size`` documents or 8 million characters; documents are searchable after :meth:`commit`
    (a hard commit, unless ``solr.commit.index`` is false), or after ``solr.commit.within`` ms. An unavailable Solr is
    retried for ``service.wait.seconds``; see :class:`SolrClient`. A batch that Solr rejects is bisected to find the
    documents that it rejects: they are reported, counted in ``rejected``, and skipped.

    The collection's schema is read before the first document; one :class:`IndexingError` lists all missing and
    incompatible fields (``solr.schema.check``). ``solr.mapping.file`` maps the names of fields. Parameters in
    index-writers.xml are those of Nutch 1: ``type``, ``url``, ``collection``, ``commitSize``, ``auth``, ``username``,
    ``password``, ``auth.header.name``, ``auth.header.value``.
    """

    java_class = "org.apache.nutch.indexwriter.solr.SolrIndexWriter"
    server_name = "Solr"
    supports_scores = True

    def __init__(self, conf: Configuration) -> None:
        self._needs_commit = False
        self._pending_scores: dict[str, float] = {}
        self._collections: list[_SolrCollection] = []
        self._configure(conf, {})
        self._batch = DocumentBatch(self.commit_size, _BATCH_CHARACTERS)

    def _configure(self, conf: Configuration, writer_parameters: Mapping[str, str]) -> None:
        require_no_encoder(conf, "Solr")
        parameters = WriterParameters(conf, "indexer-solr", writer_parameters)
        self.url = parameters.get("url", conf.get_trimmed("solr.server.url"))
        self.server_type = parameters.get("type", conf.get_trimmed("solr.server.type", "http")).strip()
        self.collection = parameters.get("collection", conf.get_trimmed("solr.collection")).strip()
        self.commit_size = max(1, parameters.get_int("commitSize", conf.get_int("solr.commit.size", 250)))
        self.commit_index = conf.get_bool("solr.commit.index", True)
        within = conf.get_int("solr.commit.within", -1)
        self.commit_within = within if within >= 0 else None
        self._terms_builder = TermsFieldBuilder(conf)
        # With other fields the weight is terms_weight, an indexed field.
        self.is_weight_updatable = DocumentWeights(conf).powers.keys() <= {"pagerank", "boost"}
        self.auth = solr_credentials(conf)
        if parameters.get_bool("auth", self.auth is not None):
            user, password = self.auth or ("", "")
            self.auth = parameters.get("username", user), parameters.get("password", password)
        header = parameters.get("auth.header.name", "").strip()
        # Nutch 1 sets the scheme as the name: Authorization: Bearer 1234
        self.headers = (
            {"Authorization": f"{header} {parameters.get('auth.header.value', '').strip()}"} if header else {}
        )
        self.mapping_file = conf.get_trimmed("solr.mapping.file", "solrindex-mapping.xml")
        self.mapping, self.unique_key = _read_mapping(conf, self.mapping_file)

    def prepare(self, conf: Configuration, parameters: Mapping[str, str], reindex: bool) -> None:
        """Check the address and the schema, before the job's tasks start."""
        self.check(conf, parameters)

    def check(self, conf: Configuration, parameters: Mapping[str, str]) -> None:
        """Raise an error unless an address is set, Solr responds, and the collection exists."""
        self.open(conf, parameters)
        try:
            for target in self._collections:
                target.read_schema()
        finally:
            self.close()

    def open(self, conf: Configuration, parameters: Mapping[str, str]) -> None:
        """Apply the parameters; the first batch connects."""
        self._configure(conf, parameters)
        self._batch = DocumentBatch(self.commit_size, _BATCH_CHARACTERS)
        timeout, max_retry_seconds = conf.get_float("solr.timeout", 120.0), service_wait_seconds(conf)
        check = conf.get_bool("solr.schema.check", True)
        self._collections = [
            _SolrCollection(
                SolrClient(urls, self.auth, self.headers, timeout, max_retry_seconds, max_response_bytes(conf)),
                self,
                check,
            )
            for urls in resolve_solr_addresses(conf, self.url, self.server_type, self.collection)
        ]

    @property
    def sends_terms(self) -> bool:
        """Whether documents are sent with the fields ``terms_*``."""
        return self._terms_builder.is_enabled

    def write(self, document: NutchDocument) -> None:
        """Add a document to the batch; it replaces one with the same id."""
        if "id" not in document:
            raise missing_id_error(document)
        document_id = clean_text(document.id)
        fields = {**document_to_json(self.mapping.apply(document)), **self._terms_builder.build(document)}
        fields[self.unique_key] = document_id
        if self._batch.add(document_id, fields):
            self._flush()

    @property
    def score_field(self) -> str:
        """Name of ``pagerank`` in the collection."""
        return self.mapping.rename.get("pagerank", "pagerank")

    def get_scores(self, ids: Sequence[str]) -> Mapping[str, float | None]:
        """Return the field ``pagerank`` of existing documents; None also when several collections disagree."""
        names = {clean_text(each): each for each in ids}
        scores: dict[str, float | None] = {}
        for number, target in enumerate(self._collections):
            for name, score in target.get_scores([*names]).items():
                same = number == 0 or scores.get(names[name]) == score
                scores[names[name]] = score if same else None
        return scores

    def get_click_factors(self, ids: Sequence[str]) -> Mapping[str, float | None]:
        """Return the field ``clicks`` of existing documents; None also when several collections disagree."""
        names = {clean_text(each): each for each in ids}
        field = self.mapping.rename.get("clicks", "clicks")
        factors: dict[str, float | None] = {}
        for number, target in enumerate(self._collections):
            for name, factor in target.get_stored_numbers([*names], field).items():
                same = number == 0 or factors.get(names[name]) == factor
                factors[names[name]] = factor if same else None
        return factors

    def count_documents(self) -> int | None:
        """Return the number of committed documents of the smallest collection."""
        return min((target.count_documents() for target in self._collections), default=0)

    def find_documents(self, ids: Sequence[str]) -> Collection[str]:
        """Return the documents that a collection has, also those without a commit."""
        names = {clean_text(each): each for each in ids}
        return {names[found] for target in self._collections for found in target.find_documents([*names])}

    def set_score(self, document_id: str, score: float) -> bool:
        """Add an in-place update to the batch; return False if a collection would have to rebuild the document."""
        mapped = {*self.mapping.copy, *self.mapping.remove}
        if "pagerank" in mapped or not all(target.supports_score_updates() for target in self._collections):
            return False
        self._pending_scores[clean_text(document_id)] = score
        return True

    def _flush(self) -> None:
        added, deleted = self._batch.drain()
        scores, self._pending_scores = self._pending_scores, {}
        self._needs_commit = self._needs_commit or bool(added or deleted or scores)
        for target in self._collections:
            target.send([*added.values()], deleted)
            target.send_scores(scores)

    def commit(self) -> None:
        """Send the batch; commit it, unless ``solr.commit.index`` is false."""
        self._flush()
        if self._needs_commit and self.commit_index:
            for target in self._collections:
                target.commit()
            self._needs_commit = False

    def close(self) -> None:
        """Send the batch and close the connections."""
        try:
            self._flush()
        finally:
            for target in self._collections:
                target.client.close()
            self._collections = []
        self.report_rejected()

    def describe(self) -> str:
        """Return the settings."""
        within = "" if self.commit_within is None else f"\tsolr.commit.within : {self.commit_within} ms\n"
        return (
            f"SOLRIndexWriter\n\tsolr.server.url : URL of the SOLR instance ({redact_address(self.url) or 'not set'})\n"
            f"\tsolr.commit.size : buffer size when sending to SOLR ({self.commit_size})\n{within}"
            f"\tsolr.mapping.file : name of the mapping file for fields ({self.mapping_file})\n"
            f"\tsolr.auth : use authentication ({str(self.auth is not None).lower()})\n"
        )


class _SolrCollection:
    """One collection of a writer."""

    def __init__(self, client: SolrClient, writer: SolrIndexWriter, check: bool) -> None:
        self.client, self.writer = client, writer
        self._known_fields: set[str] = set()  # checked fields
        self._schema: SolrSchema | None = None
        self._checks_fields = check

    def read_schema(self) -> SolrSchema | None:
        """Return the collection's schema, None when it cannot be read; raise IndexingError without a collection."""
        if self._schema is None and self._checks_fields:
            try:
                self._schema = SolrSchema(self.client.get_json("schema?wt=json"))
            except SolrRejectedError as error:
                if error.status == 404:
                    raise IndexingError(
                        f"no Solr collection found at {self.client.url}: correct solr.server.url, or create the "
                        "collection with the configset schema/solr"
                    ) from error
                warn(f"cannot read the schema of {self.client.url} ({error}): fields are not checked")
                self._checks_fields = False
            except KeyError:
                warn(f"{self.client.url} returns no schema: fields are not checked")
                self._checks_fields = False
        return self._schema

    def send(self, added: list[dict[str, Any]], deleted: list[str]) -> None:
        """Send a batch."""
        if added:
            if not self._has_terms_fields():
                added = [strip_terms_fields(document) for document in added]
            self._check_fields(added)
            send_bisecting(added, self._add_documents, self._on_rejected)
        for start in range(0, len(deleted), 1000):
            self._call_solr("deletes", partial(self.client.delete, deleted[start : start + 1000]))

    def get_scores(self, ids: Sequence[str]) -> dict[str, float | None]:
        """Return the scores of existing documents by id."""
        try:
            return self.client.get_field_values(self.writer.unique_key, ids, self.writer.score_field)
        except SolrRejectedError as error:
            raise IndexingError(f"Solr at {self.client.url} cannot return scores: {error}") from error

    def get_stored_numbers(self, ids: Sequence[str], field: str) -> dict[str, float | None]:
        """Return a stored number of existing documents by id."""
        try:
            return self.client.get_stored_numbers(self.writer.unique_key, ids, field)
        except SolrRejectedError as error:
            raise IndexingError(f"Solr at {self.client.url} cannot return {field}: {error}") from error

    def count_documents(self) -> int:
        """Return the number of committed documents."""
        try:
            return int(self.client.search("*:*", rows=0)["response"]["numFound"])
        except SolrRejectedError as error:
            raise IndexingError(f"Solr at {self.client.url} cannot count its documents: {error}") from error

    def find_documents(self, ids: Sequence[str]) -> list[str]:
        """Return the existing documents among ``ids``."""
        try:
            return self.client.find_ids(self.writer.unique_key, ids)
        except SolrRejectedError as error:
            raise IndexingError(f"Solr at {self.client.url} cannot look up documents: {error}") from error

    def supports_score_updates(self) -> bool:
        """Return whether scores can be updated alone, and are the only weight of documents here."""
        schema = self.read_schema()
        in_place = schema is not None and schema.supports_in_place_update(self.writer.score_field)
        return in_place and (self.writer.is_weight_updatable or not self._has_terms_fields())

    def send_scores(self, scores: Mapping[str, float]) -> None:
        """Send scores."""
        key, field = self.writer.unique_key, self.writer.score_field
        documents = [{key: document_id, field: {"set": score}} for document_id, score in scores.items()]
        for start in range(0, len(documents), _SCORES_PER_REQUEST):
            send_bisecting(documents[start : start + _SCORES_PER_REQUEST], self._set_scores, self._on_rejected)

    def _set_scores(self, documents: Sequence[dict[str, Any]]) -> None:
        self.client.set_field_values(documents, self.writer.commit_within)
        self.writer.accepted += len(documents)

    def _has_terms_fields(self) -> bool:
        """Return whether the collection has our term fields; others would treat terms as whole values."""
        schema = self.read_schema() if self.writer.sends_terms else None
        field = schema.find_field(f"{TERMS_PREFIX}content") if schema is not None else None
        return field is not None and field.kind == "text"

    def commit(self) -> None:
        """Commit sent documents."""
        self._call_solr("a commit", self.client.commit)

    def _call_solr(self, action: str, call: Callable[[], None]) -> None:
        try:
            call()
        except SolrRejectedError as error:
            raise IndexingError(f"Solr at {self.client.url} rejects {action}: {error}") from error

    def _add_documents(self, documents: Sequence[dict[str, object]]) -> None:
        self.client.add([*documents], self.writer.commit_within)
        self.writer.accepted += len(documents)

    def _on_rejected(self, document: dict[str, Any], error: RequestRejectedError) -> None:
        self.writer.reject_document(self.client.url, str(document[self.writer.unique_key]), str(error))

    def _check_fields(self, documents: list[dict[str, object]]) -> None:
        if not self._checks_fields or all(document.keys() <= self._known_fields for document in documents):
            return
        schema = self.read_schema()
        if schema is None:
            return
        writer = self.writer
        rename, first = writer.mapping.rename, not self._known_fields
        columns = collect_new_columns(documents, self._known_fields)
        problems = schema.find_problems(
            columns, {solr: nutch for nutch, solr in rename.items()} | {writer.unique_key: "id"}
        )
        if first:
            expected = {rename.get(name, name) for name in EXPECTED_FIELDS} - writer.mapping.remove
            problems = {
                **schema.find_missing(sorted(expected)),
                **schema.find_missing_required(columns.keys() | expected),
                **problems,
            }
            if schema.unique_key != writer.unique_key:
                problems["uniqueKey"] = f"its uniqueKey is {schema.unique_key}, not {writer.unique_key}"
        if problems:
            raise IndexingError(
                f"the Solr collection {self.client.url} is not compatible: {'; '.join(problems.values())}. Load the "
                f"configset schema/solr there, or rename fields in {writer.mapping_file} "
                "(solr.schema.check=false sends anyway)"
            )


def _read_mapping(conf: Configuration, name: str) -> tuple[FieldMapping, str]:
    root = conf.resource_xml(name)
    if root is None:
        return FieldMapping(), "id"
    mapping, unique_key = FieldMapping.from_solr_mapping_xml(root)
    return mapping, unique_key if unique_key != "id" else mapping.rename.get("id", "id")
