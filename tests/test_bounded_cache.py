"""Caches of data from the web are bounded in bytes: no other cache has keys of a length that strangers choose."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from nutch2py.fetcher.protocols.header_names import canonical_name
from nutch2py.parser.charset.encoding_names import resolve_label
from nutch2py.records import cells
from nutch2py.records.cells import ParseStatus, ProtocolStatus
from nutch2py.support.bounded_cache import bounded_cache
from nutch2py.url.url_partitioner import java_hash
from nutch2py.url.url_parts import domain_of_host, suffix_of_host
from tests.import_graph import ROOT

OURS = {
    "records/cells.py:_status_schemas": "nothing",
    "parser/charset/prescan.py": "the beginnings of pages, of which a kibibyte counts at most",
    "parser/charset/whatwg_decoders.py": "the names of codecs",
    "fetcher/protocols/ca_store.py": "the configuration, and times and sizes of its files",
    "fetcher/protocols/address_filter.py:self.accepts": "an address",
    "support/java_exceptions.py": "names in this program",
    "table/hbase/hbase_admin.py": "the configuration",
    "table/hbase/gora_mapping.py": "the configuration",
    "table/hbase/thrift_client/wire.py": "columns; the longest names are URLs of links: some megabytes",
    "table/embedded/storage/avro_schema.py": "a file of ours",
    "table/embedded/due_keys.py": "two cells, of which eight and four bytes count",
    "url/regex/regex_complexity.py": "expressions and lines of the user's files",
    "backends/analysis/analyzer.py": "the configuration",
    "backends/analysis/compounds.py": "the codes of languages that there are rules for",
    "backends/analysis/folding.py": "the text of a file of the configuration",
    "backends/analysis/word_forms.py": "nothing",
    "parser/charset/whatwg_encoders.py": "the names of codecs",
    "backends/analysis/stemming.py": "the codes of languages that there are rules for",
    "backends/encoders/onnx_encoder.py": "the configuration",
    "search/hybrid/hybrid_ranker.py": "queries, the length of which is limited, and the options of a search",
    "mapreduce/job_file.py": "a file of ours",
    "search/query/synonyms.py": "the texts of files of the configuration",
    "support/bounded_cache.py": "",
}
"""Keys of the caches without a bound in bytes."""


def test_long_keys_are_not_cached() -> None:
    called: list[str] = []

    @bounded_cache(10, 5)
    def length(text: str) -> int:
        called.append(text)
        return len(text)

    assert [length(text) for text in ("short", "short", "longer", "longer")] == [5, 5, 6, 6]
    assert called == ["short", "longer", "longer"]


@pytest.mark.parametrize(
    "function",
    [
        canonical_name,
        resolve_label,
        domain_of_host,
        suffix_of_host,
        java_hash,
        lambda text: cells.encode_protocol_status(ProtocolStatus(1, (text,))),
        lambda text: cells.encode_parse_status(ParseStatus(1, 0, (text,))),
        lambda text: cells.decode_protocol_status(cells._write_avro(cells._status_schemas()[0], status(text))),
    ],
)  # fmt: skip
def test_long_keys_leave_no_memory(function: Callable[[str], object]) -> None:
    import gc
    import tracemalloc

    def once(number: int) -> None:
        function(f"h{number}-" + "x" * 50_000)

    once(0)
    tracemalloc.start()
    try:
        for number in range(1, 21):
            once(number)
        gc.collect()
        size, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert size < 5 * 50_000


def status(text: str) -> dict[str, object]:
    return {"code": 1, "args": [text], "lastModified": 0}


def test_unbounded_caches_have_only_internal_keys() -> None:
    found = set()
    for path in (ROOT / "nutch2py").rglob("*.py"):
        name = str(path.relative_to(ROOT / "nutch2py"))
        if re.search(r"\blru_cache\(", path.read_text(encoding="utf-8")):
            found.add(name)
    assert found == {name.partition(":")[0] for name in OURS}
