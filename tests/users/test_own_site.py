"""A newcomer's first minutes: a site on this machine, crawled and searched with three commands and no reading."""

from __future__ import annotations

from urllib.parse import quote
from urllib.request import urlopen

from tests.crawl_loop.test_crawl_command import page
from tests.site.server import ScriptedSite
from tests.users.conftest import User, text_of


def test_site_is_crawled_with_three_commands(user: User, site: ScriptedSite) -> None:
    site.on("/", page("/keeper", "/picture.gif", text="harbour"))
    site.on("/keeper", page(text="lighthouse keeper"))

    first = user.types(f"nutch2py crawl {site.url('/')}")  # what anybody would try
    assert first.returncode == 9
    assert first.stdout == ""
    assert "127.0.0.1 has the address 127.0.0.1, which http.filter.ipaddress.exclude denies" in first.stderr
    assert "; that is: nutch2py crawl " in first.stderr
    assert len(first.stderr.splitlines()) == 1
    assert [*user.folder.iterdir()] == []

    second = user.types(first.stderr.rpartition("that is: ")[2].strip())  # what it says
    assert (second.returncode, second.stderr) == (0, ""), second.stderr
    said = second.stdout
    assert "2 pages fetched" in said
    assert "2 documents in the index" in said
    assert " 1 links rejected by the URL filter urlfilter-regex (" in said
    assert "regex-urlfilter.txt" in said
    lines = [line.strip() for line in said.splitlines()]
    after = lines[lines.index("Search it:") + 1 :]
    assert after[:2] == ["nutch2py search WORDS", "nutch2py serve"]

    third = user.types(after[0].replace("WORDS", "lighthouse"))
    assert third.returncode == 0, third.stderr
    assert site.url("/keeper") in third.stdout
    assert "lighthouse keeper" in third.stdout

    with user.serving(f"{after[1]} -port 0") as address:  # the other way to search
        assert "lighthouse keeper" in text_of(f"{address}?q=lighthouse")
        assert "2 pages of 1 host, 100 % fetched." in text_of(f"{address}crawl")
        with urlopen(f"{address}?q=lighthouse", timeout=60) as answer:
            assert f"/crawl/page?url={quote(site.url('/keeper'), safe='')}" in answer.read().decode()
