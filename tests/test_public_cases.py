"""Every file of the public cases is run by a test, or it is said here why it concerns nothing that exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.conftest import CASES, ROOT

FILTERS = ("automaton", "domain", "domaindenylist", "fast", "prefix", "regex", "suffix", "validator")
NORMALIZERS = ("ajax", "basic", "host", "pass", "protocol", "querystring", "regex", "slash")
RUN_BY = {
    "crawldb_states": "schedule/test_transition.py",
    "dedup": "jobs/test_dedup.py",
    "dom_parse_html": "parser/test_html.py",
    "encoding_detector": "parser/test_charset.py",
    "fetch_schedule": "schedule/test_schedules.py",
    "fetcher_storage": "jobs/test_fetcher_storage.py",
    "generator": "jobs/test_generate.py",
    "google_robots": "fetcher/test_robots.py",
    "html_parser": "parser/test_html.py",
    "http_date": "schedule/test_http_date.py",
    "http_protocol": "fetcher/test_http_cases.py",
    "http_proxy_exception": "fetcher/test_http_cases.py",
    "index_replace": "indexer/test_more_filters.py",
    "indexer_csv": "indexer/test_writers.py",
    "indexing_filters": "indexer/test_filters.py",
    "injector": "jobs/test_inject.py",
    "mimeutil": "parser/test_mime.py",
    "opic": "scoring/test_opic.py",
    "outlink_extractor": "parser/test_text.py",
    "parse_filters": "parser/test_metatags.py",
    "psl": "url/test_url_parts.py",
    "robots_meta": "parser/test_head_directives.py",
    "robots_rules": "fetcher/test_robots.py",
    "sitemap": "parser/test_sitemap.py",
    "subcollection": "indexer/test_more_filters.py",
    "tableutil": "url/test_keys.py",
    "tld_indexing": "indexer/test_more_filters.py",
    "url_partitioner": "url/test_url_partitioner.py",
    "url_with_score": "jobs/test_updatedb.py",
    **{f"urlfilter_{name}": "url/test_filter_cases.py" for name in FILTERS},
    **{f"urlnormalizer_{name}": "url/test_normalizer_cases.py" for name in NORMALIZERS},
    "urlnormalizers_chain": "url/test_normalizer_cases.py",
    "urlutil": "url/test_url_parts.py",
    "wpt_http": "url/test_java_url.py",
}
"""File of cases → the module that runs it."""
NOT_APPLICABLE = {
    "crawldb_merge": "mergedb and db.update.purge.404 are of Nutch 1, with crawls in files; a table is never merged",
    "dom_parse_tika": "what Tika's HTML parser makes of the pages of dom_parse_html: there is one HTML parser here",
    "rest_auth": "users and roles of Nutch 1's REST service: there is no REST service here",
    "string_util": "padding of text to a width: Python's own library does it, and nothing here wraps it",
}
"""File of cases → why nothing here does what it is about."""


@pytest.fixture
def files() -> list[str]:
    if not CASES.is_dir():
        pytest.skip("the public cases are not here: set NUTCH2PY_CASES to their folder")
    return sorted(path.stem for path in CASES.glob("*.json"))


def test_every_case_file_has_a_test_or_reason(files: list[str]) -> None:
    left = [name for name in files if name not in RUN_BY and name not in NOT_APPLICABLE]
    assert left == [], "name the module that runs it, or the reason"
    assert [name for name in [*RUN_BY, *NOT_APPLICABLE] if name not in files] == []
    print(f"files of cases run: {len(RUN_BY)}/{len(files)}, not applicable: {len(NOT_APPLICABLE)}")


@pytest.mark.parametrize("name", RUN_BY)
def test_listed_module_reads_its_case_file(name: str) -> None:
    """By its name, or by the name after the first underscore where one test runs all files of a family."""
    text = Path(ROOT, "tests", RUN_BY[name]).read_text(encoding="utf-8")
    family, _, member = name.partition("_")
    whole = f'cases("{name}")' in text
    by_family = f'cases(f"{family}_{{' in text and re.search(rf'"{member}"', text) is not None
    assert whole or by_family
