from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.url.url_partitioner import URLPartitioner, choose_partition_seed, java_hash


def _partitioner(conf: Configuration, **properties: str | int) -> URLPartitioner:
    conf = conf.copy()
    for name, value in properties.items():
        conf.set(f"partition.url.{name}", value)
    return URLPartitioner(conf)


def test_partition_public_cases(cases: Callable[[str], list[dict[str, Any]]], conf: Configuration) -> None:
    table = cases("url_partitioner")
    for case in table:
        args = case["args"]
        seeds = args.get("partition.url.seed", [0, 0])
        first, second = (
            _partitioner(conf, mode=args["partition.url.mode"], seed=seed).partition(url, args["numReduceTasks"])
            for url, seed in zip(case["input"], seeds, strict=True)
        )
        assert (first == second) == case["expect"].startswith("same"), case
        if "(0)" in case["expect"]:
            assert first == 0
    print(f"url_partitioner {len(table)}/{len(table)}")


@pytest.mark.parametrize(
    ("text", "value"),
    [("", 0), ("a", 97), ("www.example.org", -1878278519), ("polygenelubricants", -(2**31)), ("é😀", 1996812)],
)
def test_java_hash_matches_java(text: str, value: int) -> None:
    assert java_hash(text) == value


def test_partition_key_depends_on_mode(conf: Configuration, tmp_path: Path) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text("127.0.7.1 www.example.org\n", encoding="utf-8")
    conf.set("http.hosts.file", str(hosts))
    url = "http://WWW.Example.org/x"
    assert _partitioner(conf, mode="byHost").key(url) == "www.example.org"
    assert _partitioner(conf, mode="byDomain").key(url) == "example.org"
    assert _partitioner(conf, mode="byIP").key(url) == "127.0.7.1"


HOSTS = [f"http://host{number}.example/" for number in range(64)]


def groups(conf: Configuration, seed: int, count: int) -> list[int]:
    partitioner = URLPartitioner(conf, seed=seed)
    return [partitioner.partition(url, count) for url in HOSTS]


@pytest.mark.parametrize("count", [2, 3, 4, 8])
def test_other_seed_groups_hosts_differently(conf: Configuration, count: int) -> None:
    """ "Exclusive or" alone would give the same groups other numbers when ``count`` is a power of two."""
    together = {
        frozenset(
            frozenset(place for place, number in enumerate(numbers) if number == wanted) for wanted in range(count)
        )
        for numbers in (groups(conf, seed, count) for seed in range(20))
    }
    assert len(together) == 20


def test_partitions_are_balanced_for_any_seed(conf: Configuration) -> None:
    sizes = [groups(conf, seed, 4).count(0) for seed in range(1, 200)]
    assert 15 < sum(sizes) / len(sizes) < 17


def test_without_seed_partitions_match_nutch(conf: Configuration) -> None:
    expected = [(java_hash(url[7:-1]) & 0x7FFFFFFF) % 7 for url in HOSTS]
    assert groups(conf, 0, 7) == expected


def test_seed_defaults_to_batch(conf: Configuration) -> None:
    assert (
        choose_partition_seed(conf, "1600000001-1")
        == choose_partition_seed(conf, "1600000001-1")
        != choose_partition_seed(conf, "1600000001-2")
    )
    conf.set("partition.url.seed", 7)
    assert choose_partition_seed(conf, "1600000001-1") == choose_partition_seed(conf, "1600000001-2") == 7


def test_unknown_mode_logs_warning(conf: Configuration, capsys: pytest.CaptureFixture[str]) -> None:
    assert _partitioner(conf, mode="byMoon").mode == "byHost"
    assert "byMoon" in capsys.readouterr().err


def test_malformed_url_has_a_partition(conf: Configuration) -> None:
    partitioner = _partitioner(conf)
    assert partitioner.key("not a url") == "not a url"
    assert 0 <= partitioner.partition("not a url", 7) < 7
