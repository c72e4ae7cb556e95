"""HTML templates of the search page. Values from pages and queries are escaped."""

from __future__ import annotations

import re
import traceback
from pathlib import Path
from typing import NamedTuple

from jinja2 import (
    BaseLoader,
    ChoiceLoader,
    Environment,
    FileSystemLoader,
    PackageLoader,
    StrictUndefined,
    TemplateError,
    TemplateNotFound,
    TemplateSyntaxError,
)  # fmt: skip
from markupsafe import Markup

from nutch2py.search.query.query_language import make_verbatim_query
from nutch2py.search.results.facets import FacetCounts
from nutch2py.search.results.search_results import MAX_START, Hit, SearchResult, format_html
from nutch2py.search.results.snippet import Snippet
from nutch2py.server.empty_result import EmptyResultHelp
from nutch2py.server.search_request import MAX_QUERY, SearchRequest, build_url
from nutch2py.server.theme import Theme
from nutch2py.server.translations import Translations
from nutch2py.support.reporting import warn
from nutch2py.url.display_url import display_url
from nutch2py.url.keys import unreverse_url

RESULTS_PER_PAGE = 10
_MAX_PAGE_LINKS = 9
_MAX_REPORTED_ERRORS = 100  # places and types of errors of templates
_LANGUAGE_TAG = re.compile("[a-z]{2,3}(?:-[A-Za-z]{2,8})?")


class PageLink(NamedTuple):
    """A link to a page of results. ``start``: number of its first hit. ``relation``: ``next``, ``prev`` or ""."""

    text: str
    start: int
    relation: str = ""
    is_current: bool = False


class SearchTemplates:
    """Renders pages with a :class:`Theme`; templates in its folder override ours of the same name.

    The operator's templates are compiled at the start. A page whose template fails, then or later, is rendered by ours;
    a warning names file and line, once for each error.
    """

    def __init__(self, theme: Theme) -> None:
        self.theme = theme
        self._own_environment = self._create_environment(None)
        self._environment = self._own_environment
        self._reported_errors: set[tuple[str, type[Exception]]] = set()
        if theme.templates_dir is not None:
            self._environment = self._create_environment(theme.templates_dir)
            for path in sorted(theme.templates_dir.glob("*.html")):
                try:
                    self._environment.get_template(path.name)
                except TemplateError as error:
                    self._report_error(path.name, error)

    def _create_environment(self, folder: Path | None) -> Environment:
        theme = self.theme
        loaders: list[BaseLoader] = [PackageLoader("nutch2py.server")]
        if folder is not None:
            loaders.insert(0, FileSystemLoader(folder))
        environment = Environment(
            loader=ChoiceLoader(loaders),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        environment.filters |= {
            "highlighted": _highlighted,
            "display_url": display_url,
            "is_safe_link": is_safe_link,
            "hit_language": _hit_language,
            "hit_date": _hit_date,
            "has_cached_copy": _has_cached_copy,
            "crawl_url": _crawl_url,
        }
        environment.globals |= {
            "build_url": build_url,
            "theme": theme,
            "max_query": MAX_QUERY,
            "max_start": MAX_START,
            "query": "",
        }
        return environment

    def render(self, template: str, i18n: Translations, **values: object) -> str:
        """Render a template in a language; by our own template when the operator's fails."""
        if self._environment is not self._own_environment:
            try:
                return self._environment.get_template(template).render(i18n=i18n, **values)
            except Exception as error:  # noqa: BLE001 - a template may raise anything
                self._report_error(template, error)
        return self._own_environment.get_template(template).render(i18n=i18n, **values)

    def _report_error(self, template: str, error: Exception) -> None:
        """Warn about an error of the operator's templates, unless it was reported before."""
        reason = f"template {error} not found" if isinstance(error, TemplateNotFound) else str(error)
        location = _error_location(template, error, self.theme.templates_dir)
        key = (location, type(error))
        if key not in self._reported_errors and len(self._reported_errors) < _MAX_REPORTED_ERRORS:
            self._reported_errors.add(key)
            warn(
                f"{location}: {reason}; the built-in page is shown instead: "
                "correct the template (search.page.templates)"
            )

    def render_home(self, i18n: Translations, document_count: int) -> str:
        """Render the page without a query."""
        return self.render("home.html", i18n, document_count=document_count)

    def render_message(self, i18n: Translations, title: str, text: str, query: str = "") -> str:
        """Render a page with a message."""
        return self.render("message.html", i18n, title=title, text=text, query=query)

    def render_results(
        self,
        i18n: Translations,
        request: SearchRequest,
        result: SearchResult,
        facets: FacetCounts,
        suggestion: str = "",
        hints: tuple[str, ...] = (),
        is_sortable: bool = False,
        has_control_room: bool = False,
        related: EmptyResultHelp | None = None,
        result_token: str = "",
    ) -> str:
        """Render a page of hits.

        Args:
            i18n: the translations.
            request: the search request, for links.
            result: the hits.
            facets: facet values with their counts.
            suggestion: a corrected query to suggest, "" for none.
            hints: messages on errors of the query.
            is_sortable: offer sorting by date.
            has_control_room: link each hit to its page in the control room.
            related: related searches, for a search without hits.
            result_token: token with which the script reports clicks, "" to report none.
        """
        values = {
            "request": request,
            "query": result.query,
            "result": result,
            "facets": {name: values for name, values in facets.items() if len(values) > 1 or name in request.filters},
            "suggestion": suggestion,
            "verbatim_query": make_verbatim_query(result.query, result.corrected_query),
            "hints": hints,
            "is_sortable": is_sortable and result.total > 1,
            "has_control_room": has_control_room,
            "related": related,
            "result_token": result_token,
            "page_links": pagination_links(
                i18n, result.start, result.total if result.collapsed_total is None else result.collapsed_total
            ),
        }
        return self.render("results.html", i18n, **values)


def _error_location(template: str, error: Exception, folder: Path | None) -> str:
    """Return file and line of an error in a template of a folder."""
    if isinstance(error, TemplateSyntaxError):
        return f"{error.name or template}, line {error.lineno}"
    frames = traceback.extract_tb(error.__traceback__)  # Jinja puts the lines of templates there
    frame = next((each for each in reversed(frames) if folder and Path(each.filename).is_relative_to(folder)), None)
    return template if frame is None else f"{Path(frame.filename).name}, line {frame.lineno}"


def pagination_links(i18n: Translations, start: int, total: int) -> list[PageLink]:
    """Return links to pages of results, none for a single page."""
    current, pages = start // RESULTS_PER_PAGE, min(-(-total // RESULTS_PER_PAGE), MAX_START // RESULTS_PER_PAGE + 1)
    if pages <= 1:
        return []
    first = max(0, min(current - _MAX_PAGE_LINKS // 2, pages - _MAX_PAGE_LINKS))
    links = [PageLink(i18n("previous"), (current - 1) * RESULTS_PER_PAGE, "prev")] if current > 0 else []
    links += [
        PageLink(str(number + 1), number * RESULTS_PER_PAGE, is_current=number == current)
        for number in range(first, min(pages, first + _MAX_PAGE_LINKS))
    ]
    if current + 1 < pages:
        links.append(PageLink(i18n("next"), (current + 1) * RESULTS_PER_PAGE, "next"))
    return links


def is_safe_link(url: str) -> bool:
    """Return whether a URL may be a link; ``javascript:`` may not."""
    return url.lower().startswith(("http://", "https://", "ftp://"))


def _highlighted(snippet: Snippet) -> Markup:
    return Markup(format_html(snippet))  # noqa: S704 - format_html escapes the text


def _hit_language(hit: Hit) -> str:
    lang = str(hit.fields.get("lang", ""))
    return lang if _LANGUAGE_TAG.fullmatch(lang) else ""


def _hit_date(hit: Hit) -> str:
    return str(hit.fields.get("date", hit.fields.get("tstamp", "")))[:10]


def _crawl_url(hit: Hit) -> str:
    """Return the URL of a hit's row in the crawl; the hit's ``url`` may be its representative URL."""
    try:
        return unreverse_url(hit.id)
    except ValueError:
        return hit.url


def _has_cached_copy(hit: Hit) -> bool:
    return hit.fields.get("cache") in (None, "none")
