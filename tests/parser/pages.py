"""Pages for the tests of parsers."""

from nutch2py.records.webpage import CrawlStatus, Mark, WebPage

URL = "http://h.test/d/p.html"
KEY = "test.h:http/d/p.html"


def fetched(body: bytes, content_type: str = "text/html", url: str = URL, **headers: str) -> WebPage:
    """Return a fetched page of batch ``b1`` as a store would; header names are written with ``_`` for ``-``."""
    page = WebPage()
    page.status, page.base_url, page.content, page.content_type = CrawlStatus.FETCHED, url, body, content_type
    page.markers[Mark.FETCH] = "b1"
    for name, value in headers.items():
        page.headers[name.replace("_", "-")] = value
    return stored(page)


def stored(page: WebPage) -> WebPage:
    """Return the page as it is read again after its changes were written."""
    mutation = page.mutation()
    cells = {family: dict(columns) for family, columns in page.cells.items()}
    if mutation is not None:
        for family in mutation.cleared_families:
            cells.pop(family, None)
        for family, qualifiers in mutation.deletes.items():
            for qualifier in qualifiers:
                cells.get(family, {}).pop(qualifier, None)
        for family, columns in mutation.puts.items():
            cells.setdefault(family, {}).update(columns)
    return WebPage(cells)
