"""The plug-in API: a Protocol for each extension point, and the values that plug-ins exchange.

A Protocol here is a base class, too. A plug-in that derives from it inherits every optional member with its default; a
plug-in without a base class works if it has the required members. :mod:`nutch2py.plugins.loading` adds the missing
defaults when it loads a plug-in, so callers can read every member.

Required members are abstract methods and attributes without a value; all others are optional. URLs are absolute. A
plug-in reads only the columns of a page that its ``fields`` name; another column raises FieldNotReadError.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import NutchError
from nutch2py.records.document import NutchDocument
from nutch2py.records.record import RecordField
from nutch2py.records.webpage import WebPage

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from selectolax.lexbor import LexborHTMLParser


class Plugin(Protocol):
    """Members that every plug-in has. Each task creates its own instance and uses it in one thread."""

    java_class: str = ""
    """The Nutch class that it replaces, so that a Nutch configuration finds it; "" for none."""

    def __init__(self, conf: Configuration) -> None:
        """Read the properties; raise ConfigurationError for an invalid one. Does nothing by default."""


class _PagePlugin(Plugin, Protocol):
    """A plug-in that processes pages."""

    fields: frozenset[RecordField]
    """The columns of a page that it reads, such as ``frozenset({WebPage.text})``; known after construction."""


class URLNormalizer(Plugin, Protocol):
    """Converts a URL to its canonical form. Scopes: see :mod:`nutch2py.url.normalizers.url_normalizers`."""

    @abstractmethod
    def normalize(self, url: str, scope: str) -> str | None:
        """Return the canonical URL, None to drop it; raise ValueError when it is not a URL."""


class URLFilter(Plugin, Protocol):
    """Decides which URLs belong to the crawl."""

    @abstractmethod
    def filter(self, url: str) -> str | None:
        """Return the URL, or None to reject it."""


class Outlink(NamedTuple):
    """A link of a page: absolute URL and anchor text."""

    url: str
    anchor: str = ""


class Parse(NamedTuple):
    """Result of a parser for a page.

    ``outlinks``: before normalizers and filters. ``major``, ``minor``: codes of
    :class:`nutch2py.records.webpage.ParseStatusCode`; ``args``: for a failure the reason, for a redirect its target and
    its delay in seconds. ``metadata`` is merged into ``page.metadata`` when the parse succeeds. ``nofollow``: number of
    links skipped because the page requests it.
    """

    text: str
    title: str
    outlinks: Sequence[Outlink]
    major: int = 1
    minor: int = 0
    args: tuple[str, ...] = ()
    metadata: Mapping[str, bytes] = {}
    nofollow: int = 0


class Parser(_PagePlugin, Protocol):
    """Extracts text, title and outlinks from content."""

    content_types: str = ".*"
    """Regular expression of the media types that it supports; used for types that parse-plugins.xml does not list."""

    part_of: str = ""
    """``parse-tika``: that id in plugin.includes and parse-plugins.xml enables this parser, too."""

    @abstractmethod
    def parse(self, url: str, page: WebPage) -> Parse:
        """Parse ``page.content``; may set ``page.metadata``. A failure is a Parse with the major code FAILED."""


@dataclass
class HTMLMetaTags:
    """The directives of a page's head (Nutch's class of this name).

    ``refresh_time`` is in seconds, None without a refresh; ``general`` maps lower-case names to values, in document
    order.
    """

    no_index: bool = False
    no_follow: bool = False
    no_cache: bool = False
    refresh_time: int | None = None
    refresh_href: str | None = None
    base_href: str | None = None
    general: dict[str, list[str]] = field(default_factory=dict)
    http_equiv: dict[str, str] = field(default_factory=dict)


@dataclass
class HtmlDocument:
    """A parsed page as parse filters receive it. ``tree`` contains no scripts and styles.

    ``url``: the base URL of its links. ``html`` is the source of the tree; ``scripts`` the texts of the script elements
    when an enabled filter has ``needs_scripts = True``, else empty.
    """

    tree: LexborHTMLParser
    url: str
    meta: HTMLMetaTags
    html: str = ""
    scripts: list[str] = field(default_factory=list)


class ParseFilter(_PagePlugin, Protocol):
    """Adds data to a parsed HTML page."""

    needs_scripts: bool = False
    """Whether it reads ``document.scripts``, which are collected only for such filters."""

    @abstractmethod
    def filter(self, url: str, page: WebPage, parse: Parse, document: HtmlDocument) -> Parse | None:
        """Return the parse, changed or not; None makes the parse fail. May set ``page.metadata``."""


class Signature(_PagePlugin, Protocol):
    """Digest of a page, which detects changed and duplicate pages."""

    @abstractmethod
    def calculate(self, url: str, page: WebPage) -> bytes:
        """Return the digest; called when text, title and metadata of the page are set."""


class ScoredLink(NamedTuple):
    """A link and its score: ``url`` is the target when a page distributes, the source when a page receives.

    ``distance``: links from a seed to the source page; 2147483647 when unknown.
    """

    url: str
    anchor: str
    score: float
    distance: int = 2147483647


class ScoringFilter(_PagePlugin, Protocol):
    """Scores pages. Scores are floats of four bytes."""

    sorts_by_score: bool = False
    """Whether :meth:`generator_sort_value` depends on ``page.score`` and ``init`` alone, and never falls as they rise
    from 0. The GeneratorJob can then stop early: it reads the due pages in descending order of score."""
    ignores_seed_url: bool = False
    """Whether :meth:`injected_score` depends on the page's columns, and never on its URL. The InjectorJob then calls it
    once for all seeds without metadata that have the same score and interval."""

    @cached_property
    def generator_fields(self) -> frozenset[RecordField]:
        """Columns that :meth:`generator_sort_value` reads, ``fields`` by default: read from every row of the table."""
        return self.fields

    @abstractmethod
    def injected_score(self, url: str, page: WebPage) -> None:
        """Initialize a seed, whose ``score`` is already set."""

    @abstractmethod
    def initial_score(self, url: str, page: WebPage) -> None:
        """Initialize a page that was found by a link."""

    @abstractmethod
    def generator_sort_value(self, url: str, page: WebPage, init: float) -> float:
        """Return the sort value for the GeneratorJob: ``init`` multiplied by the page's value."""

    @abstractmethod
    def distribute(self, url: str, page: WebPage, links: list[ScoredLink], total: int) -> list[ScoredLink]:
        """Return the links with their scores; ``total``: number of outlinks before filters and limits."""

    @abstractmethod
    def update_score(self, url: str, page: WebPage, inlinks: Sequence[ScoredLink]) -> None:
        """Add the scores that the links of a batch carry, in descending order."""

    @abstractmethod
    def indexer_score(self, url: str, page: WebPage, init: float) -> float:
        """Return the boost of the document: ``init`` multiplied by the page's value."""


class FetchSchedule(_PagePlugin, Protocol):
    """Decides when a page is due. Times in ms, intervals in s.

    :class:`nutch2py.schedule.abstract_fetch_schedule.AbstractFetchSchedule` implements all but the next fetch after a
    success, as Nutch does.
    """

    @cached_property
    def due_fields(self) -> frozenset[RecordField]:
        """Columns that :meth:`should_fetch` reads, ``fields`` by default: read from every row of the table."""
        return self.fields

    def due_times(self, now: int) -> Sequence[tuple[int, int]] | None:
        """Return the ranges of ``fetch_time`` (first and last, ms) that contain every page due at ``now``.

        The GeneratorJob then skips all other pages. None, the default: it calls :meth:`should_fetch` for every page.
        """
        return None

    @abstractmethod
    def initialize(self, url: str, page: WebPage, now: int) -> None:
        """Initialize a page that was found by a link."""

    @abstractmethod
    def set_fetch_schedule(
        self,
        url: str,
        page: WebPage,
        prev_fetch_time: int,
        prev_modified_time: int,
        fetch_time: int,
        modified_time: int,
        state: int,
    ) -> None:
        """Set the next fetch after a success; ``state``: 0 unknown, 1 modified, 2 not modified."""

    @abstractmethod
    def set_page_gone_schedule(
        self, url: str, page: WebPage, prev_fetch_time: int, prev_modified_time: int, fetch_time: int
    ) -> None:
        """Set the next fetch of a page that is gone."""

    @abstractmethod
    def set_page_retry_schedule(
        self, url: str, page: WebPage, prev_fetch_time: int, prev_modified_time: int, fetch_time: int
    ) -> None:
        """Set the next fetch after a temporary failure."""

    @abstractmethod
    def should_fetch(self, url: str, page: WebPage, now: int) -> bool:
        """Return whether the page is due at ``now``."""

    @abstractmethod
    def force_refetch(self, url: str, page: WebPage, asap: bool) -> None:
        """Reset the fetch state of the page; make it due now when ``asap``."""


class PageNotIndexableError(NutchError):
    """No document can be built from the page, for example because its URL has no host: it is skipped with a warning."""


class IndexingFilter(_PagePlugin, Protocol):
    """Adds fields to the document of a page, or excludes the page from the index."""

    @abstractmethod
    def filter(self, document: NutchDocument, url: str, page: WebPage) -> NutchDocument | None:
        """Return the document with more fields, or None to exclude the page.

        Raise :class:`PageNotIndexableError` when the page is broken.
        """


class IndexWriter(Plugin, Protocol):
    """Sends documents to one index. Each process has one instance.

    Several processes write to the same index concurrently. So a writer buffers documents, and holds a lock, if it needs
    one, only while it sends a batch. Documents need not be searchable before :meth:`commit` returns; a document
    replaces another of the same id. Failures are :class:`nutch2py.errors.IndexingError`.
    """

    rejected: int = 0
    """Number of documents that the index has rejected so far; the writer counts and warns, the job shows the sum."""
    supports_scores: bool = False
    """Whether :meth:`get_scores` is implemented. If not, ``index -scores`` reports that it needs -reindex."""

    def prepare(self, conf: Configuration, parameters: Mapping[str, str], reindex: bool) -> None:
        """Prepare the index for a job; called once, before the tasks open their writers. Does nothing by default.

        A writer can create its index here, empty a file of an earlier run, or, when everything is reindexed
        (``reindex``), replace an index of another version.
        """

    def check(self, conf: Configuration, parameters: Mapping[str, str]) -> None:
        """Raise an error with the reason when the index cannot take documents. Does nothing by default.

        Called by the command ``doctor``: must not create or change anything.
        """

    @abstractmethod
    def open(self, conf: Configuration, parameters: Mapping[str, str]) -> None:
        """Open the writer; ``parameters`` come from index-writers.xml.

        Tasks may run in other working directories: resolve paths with ``conf.absolute``.
        """

    @abstractmethod
    def write(self, document: NutchDocument) -> None:
        """Add a document, or replace the one with the same id."""

    @abstractmethod
    def update(self, document: NutchDocument) -> None:
        """Replace a document that is known to be in the index."""

    @abstractmethod
    def delete(self, document_id: str) -> None:
        """Delete a document; a missing one is not an error."""

    def get_scores(self, ids: Sequence[str]) -> Mapping[str, float | None]:
        """Return the field ``pagerank`` by id, for documents that are in the index; None without the field."""
        return {}

    def get_click_factors(self, ids: Sequence[str]) -> Mapping[str, float | None]:
        """Return the field ``clicks`` by id, for documents of the last :meth:`get_scores` call; None without the field.

        ``index -scores`` writes a document whose factor has changed as a whole. By default no factor is known, and each
        document with a learned one is written.
        """
        return {}

    def count_documents(self) -> int | None:
        """Return the number of documents in the index, None if it cannot be queried.

        With a number, ``indexer.delete.max.share`` limits the documents that a job deletes.
        """
        return None

    def find_documents(self, ids: Sequence[str]) -> Collection[str]:
        """Return those of ``ids`` whose documents are in the index, for a writer that counts its documents.

        Documents that were sent and not committed yet should be included.
        """
        return ids

    def set_score(self, document_id: str, score: float) -> bool:
        """Set ``pagerank`` of a document of the last :meth:`get_scores` call, without its text.

        Return False if that is not possible: the job then writes the whole document. A document that has been deleted
        meanwhile is not an error, and is not created.
        """
        return False

    @abstractmethod
    def commit(self) -> None:
        """Make all written documents searchable and durable."""

    @abstractmethod
    def close(self) -> None:
        """Send the buffered documents and release all resources; the writer is not used again."""

    @abstractmethod
    def describe(self) -> str:
        """Return the writer's name and settings, one per line."""


class Encoder(Plugin, Protocol):
    """Encodes texts as vectors for hybrid search: texts of similar meaning have vectors of similar direction.

    Several threads may use an instance at the same time.
    """

    model: str
    """Name and version of the model: vectors of another model are not compared, and made again when pages are
    indexed."""
    dimensions: int
    """Length of a vector."""
    languages: frozenset[str] = frozenset()
    """Codes of the languages that it knows, such as ``en``: pages in other languages get no vector. Empty: all."""
    min_similarity: float = 0.0
    """Cosine of query and page, -1 to 1, below which the page is no hit unless its words match."""

    @abstractmethod
    def encode(self, texts: Sequence[str]) -> NDArray[Any] | Sequence[Sequence[float]]:
        """Return a vector for each text: an array, or a list of lists, of shape (texts, dimensions)."""

    def encode_query(self, query: str) -> NDArray[Any] | Sequence[float]:
        """Return the vector of a query; for a model that encodes queries in another way than pages."""
        vector: NDArray[Any] | Sequence[float] = self.encode([query])[0]
        return vector


EXTENSION_POINTS: Mapping[str, type[object]] = {
    "urlnormalizer": URLNormalizer,
    "urlfilter": URLFilter,
    "parser": Parser,
    "parsefilter": ParseFilter,
    "signature": Signature,
    "scoringfilter": ScoringFilter,
    "fetchschedule": FetchSchedule,
    "indexingfilter": IndexingFilter,
    "indexwriter": IndexWriter,
    "encoder": Encoder,
}
"""Interface of each extension point; the entry-point group is ``nutch2py.<name>``."""
