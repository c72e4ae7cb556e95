import pytest
from hypothesis import given
from hypothesis import strategies as st

from nutch2py.mapreduce.mrjob_protocols import (
    KeyValueProtocol,
    SortedBytesProtocol,
    SortedTextProtocol,
    StreamedTextProtocol,
    decode_sorted_text,
    descending_sort_key,
    encode_sorted_lines,
    escape_key,
    partition_key,
    partition_of_key,
    unescape_key,
    unescape_streamed_text,
)

ANY_TEXT = st.text(st.characters(exclude_categories=("Cs",)) | st.sampled_from("\\\t\n\r\udc80\udcff"))
"""Characters that bytes can decode to: invalid UTF-8 gives lone surrogates of that range, others do not occur."""


@given(ANY_TEXT)
def test_escaped_keys_round_trip(key: str) -> None:
    escaped = escape_key(key)
    assert not set(escaped) & set("\t\n\r")
    assert unescape_key(escaped) == key


@given(ANY_TEXT, st.recursive(st.none() | st.integers(-(2**53), 2**53) | st.text(), st.lists))
def test_pair_is_one_line(key: str, value: object) -> None:
    line = KeyValueProtocol().write(key, value)
    assert b"\n" not in line
    assert b"\r" not in line
    assert KeyValueProtocol().read(line) == (key, value)


@given(ANY_TEXT, ANY_TEXT)
def test_sorted_text_round_trips_with_hadoop_tab(key: str, value: str) -> None:
    line = SortedTextProtocol().write(key, value)
    assert not set(line) & {10, 13}
    assert SortedTextProtocol().read(line) == (key, value)
    assert SortedTextProtocol().read(line + b"\t") == (key, value)


@given(st.lists(st.tuples(ANY_TEXT, ANY_TEXT), min_size=1), ANY_TEXT, ANY_TEXT)
def test_many_lines_equal_single_lines(pairs: list[tuple[str, str]], before: str, after: str) -> None:
    keys, values = zip(*pairs, strict=True)
    protocol = SortedBytesProtocol()
    lines = [protocol.write(key, f"{before}{value}{after}") for key, value in pairs]
    assert lines == [SortedTextProtocol().write(key, f"{before}{value}{after}") for key, value in pairs]
    together = encode_sorted_lines(keys, values, before, after)
    assert protocol.write("", together) == together == b"\n".join(lines)
    for (key, value), line in zip(pairs, lines, strict=True):
        found, _, rest = protocol.read(line)
        assert (decode_sorted_text(found), decode_sorted_text(rest)) == (key, f"{before}{value}{after}")


@given(st.lists(st.binary() | st.sampled_from([b"\r", b"\x1b", b"\x1br", b"\x1b[", b"r", b"["])).map(b"".join))
def test_streamed_text_without_carriage_return_round_trips(text: bytes) -> None:
    line = StreamedTextProtocol().write(None, text)
    assert b"\r" not in line
    assert line.count(b"\n") == text.count(b"\n")
    assert b"".join(map(unescape_streamed_text, line.splitlines(keepends=True))) == text
    assert StreamedTextProtocol().read(line) == (None, text)


def test_protocol_decodes_changing_and_repeated_keys() -> None:
    protocol = KeyValueProtocol()
    lines = [protocol.write(key, number) for number, key in enumerate(["a\tb", "a\tb", "c", "", "a\tb"])]
    assert [protocol.read(line) for line in lines] == [("a\tb", 0), ("a\tb", 1), ("c", 2), ("", 3), ("a\tb", 4)]


@given(st.lists(st.floats(allow_nan=False, allow_infinity=True), min_size=2))
def test_scores_sort_descending(scores: list[float]) -> None:
    by_text = sorted(scores, key=descending_sort_key)
    assert by_text == sorted(scores, reverse=True)
    assert all(len(descending_sort_key(score)) == 16 for score in scores)


def test_nan_sorts_last() -> None:
    assert sorted([float("nan"), float("-inf"), 1.0], key=descending_sort_key)[:2] == [1.0, float("-inf")]


def hadoop_partition(key: str, tasks: int) -> int:
    """Do what Hadoop 3.4.2's KeyFieldBasedPartitioner does with ``-k1,1``."""
    value = 0
    for byte in key.encode():
        value = (31 * value + byte + 2**31) % 2**32 - 2**31
    return (value & 0x7FFFFFFF) % tasks


@pytest.mark.parametrize("tasks", [1, 2, 7, 12, 31, 62, 100, 400])
def test_each_partition_has_own_reduce_task_on_hadoop(tasks: int) -> None:
    keys = [partition_key(number, tasks) for number in range(tasks)]
    assert [hadoop_partition(key, tasks) for key in keys] == list(range(tasks))
    assert keys == sorted(keys)
    assert [int(partition_of_key(key)) for key in keys] == list(range(tasks))
    assert [escape_key(key) for key in keys] == keys


def test_unprefixed_numbers_collide_in_reduce_tasks() -> None:
    """As the class itself said, run alone: of 12 tasks 10 had work, of 100 79, of 400 334."""
    used = [len({hadoop_partition(f"{number:05d}", tasks) for number in range(tasks)}) for tasks in (12, 100, 400)]
    assert used == [10, 79, 334]
