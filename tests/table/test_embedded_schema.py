"""Tables written with another schema: compatible ones open and read, others are rejected with the field's name."""

import json
import subprocess
import sys

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import StoreError
from nutch2py.records.webpage import WebPage
from nutch2py.table import TableQuery, open_store
from nutch2py.table.embedded.storage import avro_schema

from .store_suite import page_at, write


def changed(change):
    parsed = json.loads(avro_schema.schema_text("webpage"))
    change({field["name"]: field for field in parsed["fields"]}, parsed["fields"])
    return json.dumps(parsed)


def without_sitemaps(by_name, fields):
    """The schema of Nutch 2.2, which had no sitemaps."""
    fields[:] = [field for field in fields if field["name"] not in ("sitemaps", "stmPriority")]


def with_another_field(by_name, fields):
    fields.append({"name": "later", "type": ["null", "string"], "default": None})


def without_null(by_name, fields):
    by_name["title"]["type"] = "string"
    del by_name["title"]["default"]


@pytest.mark.parametrize("change", [without_sitemaps, with_another_field, without_null])
def test_compatible_schema_opens_and_reads(tmp_path, monkeypatch, change):
    older = changed(change)
    with monkeypatch.context() as patch:
        patch.setattr(avro_schema, "schema_text", lambda name: older)
        store = open_store(Configuration(), WebPage, f"embedded:{tmp_path}")
        store.create()
        write(store, {"a": page_at()})
        store.close()
    newer = open_store(Configuration(), WebPage, f"embedded:{tmp_path}")
    page = newer.get("a")
    assert (page.status, dict(page.sitemaps), page.stm_priority) == (2, {}, 0.0)
    page.stm_priority = 0.5
    write(newer, {"a": page})
    assert next(newer.scan(TableQuery()))[1].stm_priority == 0.5
    newer.close()


@pytest.mark.parametrize(
    ("field", "avro_type"),
    [("score", "double"), ("fetchInterval", "long"), ("status", "string"), ("title", ["null", "bytes"]),
     ("headers", {"type": "map", "values": ["null", "bytes"]}), ("fetchTime", "int")],
)  # fmt: skip
def test_changed_field_type_is_named_in_error(field, avro_type):
    def change(by_name, fields):
        by_name[field]["type"] = avro_type
        del by_name[field]["default"]

    problem = avro_schema.find_incompatibility(avro_schema.schema_text("webpage"), changed(change))
    assert f"field {field}" in problem


def test_incompatible_table_is_rejected(tmp_path, monkeypatch):
    def change(by_name, fields):
        by_name["score"]["type"] = "string"
        del by_name["score"]["default"]

    other = changed(change)
    with monkeypatch.context() as patch:
        patch.setattr(avro_schema, "schema_text", lambda name: other)
        store = open_store(Configuration(), WebPage, f"embedded:{tmp_path}")
        store.create()
        store.close()
    with pytest.raises(StoreError, match=r"another schema of webpage: field score.*exporttable"):
        open_store(Configuration(), WebPage, f"embedded:{tmp_path}").get("a")


def test_missing_field_without_default_is_rejected():
    def change(by_name, fields):
        fields[:] = [field for field in fields if field["name"] != "score"]

    reader = json.loads(avro_schema.schema_text("webpage"))
    for field in reader["fields"]:
        if field["name"] == "score":
            del field["default"]
    assert "score" in avro_schema.find_incompatibility(json.dumps(reader), changed(change))


def test_invalid_schema_is_rejected():
    assert "not readable" in avro_schema.find_incompatibility(
        avro_schema.schema_text("webpage"), '{"type": "nonsense"}'
    )


def test_equal_schemas_do_not_import_avro(tmp_path):
    work = (
        "import sys\n"
        "from nutch2py.conf.configuration import Configuration\n"
        "from nutch2py.table import open_store\n"
        "from nutch2py.records.webpage import WebPage\n"
        "store = open_store(Configuration(), WebPage, 'embedded:' + sys.argv[1])\n"
        "store.create(); store.close(); assert store.get('a') is None\n"
        "print(sorted({'avro', 'fastavro', 'zstandard', 'mrjob'} & sys.modules.keys()))\n"
    )
    done = subprocess.run([sys.executable, "-c", work, str(tmp_path)], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
