"""Ranges of keys that a host names."""

from __future__ import annotations

import pytest

from nutch2py.table.table_query import KeyRange, host_range
from nutch2py.url.keys import reverse_url


@pytest.mark.parametrize("host", ["www.a.test", "WWW.A.test"])
def test_range_of_host_contains_its_pages_alone(host: str) -> None:
    found = host_range(host)
    inside = [reverse_url(f"{start}/p") for start in ("http://www.a.test", "https://www.a.test:8443")]
    outside = [reverse_url(f"http://{other}/p") for other in ("a.test", "www.a.testa", "x.www.a.test")]
    assert [found.start <= key < found.stop for key in inside] == [True, True]
    assert [found.start <= key < found.stop for key in outside] == [False] * 3


def test_range_of_no_host_is_whole_table() -> None:
    assert host_range("") == KeyRange()
