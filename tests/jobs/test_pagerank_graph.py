"""The parts of PageRank by MapReduce: hashes and buckets, sums as text, row keys of a block."""

import numpy as np
import pytest

from nutch2py.jobs.pagerank import link_graph_job, pagerank_mapreduce
from nutch2py.jobs.pagerank.graph_blocks import GraphBlockStore, encode_keys
from nutch2py.jobs.pagerank.pagerank_job import pagerank
from nutch2py.records.webpage import DerivedRow
from tests.jobs.test_pagerank import make_table, random_web, ranks_of


def test_hash_collision_is_resolved_by_second_hash(conf, monkeypatch):
    make_table(conf, random_web(120))
    pagerank(conf)
    expected = ranks_of(conf)
    salts = []

    def key_hash(salt, real=link_graph_job.make_key_hash):
        salts.append(salt)
        digest = real(salt)
        return digest if salt else lambda key: digest(key[:12])  # whole sites have one hash

    monkeypatch.setattr(link_graph_job, "make_key_hash", key_hash)
    conf.set("pagerank.method", "mapreduce")
    pagerank(conf)
    assert set(salts) == {0, 1}
    assert ranks_of(conf) == pytest.approx(expected, abs=1e-6)


def test_salt_changes_every_key_hash():
    first, second = link_graph_job.make_key_hash(0), link_graph_job.make_key_hash(1)
    keys = [f"org.a:http/{number}" for number in range(1000)]
    assert len({*map(first, keys), *map(second, keys)}) == 2000
    assert {len(first(key)) for key in keys} == {8}


@pytest.mark.parametrize(
    ("pages", "bits"), [(0, 6), (100, 6), (16_000_000, 7), (1_000_000_000, 12), (10**12, 14), (None, 10)]
)
def test_bucket_size_is_bounded(pages, bits):
    assert link_graph_job.choose_bucket_bits(pages) == bits


@pytest.mark.parametrize("filled", [0, 3, 79, 80, 81, 100])
def test_sums_use_shorter_encoding(filled):
    vector = np.zeros(100)
    vector[np.random.default_rng(filled).choice(100, filled, replace=False)] = np.linspace(0.5, 2, filled)
    ((block, text),) = pagerank_mapreduce.encode_sums({"b": vector})
    total = np.ones(100)
    pagerank_mapreduce.add_encoded(text, total)
    pagerank_mapreduce.add_encoded("", total)  # what a block without links gets
    assert block == "b"
    assert text[0] == ("s" if filled < 80 else "d")
    assert (total == vector + 1).all()


def test_row_keys_round_trip():
    entry, keys = DerivedRow(), ["org.a:http/", "org.a:http/\udcff\t", "org.a:http/中"]
    entry.data = encode_keys(keys)
    assert GraphBlockStore(None).decode_row_keys(entry) == keys
