"""Extension points and how plug-ins are found.

An extension point is an entry-point group (``nutch2py.urlfilter``, …), a plug-in an entry of it: its name is the plugin
id that ``plugin.includes`` and ``plugin.excludes`` select by regular expression, as in Nutch. A plug-in is a class that
is called with the Configuration. ``*.order`` properties list ids, Java class names or Python names; a class says with
``java_class`` which class of Nutch it stands for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from nutch2py.conf import Configuration
from nutch2py.errors import ConfigurationError
from nutch2py.reporting import warn

if TYPE_CHECKING:
    from nutch2py.record import Field
    from nutch2py.webpage import WebPage

ALWAYS_ON = frozenset({"signature", "fetchschedule"})
"""Points whose plug-in a property of its own names, whatever ``plugin.includes`` says."""


class URLNormalizer(Protocol):
    """Brings a URL into its canonical form. Scopes: see :mod:`nutch2py.url.url_normalizers`."""

    def normalize(self, url: str, scope: str) -> str | None:
        """Return the canonical URL, None to drop it; raise ValueError when it is not a URL."""


class URLFilter(Protocol):
    """Says which URLs belong to the crawl."""

    def filter(self, url: str) -> str | None:
        """Return the URL, or None to reject it."""


class Outlink(NamedTuple):
    """A link of a page: absolute URL and anchor text."""

    url: str
    anchor: str = ""


class Parse(NamedTuple):
    """What a parser made of a page. ``status`` codes are those of ParseStatusCode."""

    text: str
    title: str
    outlinks: Sequence[Outlink]
    major: int = 1
    minor: int = 0
    args: tuple[str, ...] = ()
    metadata: Mapping[str, bytes] = {}


class Parser(Protocol):
    """Makes text, title and outlinks of content. ``fields``: what it reads of the page."""

    fields: frozenset[Field[Any]]

    def parse(self, url: str, page: WebPage) -> Parse:
        """Parse ``page.content``; may set ``page.metadata``. A failure is a Parse with the major code FAILED."""


class ParseFilter(Protocol):
    """Looks at a parsed HTML page and adds to it."""

    fields: frozenset[Field[Any]]

    def filter(self, url: str, page: WebPage, parse: Parse, document: Any) -> Parse | None:
        """Return the parse, changed or not; None makes the parse fail. ``document``: the parsed DOM."""


class Signature(Protocol):
    """Digest of a page."""

    fields: frozenset[Field[Any]]

    def calculate(self, url: str, page: WebPage) -> bytes:
        """Return the digest."""


class ScoredLink(NamedTuple):
    """A link with the score it carries: ``url`` is the target when a page gives, the source when a page receives."""

    url: str
    anchor: str
    score: float
    distance: int = 2147483647


class ScoringFilter(Protocol):
    """Says what pages are worth. Scores are floats of four bytes."""

    fields: frozenset[Field[Any]]

    def injected_score(self, url: str, page: WebPage) -> None:
        """Set up a seed, whose ``score`` is set already."""

    def initial_score(self, url: str, page: WebPage) -> None:
        """Set up a page that was found by a link."""

    def generator_sort_value(self, url: str, page: WebPage, init: float) -> float:
        """Return the value by which the GeneratorJob sorts, ``init`` multiplied by what the page is worth."""

    def distribute(self, url: str, page: WebPage, links: list[ScoredLink], total: int) -> list[ScoredLink]:
        """Return the links with the scores they carry; ``total``: outlinks before any was left out."""

    def update_score(self, url: str, page: WebPage, inlinks: Sequence[ScoredLink]) -> None:
        """Take in the scores of a batch, in descending order."""

    def indexer_score(self, url: str, page: WebPage, init: float) -> float:
        """Return the boost of the document, ``init`` multiplied by what the page is worth."""


class FetchSchedule(Protocol):
    """Says when a page is due. Times in ms, intervals in s."""

    fields: frozenset[Field[Any]]

    def initialize(self, url: str, page: WebPage, now: int) -> None:
        """Set up a page that was found by a link."""

    def set_fetch_schedule(
        self, url: str, page: WebPage, prev_fetch: int, prev_modified: int, fetched: int, modified: int, state: int
    ) -> None:
        """Set the next fetch after a success; ``state``: 0 unknown, 1 modified, 2 not modified."""

    def set_page_gone_schedule(
        self, url: str, page: WebPage, prev_fetch: int, prev_modified: int, fetched: int
    ) -> None:
        """Set the next fetch of a page that is gone."""

    def set_page_retry_schedule(
        self, url: str, page: WebPage, prev_fetch: int, prev_modified: int, fetched: int
    ) -> None:
        """Set the next fetch after a failure that may pass."""

    def should_fetch(self, url: str, page: WebPage, now: int) -> bool:
        """Tell whether the page is due at ``now``."""

    def force_refetch(self, url: str, page: WebPage, asap: bool) -> None:
        """Forget what is known of the page; make it due now when ``asap``."""


@cache
def registered(point: str) -> Mapping[str, EntryPoint]:
    """Return the installed plug-ins of an extension point by plugin id; the first of two with one id wins."""
    found: dict[str, EntryPoint] = {}
    for entry in entry_points(group=f"nutch2py.{point}"):
        found.setdefault(entry.name, entry)
    return found


def _pattern(conf: Configuration, name: str) -> re.Pattern[str]:
    text = conf.get_trimmed(name)
    try:
        return re.compile(text)
    except re.error as error:
        raise ConfigurationError(f"property {name} is not a regular expression: {error}: correct it") from None


def load(entry: EntryPoint) -> type[Any]:
    """Return the class of a plug-in, with a message that names it when it cannot be imported."""
    try:
        plugin: type[Any] = entry.load()
    except (ImportError, AttributeError) as error:
        raise ConfigurationError(
            f"plug-in {entry.name} ({entry.value}) cannot be loaded: {error}: install what it needs, "
            "or take it out of plugin.includes"
        ) from error
    return plugin


def enabled(conf: Configuration, point: str) -> dict[str, type[Any]]:
    """Return the classes of a point that ``plugin.includes`` selects and ``plugin.excludes`` does not, by plugin id."""
    includes, excludes = _pattern(conf, "plugin.includes"), _pattern(conf, "plugin.excludes")
    chosen: dict[str, type[Any]] = {}
    for plugin_id, entry in sorted(registered(point).items()):
        if point not in ALWAYS_ON:
            if not includes.fullmatch(plugin_id):
                continue
            if excludes.pattern and excludes.fullmatch(plugin_id):
                continue
        chosen[plugin_id] = load(entry)
    return chosen


def names_of(plugin_id: str, plugin: type[Any]) -> set[str]:
    """Return every name by which a property may call a plug-in."""
    return {
        plugin_id,
        getattr(plugin, "java_class", plugin_id),
        plugin.__name__,
        f"{plugin.__module__}.{plugin.__name__}",
    }


def ordered(conf: Configuration, point: str, order_property: str) -> list[Any]:
    """Return an instance of every enabled plug-in of a point; those that the order property names come first."""
    chosen = enabled(conf, point)
    return [
        plugin(conf)
        for plugin in in_order(chosen, conf.get_strings(order_property, separators=", \t\n\r"), order_property)
    ]


def in_order(chosen: Mapping[str, type[Any]], order: Iterable[str], order_property: str = "") -> list[type[Any]]:
    """Return the classes of ``chosen``, those named in ``order`` first; a name that is not enabled is warned of."""
    rest = dict(chosen)
    first: list[type[Any]] = []
    for name in order:
        plugin_id = next((i for i, plugin in rest.items() if name in names_of(i, plugin)), None)
        if plugin_id is not None:
            first.append(rest.pop(plugin_id))
        elif not any(name in names_of(i, plugin) for i, plugin in chosen.items()) and order_property:
            warn(f"{order_property} names {name}, which is not an enabled plug-in: it is left out")
    return [*first, *rest.values()]


def named(conf: Configuration, point: str, name: str) -> Any:
    """Return an instance of the plug-in of ``point`` that is called ``name`` (id, Java or Python class name)."""
    for plugin_id, entry in registered(point).items():
        # the id is the class's own name for built-ins, so most are found without importing the others
        if name == plugin_id or name.rsplit(".", 1)[-1] == plugin_id:
            return load(entry)(conf)
    for plugin_id, entry in registered(point).items():
        plugin = load(entry)
        if name in names_of(plugin_id, plugin):
            return plugin(conf)
    raise ConfigurationError(
        f"no plug-in of {point} is called {name}: known are {', '.join(sorted(registered(point)))}"
    )
