from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nutch2py.errors import InputError
from nutch2py.mapreduce import input_splits
from nutch2py.mapreduce.input_splits import (
    BatchListSplit,
    DerivedTableSplit,
    FileSplit,
    RangeSplit,
    Split,
    count_lines_before,
    decode_split,
    embed_contents,
    encode_split,
    read_split_lines,
    split_files,
)
from nutch2py.table import KeyRange


@pytest.mark.parametrize(
    "split",
    [
        RangeSplit(KeyRange("a\n\t", None)),
        BatchListSplit(KeyRange(None, "é")),
        DerivedTableSplit(KeyRange("u/", "u0")),
        FileSplit("/seeds one.txt", 3, 99, 7),
        FileSplit("/seeds", 0, 4, 0, b"\xff\x00\r\n"),
    ],
)
def test_split_line_round_trips(split: Split) -> None:
    line = encode_split(split)
    assert b"\n" not in line
    assert b"\t" not in line
    assert decode_split(line) == split


@settings(max_examples=60)
@given(
    content=st.binary(max_size=200) | st.text("ab\n\r", max_size=60).map(str.encode), cuts=st.sets(st.integers(0, 200))
)
def test_every_line_is_in_exactly_one_piece(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, cuts: set[int]
) -> None:
    path = tmp_path_factory.mktemp("lines") / "file"
    path.write_bytes(content)
    edges = sorted({0, len(content)} | {cut for cut in cuts if cut < len(content)})
    pieces = [FileSplit(str(path), start, stop, 0) for start, stop in pairwise(edges)]
    assert b"".join(line for piece in pieces for line in read_split_lines(piece)) == content
    assert [line for piece in pieces for line in read_split_lines(piece)] == content.splitlines(
        keepends=True
    ) or b"\r" in content


def test_line_starting_at_boundary_belongs_to_next_piece(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"one\ntwo\nthree\n")
    assert list(read_split_lines(FileSplit(str(path), 0, 4, 0))) == [b"one\n"]
    assert list(read_split_lines(FileSplit(str(path), 4, 14, 1))) == [b"two\n", b"three\n"]
    assert list(read_split_lines(FileSplit(str(path), 5, 14, 1))) == [b"three\n"]


def test_content_split_replaces_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"one\ntwo\nthr\xff\xeeee")
    (split,) = embed_contents([FileSplit(str(path), 2, 15, 4)])
    path.unlink()
    assert list(read_split_lines(decode_split(encode_split(split)))) == [b"two\n", b"thr\xff\xeeee"]  # type: ignore[arg-type]


def test_lines_before_piece_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is not read again for each piece, which would cost the square of its length."""
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(b"".join(b"x" * (number % 13) + b"\n" for number in range(200)) + b"the end")
    pieces = [
        FileSplit(str(tmp_path / name), start, min(start + 100, size), 0)
        for name in ("a", "b")
        for size in ((tmp_path / name).stat().st_size,)
        for start in range(0, size, 100)
    ]
    expected = [count_lines_before(piece) for piece in pieces]
    counted: list[FileSplit] = []
    monkeypatch.setattr(
        input_splits, "count_lines_before", lambda piece: counted.append(piece) or count_lines_before(piece)
    )
    found = [*embed_contents(pieces)]
    assert [piece.lines_before for piece in found if isinstance(piece, FileSplit)] == expected
    assert [piece.start for piece in counted] == [0, 0]


def test_files_are_cut_into_requested_pieces_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(input_splits, "MIN_SPLIT_BYTES", 10)
    for name, size in (("a", 100), ("b", 1), ("empty", 0)):
        (tmp_path / name).write_bytes(b"x" * size)
    pieces = split_files([tmp_path / "a", tmp_path / "b", tmp_path / "empty"], 4)
    assert [piece.order for piece in pieces] == list(range(len(pieces)))
    assert [Path(piece.path).name for piece in pieces] == ["a"] * 4 + ["b", "empty"]
    assert [(piece.start, piece.stop) for piece in pieces[:4]] == [(0, 26), (26, 52), (52, 78), (78, 100)]


def test_huge_file_is_cut_despite_few_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(input_splits, "MAX_SPLIT_BYTES", 30)
    (tmp_path / "a").write_bytes(b"x" * 100)
    assert len(split_files([tmp_path / "a"], 1)) == 4


def test_missing_file_is_named_in_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot read .*nowhere"):
        split_files([tmp_path / "nowhere"], 2)
