"""The record classes hold what schema/*.avsc and schema/gora-hbase-mapping.xml say."""

import json
from xml.etree import ElementTree as ET

import pytest

from nutch2py.conf.configuration import data_dir
from nutch2py.records import cells
from nutch2py.records.webpage import CrawlStatus, DerivedRow, Host, Mark, ParseStatusCode, ProtocolStatusCode, WebPage

CODECS = {
    "int": (cells.encode_int, cells.decode_int),
    "long": (cells.encode_long, cells.decode_long),
    "float": (cells.encode_float, cells.decode_float),
    "string": (cells.encode_text, cells.decode_text),
    "bytes": (cells.identity, cells.identity),
    "ProtocolStatus": (cells.encode_protocol_status, cells.decode_protocol_status),
    "ParseStatus": (cells.encode_parse_status, cells.decode_parse_status),
}


def without_null(avro_type):
    if isinstance(avro_type, list):
        (avro_type,) = [branch for branch in avro_type if branch != "null"]
    return avro_type


def type_name(avro_type):
    avro_type = without_null(avro_type)
    return avro_type if isinstance(avro_type, str) else avro_type["name"]


@pytest.mark.parametrize("record", [WebPage, Host, DerivedRow])
def test_fields_match_avro_schema(record):
    schema = json.loads((data_dir("schema") / f"{record.SCHEMA}.avsc").read_text(encoding="utf-8"))
    assert schema["name"] == {DerivedRow: "BatchEntry"}.get(record, record.__name__)
    assert list(record.FIELDS) == [field["name"] for field in schema["fields"]]
    for field in schema["fields"]:
        ours, avro_type = record.FIELDS[field["name"]], without_null(field["type"])
        is_map = isinstance(avro_type, dict) and avro_type["type"] == "map"
        assert ours.is_map is is_map
        assert (ours.encode, ours.decode) == CODECS[type_name(avro_type["values"] if is_map else avro_type)]
        assert (ours.default if not is_map else {}) == field["default"]


@pytest.mark.parametrize("record", [WebPage, Host])
def test_columns_match_gora_mapping(record):
    root = ET.parse(data_dir("schema") / "gora-hbase-mapping.xml").getroot()
    (mapped,) = [c for c in root.iter("class") if c.get("name") == f"org.apache.nutch.storage.{record.__name__}"]
    columns = {f.get("name"): (f.get("family").encode(), (f.get("qualifier") or "").encode()) for f in mapped}
    assert columns == {name: (field.family, field.qualifier) for name, field in record.FIELDS.items()}
    (table,) = [t for t in root.iter("table") if t.get("name") == mapped.get("table")]
    assert {f.get("name").encode() for f in table} == {field.family for field in record.FIELDS.values()}


def test_every_field_has_an_attribute():
    for record in (WebPage, Host, DerivedRow):
        assert all(getattr(record, field.attribute) is field for field in record.FIELDS.values())


def test_status_codes_and_labels_match_nutch():
    assert {s.label: int(s) for s in CrawlStatus} == {
        "status_unfetched": 1, "status_fetched": 2, "status_gone": 3, "status_redir_temp": 4, "status_redir_perm": 5,
        "status_retry": 0x22, "status_notmodified": 0x26,
    }  # fmt: skip
    assert [int(c) for c in ProtocolStatusCode] == [1, 2, *range(10, 24)]
    assert ParseStatusCode.REDIRECT == 100
    assert ParseStatusCode.TRUNCATED == 202


def test_marks_match_nutch_names():
    assert [str(mark) for mark in Mark] == [
        "_injmrk_", "_gnmrk_", "_ftcmrk_", "__prsmrk__", "_updmrk_", "_idxmrk_", "dist",
    ]  # fmt: skip
