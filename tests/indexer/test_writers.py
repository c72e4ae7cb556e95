import json
import multiprocessing
import signal
from pathlib import Path

import pytest

from nutch2py.backends.index_lock import exclusive_lock
from nutch2py.conf.configuration import Configuration, data_dir
from nutch2py.errors import ConfigurationError, IndexingError, LockedError
from nutch2py.indexer.field_mapping import FieldMapping
from nutch2py.indexer.index_writers import IndexWriters
from nutch2py.indexer.writers.append_file import AppendFile
from nutch2py.indexer.writers.csv_writer import CSVIndexWriter
from nutch2py.indexer.writers.dummy_writer import DummyIndexWriter
from nutch2py.indexer.writers.jsonl_writer import JSONLinesIndexWriter
from nutch2py.records.document import NutchDocument
from tests.counted_kills import strike
from tests.indexer.pages import doc

SPAWN = multiprocessing.get_context("spawn")


def written_csv(tmp_path, documents, **parameters):
    conf = Configuration({})
    writer = CSVIndexWriter(conf)
    writer.open(conf, {"outpath": str(tmp_path), **parameters})
    for fields in documents:
        document = NutchDocument()
        for name, value in fields:
            document.add(name, value)
        writer.write(document)
    writer.close()
    return (tmp_path / "nutch.csv").read_bytes()


def test_csv_cases(cases, tmp_path):
    passed = 0
    listed = cases("indexer_csv")
    for number, case in enumerate(listed):
        folder = tmp_path / str(number)
        parameters = case["args"]["params"]
        output = written_csv(folder, case["input"], header="false", **parameters)
        assert output.decode(parameters.get("charset", "UTF-8")).strip() == case["expect"]
        passed += 1
    print(f"indexer_csv: {passed}/{len(listed)}")
    assert passed == len(listed) > 0


def test_csv_has_one_header_and_limited_values(tmp_path):
    written_csv(tmp_path, [[("id", "1"), ("title", "a"), ("title", "b"), ("title", "c")]], maxfieldvalues="2")
    assert written_csv(tmp_path, [[("id", "2")]]) == b'id,title,content\r\n1,"a|b",\r\n2,,\r\n'


def test_csv_parameters_are_read_from_properties(tmp_path):
    conf = Configuration({"indexer-csv.fields": "id", "indexer-csv.outpath": str(tmp_path)})
    writer = CSVIndexWriter(conf)
    writer.prepare(conf, {}, False)
    writer.open(conf, {})
    writer.write(doc("1", title="x"))
    writer.delete("1")
    writer.commit()
    assert (tmp_path / "nutch.csv").read_bytes() == b"id\r\n1\r\n"
    assert "fields : id\n" in writer.describe()


@pytest.mark.parametrize(("reindex", "rows"), [(False, b"1,,\r\n2,,\r\n"), (True, b"2,,\r\n")])
def test_csv_is_appended_by_jobs_and_replaced_by_reindex(tmp_path, reindex, rows):
    written_csv(tmp_path, [[("id", "1")]])
    conf = Configuration({})
    CSVIndexWriter(conf).prepare(conf, {"outpath": str(tmp_path)}, reindex)
    assert written_csv(tmp_path, [[("id", "2")]]) == b"id,title,content\r\n" + rows


@pytest.mark.parametrize("parameters", [{"charset": "klingon"}, {"maxfieldlength": "many"}, {"header": "perhaps"}])
def test_invalid_csv_parameters_are_named(tmp_path, parameters):
    with pytest.raises(ConfigurationError, match=next(iter(parameters))):
        written_csv(tmp_path, [], **parameters)


def test_jsonl_logs_documents_and_deletes(tmp_path):
    conf = Configuration({"indexer-jsonl.path": str(tmp_path / "sub" / "out.jsonl")})
    writer = JSONLinesIndexWriter(conf)
    writer.open(conf, {})
    writer.write(doc("1", anchor=["a", "b"], title="北京"))
    writer.delete("0")
    writer.update(doc("1"))
    writer.close()
    lines = (tmp_path / "sub" / "out.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line) for line in lines] == [
        {"id": "1", "anchor": ["a", "b"], "title": "北京"},
        {"delete": "0"},
        {"id": "1"},
    ]


def test_jsonl_is_appended_by_jobs_and_replaced_by_reindex(tmp_path):
    path = tmp_path / "out.jsonl"
    conf = Configuration({"indexer-jsonl.path": str(path)})
    for reindex, lines in [(False, 1), (False, 2), (True, 1)]:
        writer = JSONLinesIndexWriter(conf)
        writer.prepare(conf, {}, reindex)
        writer.open(conf, {})
        writer.write(doc("1"))
        writer.close()
        assert len(path.read_bytes().splitlines()) == lines


def test_dummy_writes_received_actions(tmp_path):
    path = tmp_path / "dummy.txt"
    conf = Configuration({})
    writer = DummyIndexWriter(conf)
    writer.open(conf, {"path": str(path), "delete": "true"})
    writer.write(doc("1"))
    writer.update(doc("2"))
    writer.delete("3")
    writer.commit()
    writer.close()
    assert path.read_text() == "add\t1\nupdate\t2\ndelete\t3\ncommit\n"


def test_partial_record_of_killed_writer_is_truncated(tmp_path):
    file = AppendFile(tmp_path / "out", 1)
    file.append(b"one\n", b"head\n")
    with (tmp_path / "out").open("ab") as killed:
        killed.write(b"hal")
    file.append(b"two\n", b"head\n")
    assert (tmp_path / "out").read_bytes() == b"head\none\ntwo\n"


def test_existing_foreign_file_is_kept(tmp_path):
    (tmp_path / "out").write_bytes(b"old\n")
    AppendFile(tmp_path / "out", 1).append(b"new\n", b"head\n")
    assert (tmp_path / "out").read_bytes() == b"old\nnew\n"


def append_lines(path, name, count):
    file = AppendFile(path, 60)
    for number in range(count):
        file.append(f"{name} {number}\n".encode() * 50, b"head\n")


def test_several_processes_append_whole_batches(tmp_path):
    path = tmp_path / "out"
    processes = [SPAWN.Process(target=append_lines, args=(path, name, 20)) for name in "abc"]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0
    lines = path.read_text().splitlines()
    assert lines[0] == "head"
    assert sorted(set(lines[1:])) == sorted(f"{name} {n}" for name in "abc" for n in range(20))
    assert [lines[i : i + 50] for i in range(1, len(lines), 50)] == [[lines[i]] * 50 for i in range(1, len(lines), 50)]


def hold(path, ready):
    with exclusive_lock(path, 1, "the file"):
        ready.send(True)
        signal.pause()


def test_file_lock_times_out_and_ends_with_holder(tmp_path):
    path = tmp_path / "lock"
    ours, theirs = SPAWN.Pipe()
    holder = SPAWN.Process(target=hold, args=(path, theirs))
    holder.start()
    assert ours.recv()
    with (
        pytest.raises(LockedError, match=r"the file has been locked .* raise index\.lock\.timeout"),
        exclusive_lock(path, 0.05, "the file"),
    ):
        pass
    assert strike(holder)
    with exclusive_lock(path, 5, "the file"):
        pass


def test_unwritable_folder_is_named_in_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(IndexingError, match="cannot write"):
        AppendFile(tmp_path / "file" / "out", 1).append(b"x")


def test_mapping_copies_then_renames_then_removes():
    mapping = FieldMapping({"title": ["title", "search"]}, {"search": "all"}, frozenset({"boost"}))
    given = doc("1", title=["a", "b"], boost="1.0")
    assert mapping.apply(given).fields == {"id": ["1"], "title": ["a", "b"], "all": ["a", "b"]}
    assert given.values("boost") == ["1.0"]


def test_solr_mapping_of_nutch_2_is_read():
    from xml.etree import ElementTree as ET

    root = ET.fromstring(
        '<mapping><fields><field dest="body" source="content"/><field dest="title" source="title"/>'
        '<copyField source="url" dest="text"/></fields><uniqueKey>url</uniqueKey></mapping>'
    )
    mapping, key = FieldMapping.from_solr_mapping_xml(root)
    assert (dict(mapping.rename), dict(mapping.copy), key) == ({"content": "body"}, {"url": ["text"]}, "url")


INDEX_WRITERS = """<?xml version="1.0" encoding="UTF-8"?>
<writers xmlns="http://lucene.apache.org/nutch">
  <writer id="first" class="org.apache.nutch.indexwriter.dummy.DummyIndexWriter">
    <parameters><param name="path" value="{folder}/first.txt"/></parameters>
    <mapping><copy/><rename/><remove/></mapping>
  </writer>
  <writer id="csv_1" class="org.apache.nutch.indexwriter.csv.CSVIndexWriter">
    <parameters><param name="outpath" value="{folder}"/><param name="fields" value="id,name"/></parameters>
    <mapping>
      <copy/><rename><field source="title" dest="name"/></rename><remove><field source="segment"/></remove>
    </mapping>
  </writer>
  <writer id="unused" class="org.apache.nutch.indexwriter.rabbit.RabbitIndexWriter"/>
</writers>"""


@pytest.fixture
def two_writers(tmp_path, conf):
    (tmp_path / "index-writers.xml").write_text(INDEX_WRITERS.format(folder=tmp_path), encoding="utf-8")
    conf.conf_dirs.insert(0, tmp_path)
    conf.set("plugin.includes", "indexer-(dummy|csv)")
    return conf


def test_writers_of_index_writers_xml_run_together(two_writers, tmp_path):
    writers = IndexWriters(two_writers)
    assert writers.writer_ids == ["first", "csv_1"]
    writers.prepare()
    with writers:
        writers.write(doc("1", title="t"))
        writers.delete("0")
        writers.commit()
    assert (tmp_path / "nutch.csv").read_bytes() == b"id,name\r\n1,t\r\n"
    assert (tmp_path / "first.txt").read_text() == "add\t1\ncommit\n"


def test_enabled_writer_missing_in_file_runs(two_writers):
    two_writers.set("plugin.includes", "indexer-(dummy|csv|jsonl)")
    assert IndexWriters(two_writers).writer_ids == ["first", "csv_1", "indexer-jsonl"]


def test_without_file_every_enabled_writer_runs(conf):
    conf.set("plugin.includes", "indexer-(dummy|embedded)")
    assert IndexWriters(conf).writer_ids == ["indexer-dummy", "indexer-embedded"]
    path = Path.cwd() / "dummy-index.txt"
    assert IndexWriters(conf).describe().startswith(f"Active IndexWriters :\nDummyIndexWriter\n\tpath : {path}\n")


SOLR, ELASTIC = "http://127.0.0.1:9/solr/nutch", "127.0.0.1:9"


@pytest.mark.parametrize(
    ("settings", "names"),
    [
        ({}, ["indexer-embedded"]),
        ({"solr.server.url": SOLR}, ["indexer-solr"]),
        ({"elastic.host": ELASTIC}, ["indexer-elastic"]),
        ({"elastic.host": ELASTIC, "solr.server.url": SOLR}, ["indexer-elastic", "indexer-solr"]),
        ({"elastic.host": ELASTIC, "plugin.excludes": "indexer-elastic"}, []),
        ({"solr.server.url": SOLR, "plugin.includes": "index-basic|indexer-embedded"}, ["indexer-embedded"]),
        ({"solr.server.url": SOLR, "plugin.includes": "indexer-(csv|solr)"}, ["indexer-csv", "indexer-solr"]),
        ({"solr.server.url": SOLR, "plugin.includes": "protocol-http|index-basic"}, ["indexer-solr"]),
    ],
)
def test_plugin_includes_then_addresses_then_embedded_select_writer(conf, settings, names):
    for name, value in settings.items():
        conf.set(name, value)
    assert sorted(IndexWriters(conf).writer_ids) == names


def test_index_writers_xml_configures_and_does_not_select(tmp_path, conf):
    (tmp_path / "index-writers.xml").write_text(INDEX_WRITERS.format(folder=tmp_path), encoding="utf-8")
    conf.conf_dirs.insert(0, tmp_path)
    assert IndexWriters(conf).writer_ids == ["indexer-embedded"]
    conf.set("solr.server.url", SOLR)
    assert IndexWriters(conf).writer_ids == ["indexer-solr"]


def test_unused_address_logs_warning(tmp_path, conf, capsys):
    conf.set("indexer-jsonl.path", str(tmp_path / "out.jsonl"))
    conf.set("plugin.includes", "indexer-jsonl")
    conf.set("elastic.host", ELASTIC)
    IndexWriters(conf).prepare()
    assert "elastic.host is set, but plugin.includes names indexer-jsonl: nothing is sent" in capsys.readouterr().err
    conf.set("plugin.excludes", "indexer-elastic")
    IndexWriters(conf).prepare()
    assert capsys.readouterr().err == ""


def test_no_writer_is_reported(conf):
    conf.set("plugin.excludes", "indexer-embedded")
    assert IndexWriters(conf).describe() == "No IndexWriters activated - check your configuration\n"


def test_broken_index_writers_xml_is_named_in_error(tmp_path, conf):
    (tmp_path / "index-writers.xml").write_text("<writers>")
    conf.conf_dirs.insert(0, tmp_path)
    with pytest.raises(ConfigurationError, match=r"cannot read index-writers\.xml"):
        IndexWriters(conf)


def test_every_writer_is_closed_when_one_fails(two_writers, tmp_path):
    writers = IndexWriters(two_writers)
    writers.open()
    writers.write(doc("1", title="t"))
    (tmp_path / "first.txt").mkdir()
    with pytest.raises(IndexingError, match="cannot write"):
        writers.close()
    assert (tmp_path / "nutch.csv").read_bytes() == b"id,name\r\n1,t\r\n"


def test_shipped_template_names_every_writer(tmp_path, conf):
    template = (data_dir("conf") / "index-writers.xml.template").read_text(encoding="utf-8")
    (tmp_path / "index-writers.xml").write_text(template, encoding="utf-8")
    conf.conf_dirs.insert(0, tmp_path)
    conf.set("plugin.includes", "indexer-.*")
    names = ("embedded", "solr", "elastic", "csv", "jsonl", "dummy")
    assert IndexWriters(conf).writer_ids == [f"indexer_{name}_1" for name in names]
