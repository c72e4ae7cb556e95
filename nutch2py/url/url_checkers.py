"""Line-by-line filtering and normalization of URLs for URLFilterChecker and URLNormalizerChecker."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from nutch2py.conf.configuration import Configuration
from nutch2py.plugins.loading import create_named_plugin
from nutch2py.url.filters.url_filters import URLFilters
from nutch2py.url.normalizers.url_normalizers import SCOPE_DEFAULT, URLNormalizers


def normalize_lines(
    conf: Configuration, lines: Iterable[str], scope: str = SCOPE_DEFAULT, normalizer_name: str | None = None
) -> Iterator[str]:
    """Yield the canonical form of each URL, "" if it is malformed or dropped, by one normalizer or all of the scope."""
    if normalizer_name is None:
        normalize = URLNormalizers(conf, scope).normalize_or_raise
    else:
        one = create_named_plugin(conf, "urlnormalizer", normalizer_name)

        def normalize(url: str) -> str | None:
            found: str | None = one.normalize(url, scope)
            return found

    for line in lines:
        try:
            yield normalize(line.strip()) or ""
        except ValueError:
            yield ""


def filter_lines(conf: Configuration, lines: Iterable[str], filter_name: str | None = None) -> Iterator[str]:
    """Yield ``+URL`` or ``-URL`` for each URL, by one filter or all enabled ones."""
    accept = (
        URLFilters(conf).filter if filter_name is None else create_named_plugin(conf, "urlfilter", filter_name).filter
    )
    for line in lines:
        url = line.strip()
        found = accept(url)
        yield f"-{url}" if found is None else f"+{found}"
