"""Output of the command search: hits, and optionally facets, explanations and a corrected spelling."""

from __future__ import annotations

from typing import NamedTuple

from nutch2py.conf.configuration import Configuration
from nutch2py.search.query.query_language import make_verbatim_query
from nutch2py.search.results.facets import FacetCounts
from nutch2py.search.results.search_results import SearchResult, format_for_terminal, replace_unprintable
from nutch2py.search.search_backends import open_search_backend
from nutch2py.support.terminal import StyledText
from nutch2py.url.display_url import display_host, display_url


class SearchOutput(NamedTuple):
    """A result with optional details: ``explanations`` by document id; ``corrected_query``: searched, or suggested."""

    result: SearchResult
    facets: FacetCounts
    explanations: dict[str, str]
    corrected_query: str

    def to_json(self) -> str:
        """Return one line of JSON: the result, ``facets``, ``corrected_query``, and the ``explanation`` of each hit."""
        import orjson

        output = self.result.to_dict()
        for hit in output["hits"]:
            if hit["id"] in self.explanations:
                hit["explanation"] = self.explanations[hit["id"]]
        if self.facets:
            output["facets"] = {name: dict(values) for name, values in self.facets.items()}
        if self.corrected_query:
            output["corrected_query"] = self.corrected_query
        return orjson.dumps(output).decode()

    def format_text(self, color: bool = False) -> StyledText:
        """Return the output for a terminal, without control characters of pages."""
        parts: list[str] = [format_for_terminal(self.result, color)]
        if self.corrected_query:
            corrected = replace_unprintable(self.corrected_query)
            if self.result.corrected_query:
                verbatim = replace_unprintable(make_verbatim_query(self.result.query, self.corrected_query))
                parts.insert(0, f"Showing results for: {corrected}\nSearch only for: {verbatim}\n")
            else:
                parts.append(f"Did you mean: {corrected}\n")
        for name, values in self.facets.items():
            counts = ", ".join(
                f"{replace_unprintable(display_host(value) if name == 'host' else value)} ({count})"
                for value, count in values
            )
            parts.append(f"{name}: {counts or 'none'}\n")
        for hit in self.result.hits:
            if hit.id in self.explanations:
                lines = "\n".join(map(replace_unprintable, self.explanations[hit.id].splitlines()))
                parts.append(f"\n{replace_unprintable(display_url(hit.url))}\n{lines}\n")
        return StyledText("".join(parts))


def search_with_details(
    conf: Configuration, query: str, start: int = 0, rows: int = 10, facets: bool = False, explain: bool = False
) -> SearchOutput:
    """Search the index of ``search.backend``, with the requested details."""
    index = open_search_backend(conf)
    result = index.search(query, start, rows, with_facets=facets)
    explanations = {hit.id: index.explain(query, hit.id) for hit in result.hits} if explain else {}
    corrected_query = result.corrected_query or ("" if result.total else index.correct_query(query))
    return SearchOutput(
        result, result.facets, {key: text for key, text in explanations.items() if text}, corrected_query
    )
