"""The parts of PageRank by MapReduce: hashes and buckets, sums as text, row keys of a block."""

import numpy as np
import pytest

from nutch2py.jobs import pagerank_graph, pagerank_mapreduce
from nutch2py.jobs.pagerank import pagerank
from nutch2py.jobs.pagerank_blocks import BlockStore, pack_keys
from nutch2py.webpage import BatchEntry
from tests.jobs.test_pagerank import make_table, random_web, ranks_of


def test_pages_of_one_hash_are_told_apart_by_another(conf, monkeypatch):
    make_table(conf, random_web(120))
    pagerank(conf)
    expected = ranks_of(conf)
    salts = []

    def key_hash(salt, real=pagerank_graph.key_hash):
        salts.append(salt)
        digest = real(salt)
        return digest if salt else lambda key: digest(key[:12])  # whole sites have one hash

    monkeypatch.setattr(pagerank_graph, "key_hash", key_hash)
    conf.set("pagerank.method", "mapreduce")
    pagerank(conf)
    assert set(salts) == {0, 1}
    assert ranks_of(conf) == pytest.approx(expected, abs=1e-6)


def test_the_salt_changes_the_hash_of_every_key():
    first, second = pagerank_graph.key_hash(0), pagerank_graph.key_hash(1)
    keys = [f"org.a:http/{number}" for number in range(1000)]
    assert len({*map(first, keys), *map(second, keys)}) == 2000
    assert {len(first(key)) for key in keys} == {8}


@pytest.mark.parametrize(
    ("pages", "bits"), [(0, 6), (100, 6), (16_000_000, 7), (1_000_000_000, 12), (10**12, 14), (None, 10)]
)
def test_buckets_hold_some_hundred_thousand_pages(pages, bits):
    assert pagerank_graph.bucket_bits(pages) == bits


@pytest.mark.parametrize("filled", [0, 3, 79, 80, 81, 100])
def test_sums_travel_in_the_shorter_form(filled):
    vector = np.zeros(100)
    vector[np.random.default_rng(filled).choice(100, filled, replace=False)] = np.linspace(0.5, 2, filled)
    ((block, text),) = pagerank_mapreduce._texts({"b": vector})
    total = np.ones(100)
    pagerank_mapreduce._add(text, total)
    pagerank_mapreduce._add("", total)  # what a block without links gets
    assert block == "b"
    assert text[0] == ("s" if filled < 80 else "d")
    assert (total == vector + 1).all()


def test_row_keys_come_back_whatever_is_in_them():
    entry, keys = BatchEntry(), ["org.a:http/", "org.a:http/\udcff\t", "org.a:http/中"]
    entry.data = pack_keys(keys)
    assert BlockStore(None).keys(entry) == keys
