"""What a plug-in must have and what it may have: a Protocol for each extension point, and the values they exchange.

A Protocol here is a base class, too. A plug-in that derives from it gets every optional member with its default; one
that derives from nothing and has the whole Protocol is as good. :mod:`nutch2py.plugins.loading` sees to it, when a plug-in is
loaded, that every member is there, so that whoever uses a plug-in reads its members as they stand here.

Required members are abstract methods and attributes without a value; all others are optional. URLs are absolute. A
plug-in that gets a page reads of it what its ``fields`` name; another column is a FieldNotReadError.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import NutchError
from nutch2py.records.document import NutchDocument
from nutch2py.records.record import Field
from nutch2py.records.webpage import WebPage

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser


class Plugin(Protocol):
    """What every plug-in has. It is made once for a task, which is one thread."""

    java_class: str = ""
    """The class of Nutch that it stands for, so that a configuration of Nutch finds it; "" for none."""

    def __init__(self, conf: Configuration) -> None:
        """Take what it needs of the properties; raise ConfigurationError for one that is wrong. By default, nothing."""


class _PagePlugin(Plugin, Protocol):
    """A plug-in that is shown pages."""

    fields: frozenset[Field[Any]]
    """What it reads of a page, such as ``frozenset({WebPage.text})``; known when the plug-in has been made."""


class URLNormalizer(Plugin, Protocol):
    """Brings a URL into its canonical form. Scopes: see :mod:`nutch2py.url.normalizers.url_normalizers`."""

    @abstractmethod
    def normalize(self, url: str, scope: str) -> str | None:
        """Return the canonical URL, None to drop it; raise ValueError when it is not a URL."""


class URLFilter(Plugin, Protocol):
    """Says which URLs belong to the crawl."""

    @abstractmethod
    def filter(self, url: str) -> str | None:
        """Return the URL, or None to reject it."""


class Outlink(NamedTuple):
    """A link of a page: absolute URL and anchor text."""

    url: str
    anchor: str = ""


class Parse(NamedTuple):
    """What a parser made of a page.

    ``outlinks``: before normalizers and filters. ``major``, ``minor``: codes of
    :class:`nutch2py.records.webpage.ParseStatusCode`; ``args``: for a failure the reason, for a redirect its target and its
    seconds. ``metadata`` goes into ``page.metadata`` when the parse is a success. ``nofollow``: how many
    links were left out as the page asks for it.
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
    """Makes text, title and outlinks of content."""

    content_types: str = ".*"
    """Regular expression of the media types that it claims: it gets those that parse-plugins.xml does not list."""

    part_of: str = ""
    """``parse-tika``: that id in plugin.includes enables it, and stands for it in parse-plugins.xml."""

    @abstractmethod
    def parse(self, url: str, page: WebPage) -> Parse:
        """Parse ``page.content``; may set ``page.metadata``. A failure is a Parse with the major code FAILED."""


@dataclass
class HTMLMetaTags:
    """The directives of a page's head (Nutch's class of this name).

    ``refresh_time`` is in seconds, None without a refresh; ``general`` holds the values by lower-case name, in order.
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
    """A parsed page as parse filters get it. ``tree`` has no scripts and styles any more.

    ``url``: against which its links are resolved. ``html`` is what the tree was made of; ``scripts`` the texts of the
    script elements when an enabled filter says ``needs_scripts = True``, else empty.
    """

    tree: LexborHTMLParser
    url: str
    meta: HTMLMetaTags
    html: str = ""
    scripts: list[str] = field(default_factory=list)


class ParseFilter(_PagePlugin, Protocol):
    """Looks at a parsed HTML page and adds to it."""

    needs_scripts: bool = False
    """Whether it reads ``document.scripts``, which are not gathered for filters that do not."""

    @abstractmethod
    def filter(self, url: str, page: WebPage, parse: Parse, document: HtmlDocument) -> Parse | None:
        """Return the parse, changed or not; None makes the parse fail. May set ``page.metadata``."""


class Signature(_PagePlugin, Protocol):
    """Digest of a page, by which changed pages and duplicates are told."""

    @abstractmethod
    def calculate(self, url: str, page: WebPage) -> bytes:
        """Return the digest; called when text, title and metadata of the page are set."""


class ScoredLink(NamedTuple):
    """A link with the score it carries: ``url`` is the target when a page gives, the source when a page receives.

    ``distance``: links from a seed to the page that gives; 2147483647 when unknown.
    """

    url: str
    anchor: str
    score: float
    distance: int = 2147483647


class ScoringFilter(_PagePlugin, Protocol):
    """Says what pages are worth. Scores are floats of four bytes."""

    sorts_by_score: bool = False
    """Whether :meth:`generator_sort_value` goes by ``page.score`` and ``init`` alone, and never falls as they rise from
    0. Then the GeneratorJob need not look at every page that is due: the best come first."""
    ignores_seed_url: bool = False
    """Whether :meth:`injected_score` goes by what the page has, and never by its URL. Then the InjectorJob asks once
    for all seeds that come without metadata and with the same score and interval."""

    @cached_property
    def generator_fields(self) -> frozenset[Field[Any]]:
        """What :meth:`generator_sort_value` alone reads, ``fields`` by default: read of every row of the table."""
        return self.fields

    @abstractmethod
    def injected_score(self, url: str, page: WebPage) -> None:
        """Set up a seed, whose ``score`` is set already."""

    @abstractmethod
    def initial_score(self, url: str, page: WebPage) -> None:
        """Set up a page that was found by a link."""

    @abstractmethod
    def generator_sort_value(self, url: str, page: WebPage, init: float) -> float:
        """Return the value by which the GeneratorJob sorts, ``init`` multiplied by what the page is worth."""

    @abstractmethod
    def distribute(self, url: str, page: WebPage, links: list[ScoredLink], total: int) -> list[ScoredLink]:
        """Return the links with the scores they carry; ``total``: outlinks before any was left out."""

    @abstractmethod
    def update_score(self, url: str, page: WebPage, inlinks: Sequence[ScoredLink]) -> None:
        """Take in the scores of a batch, in descending order."""

    @abstractmethod
    def indexer_score(self, url: str, page: WebPage, init: float) -> float:
        """Return the boost of the document, ``init`` multiplied by what the page is worth."""


class FetchSchedule(_PagePlugin, Protocol):
    """Says when a page is due. Times in ms, intervals in s.

    :class:`nutch2py.schedule.abstract_fetch_schedule.AbstractFetchSchedule` has all but :meth:`set_fetch_schedule`, as Nutch does it.
    """

    @cached_property
    def due_fields(self) -> frozenset[Field[Any]]:
        """What :meth:`should_fetch` alone reads, ``fields`` by default: read of every row of the table."""
        return self.fields

    def due_times(self, now: int) -> Sequence[tuple[int, int]] | None:
        """Return in which spans of ``fetch_time`` (first and last, ms) any page that is due at ``now`` has its own.

        The GeneratorJob then looks at no other pages. None, by default: :meth:`should_fetch` has to be asked of all.
        """
        return None

    @abstractmethod
    def initialize(self, url: str, page: WebPage, now: int) -> None:
        """Set up a page that was found by a link."""

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
        """Set the next fetch after a failure that may pass."""

    @abstractmethod
    def should_fetch(self, url: str, page: WebPage, now: int) -> bool:
        """Tell whether the page is due at ``now``."""

    @abstractmethod
    def force_refetch(self, url: str, page: WebPage, asap: bool) -> None:
        """Forget what is known of the page; make it due now when ``asap``."""


class PageNotIndexableError(NutchError):
    """A page that no document can be made of, such as one whose URL has no host: it is skipped with a warning."""


class IndexingFilter(_PagePlugin, Protocol):
    """Adds fields to the document of a page, or leaves the page out."""

    @abstractmethod
    def filter(self, document: NutchDocument, url: str, page: WebPage) -> NutchDocument | None:
        """Return the document with more fields, or None to leave the page out of the index.

        Raise :class:`PageNotIndexableError` when the page is broken.
        """


class IndexWriter(Plugin, Protocol):
    """Sends documents to one index. One object serves one process.

    Several processes write to the same index at once, so a writer gathers documents and holds a lock, if it needs one,
    for as long as one batch takes. Nothing is promised to be searchable before :meth:`commit` returns; a document
    with the id of another replaces it. Failures are :class:`nutch2py.errors.IndexingError`.
    """

    rejected: int = 0
    """How many documents the index did not take, so far; the writer counts them and warns, the job shows the sum."""
    supports_scores: bool = False
    """Whether :meth:`scores` can be asked. Of a writer that cannot, ``index -scores`` says that it needs -reindex."""

    def prepare(self, conf: Configuration, parameters: Mapping[str, str], reindex: bool) -> None:
        """Get the index ready for a job; called once, before the job's tasks open their writers. By default, nothing.

        A writer can make its index here, empty a file of an earlier run, or, when everything is indexed anew
        (``reindex``), replace an index of another version.
        """

    def check(self, conf: Configuration, parameters: Mapping[str, str]) -> None:
        """Raise an error whose text says why when the index cannot take documents. By default, nothing.

        Called for the command ``doctor``: nothing is made or changed.
        """

    @abstractmethod
    def open(self, conf: Configuration, parameters: Mapping[str, str]) -> None:
        """Get ready; ``parameters`` are those of index-writers.xml.

        Tasks may run in folders of their own: paths are made with ``conf.absolute``.
        """

    @abstractmethod
    def write(self, document: NutchDocument) -> None:
        """Add a document, or replace the one with the same id."""

    @abstractmethod
    def update(self, document: NutchDocument) -> None:
        """Replace a document that is known to be in the index."""

    @abstractmethod
    def delete(self, document_id: str) -> None:
        """Take a document out; one that is not in the index is no error."""

    def get_scores(self, ids: Sequence[str]) -> Mapping[str, float | None]:
        """Return the field ``pagerank`` of those of these documents that are in the index, None for one without."""
        return {}

    def set_score(self, document_id: str, score: float) -> bool:
        """Let a document that :meth:`scores` was last asked for have another ``pagerank``, without its text.

        False where that cannot be: then it is written whole. One that is gone meanwhile is no error, and not made.
        """
        return False

    @abstractmethod
    def commit(self) -> None:
        """Make all that was written searchable and durable."""

    @abstractmethod
    def close(self) -> None:
        """Send what is gathered and release everything; the writer is not used again."""

    @abstractmethod
    def describe(self) -> str:
        """Return the writer's name and settings, one a line."""


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
}
"""Contract of each extension point; the entry-point group is ``nutch2py.<name>``."""
