"""The bytes of cells, against examples that a real Nutch 2.4 wrote and against the avro package."""

import io
import json
import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nutch2py.conf.configuration import data_dir
from nutch2py.records import cells
from nutch2py.records.cells import CellError, ParseStatus, ProtocolStatus

URL30 = "http://f.interop.test/gone.htm"
INT, LONG = st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1)
TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=40)


@pytest.mark.parametrize(
    ("status", "wanted"),
    [
        (ProtocolStatus(1), "020000"),
        (ProtocolStatus(18), "240000"),
        (ProtocolStatus(14, (URL30,)), "1c023c" + URL30.encode().hex() + "0000"),
        (
            ProtocolStatus(12, ("http://x/é", ""), 1600000000000),
            "180416687474703a2f2f782fc3a900008080f4f6905d",
        ),
    ],
)
def test_protocol_status_matches_nutch_bytes(status, wanted):
    assert cells.encode_protocol_status(status).hex() == wanted
    assert cells.decode_protocol_status(bytes.fromhex(wanted)) == status


@pytest.mark.parametrize(
    ("status", "wanted"),
    [
        (ParseStatus(1), "020000"),
        (ParseStatus(1, 100, (URL30, "0")), "02c801043c" + URL30.encode().hex() + "023000"),
        (ParseStatus(2, 200, ("boom",)), "0490030208626f6f6d00"),
    ],
)
def test_parse_status_matches_nutch_bytes(status, wanted):
    assert cells.encode_parse_status(status).hex() == wanted
    assert cells.decode_parse_status(bytes.fromhex(wanted)) == status


@pytest.mark.parametrize(
    "array",
    [
        "020261" + "020262" + "00",  # two blocks of one
        "03080261" + "0262" + "00",  # a block of -2: its size in bytes comes first
        "04" + "0261" + "0262" + "00",
    ],
)
def test_array_in_several_blocks_is_decoded(array):
    assert cells.decode_protocol_status(bytes.fromhex("02" + array + "00")).args == ("a", "b")


def test_truncated_array_raises_cell_error():
    with pytest.raises(CellError):
        cells.decode_protocol_status(bytes.fromhex("020a026100"))


def test_numbers_are_encoded_big_endian():
    assert cells.encode_int(2592000).hex() == "00278d00"
    assert cells.encode_int(-1).hex() == "ffffffff"
    assert cells.encode_long(1600000000000).hex() == "00000174876e8000"
    assert cells.encode_float(1.0).hex() == "3f800000"
    assert cells.encode_float(1e300) == struct.pack(">f", math.inf)
    assert cells.encode_float(-1e300) == struct.pack(">f", -math.inf)


def test_float32_rounding_matches_java():
    assert cells.float32(0.1) == struct.unpack(">f", b"\x3d\xcc\xcc\xcd")[0]
    assert math.isnan(cells.float32(math.nan))


@pytest.mark.parametrize(
    ("decode", "short"),
    [(cells.decode_int, b"\0\0\1"), (cells.decode_long, b"\0" * 7), (cells.decode_float, b""),
     (cells.decode_protocol_status, b""), (cells.decode_parse_status, b"\2\2\2\6ab")],
)  # fmt: skip
def test_short_cell_raises_cell_error(decode, short):
    with pytest.raises(CellError):
        decode(short)


def test_bytes_beyond_width_are_ignored():
    assert cells.decode_int(b"\0\0\0\7rest") == 7
    assert cells.decode_long(b"\0\0\0\0\0\0\0\7rest") == 7
    assert cells.decode_float(b"\x3f\x80\0\0rest") == 1.0


def test_text_cell_round_trips():
    assert cells.encode_text("中é") == "中é".encode()
    assert cells.encode_text("a\ud800b") == b"a?b"
    assert cells.decode_text(b"a\xffb") == "a\ufffdb"


@given(INT, LONG, st.floats(width=32, allow_nan=False), TEXT)
def test_scalar_cells_round_trip(number, long, real, text):
    assert cells.decode_int(cells.encode_int(number)) == number
    assert cells.decode_long(cells.encode_long(long)) == long
    assert cells.decode_float(cells.encode_float(real)) == real
    assert cells.decode_text(cells.encode_text(text)) == text


@given(INT, st.lists(TEXT, max_size=4), LONG)
def test_protocol_status_encoding_matches_avro(code, args, last_modified):
    status = ProtocolStatus(code, tuple(args), last_modified)
    cell = cells.encode_protocol_status(status)
    assert cell == written_by_avro("protocolStatus", {"code": code, "args": args, "lastModified": last_modified})
    assert cells.decode_protocol_status(cell) == status


@given(INT, INT, st.lists(TEXT, max_size=4))
def test_parse_status_encoding_matches_avro(major, minor, args):
    status = ParseStatus(major, minor, tuple(args))
    cell = cells.encode_parse_status(status)
    assert cell == written_by_avro("parseStatus", {"majorCode": major, "minorCode": minor, "args": args})
    assert cells.decode_parse_status(cell) == status


@given(st.binary(max_size=24))
def test_arbitrary_bytes_decode_or_raise_cell_error(cell):
    try:
        status = cells.decode_protocol_status(cell)
    except CellError:
        return
    assert isinstance(status, ProtocolStatus)


def written_by_avro(field_name, record):
    import avro.io
    import avro.schema

    fields = json.loads((data_dir("schema") / "webpage.avsc").read_text(encoding="utf-8"))["fields"]
    (field,) = [f for f in fields if f["name"] == field_name]
    (schema,) = [t for t in field["type"] if t != "null"]
    out = io.BytesIO()
    avro.io.DatumWriter(avro.schema.parse(json.dumps(schema))).write(record, avro.io.BinaryEncoder(out))
    return out.getvalue()
