"""The parts of the HBase store that need no server: addresses, properties, columns, conditions."""

from types import SimpleNamespace

import pytest
from thriftpy2.protocol import TBinaryProtocol
from thriftpy2.thrift import TClient
from thriftpy2.transport import TMemoryBuffer, TTransportException

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError, StoreError
from nutch2py.records.webpage import DerivedRow, Host, WebPage
from nutch2py.table import MarkCondition, TableQuery, open_store
from nutch2py.table.hbase.column_selection import ColumnSelection
from nutch2py.table.hbase.gora_mapping import column_mapping
from nutch2py.table.hbase.hbase_admin import await_enabled, create_table, new_table_families
from nutch2py.table.hbase.thrift_client import hbase_errors
from nutch2py.table.hbase.thrift_client.hbase_errors import (
    ErrorCondition,
    error_conditions,
    is_permanent,
    to_store_error,
)
from nutch2py.table.hbase.thrift_client.hbase_scan import RowBudget
from nutch2py.table.hbase.thrift_client.hbase_settings import GatewayAddress, HBaseLocation, HBaseSettings
from nutch2py.table.hbase.thrift_client.thrift_types import AlreadyExists, Hbase, HBaseError, IllegalArgument
from nutch2py.table.hbase.thrift_client.wire import batch_mutations, binary_message
from tests.table.hbase_classes import JARS, LIST, of_jars, simple

EVERY = frozenset([b"f", b"h", b"il", b"mk", b"mtdt", b"ol", b"p", b"s", b"stm"])
NUTCH = column_mapping(Configuration(), WebPage)


@pytest.mark.parametrize(
    ("text", "gateways", "namespace"),
    [
        ("hbase://h", [("h", 9090)], ""),
        ("hbase://h:1,10.0.0.2:2", [("h", 1), ("10.0.0.2", 2)], ""),
        ("hbase://h:1/crawl", [("h", 1)], "crawl"),
        ("hbase:h:1", [("h", 1)], ""),
        ("hbase://[::1]:7/x_1", [("::1", 7)], "x_1"),
    ],
)
def test_location_is_parsed(text, gateways, namespace):
    location = HBaseLocation.parse(text)
    assert (list(location.gateways), location.namespace) == (gateways, namespace)


@pytest.mark.parametrize(
    "text", ["hbase://", "hbase://h:x", "hbase://h:0", "hbase://h:65536", "hbase://h/a-b", "hbase://a b"]
)
def test_malformed_location_is_rejected(text):
    with pytest.raises(ConfigurationError, match=r"storage\.data\.store"):
        HBaseLocation.parse(text)


def test_table_name_in_namespace_is_built():
    assert HBaseLocation.parse("hbase://h/crawl").full_name("webpage") == "crawl:webpage"
    assert HBaseLocation.parse("hbase://h/default").full_name("webpage") == "webpage"
    assert str(GatewayAddress("::1", 7)) == "[::1]:7"


@pytest.mark.parametrize("name", ["a/b", "-x", "", "a:b", "é"])
def test_table_name_invalid_in_hbase_is_rejected(name):
    with pytest.raises(ConfigurationError, match=r"storage\.crawl\.id"):
        open_store(Configuration({"storage.crawl.id": ""}), WebPage, "hbase://h", name or " ")


def test_settings_are_read_from_properties():
    conf = Configuration({
        "hbase.thrift.transport": "FRAMED", "hbase.thrift.protocol": "compact", "hbase.thrift.timeout": "5000",
        "service.wait.seconds": "250", "hbase.compression": "gz", "gora.buffer.read.limit": "10",
        "hbase.thrift2.gateways": "a:1, b", "hbase.create.splits": "com.a,com.b",
    })  # fmt: skip
    found = HBaseSettings.from_conf(conf)
    assert (found.transport, found.protocol, found.timeout, found.max_wait) == ("framed", "compact", 5.0, 250.0)
    assert (found.compression, found.scan_rows, found.split_keys) == ("GZ", 10, ("com.a", "com.b"))
    assert found.thrift2_gateways == (("a", 1), ("b", 9095))
    assert found.write_bytes < 2 << 20  # what a gateway takes in a frame
    assert HBaseSettings.from_conf(Configuration()) == HBaseSettings()


@pytest.mark.parametrize("name", ["hbase.thrift.transport", "hbase.thrift.protocol", "hbase.thrift2.gateways"])
def test_malformed_setting_is_named_in_error(name):
    with pytest.raises(ConfigurationError, match=name):
        HBaseSettings.from_conf(Configuration({name: "a b"}))


def cell(value):
    return SimpleNamespace(value=value)


def test_only_named_columns_are_requested():
    asked = ColumnSelection(
        [WebPage.status, WebPage.title, WebPage.markers, WebPage.fetch_time], NUTCH, EVERY
    ).requested_columns
    assert sorted(asked) == [b"f:st", b"f:ts", b"mk", b"p:t"]
    assert ColumnSelection(None, NUTCH, EVERY).requested_columns is None
    assert ColumnSelection([], NUTCH, EVERY).requested_columns == []


def test_missing_family_is_not_requested():
    old = EVERY - {b"stm"}
    assert ColumnSelection([WebPage.sitemaps, WebPage.status], NUTCH, old).requested_columns == [b"f:st"]
    assert ColumnSelection([WebPage.sitemaps], NUTCH, old).requested_columns == []
    assert ColumnSelection([WebPage.status], NUTCH, EVERY - {b"mk"}, MarkCondition("x")).requested_columns == []


def test_condition_column_is_read_and_not_returned():
    chosen = ColumnSelection([WebPage.status], NUTCH, EVERY, MarkCondition("_gnmrk_", "it's"))
    assert chosen.requested_columns == [b"f:st", b"mk:_gnmrk_"]
    assert chosen.filter_string == b"SingleColumnValueFilter('mk','_gnmrk_',=,'binary:it''s',true,true)"
    row = {b"f:st": cell(b"\0\0\0\2"), b"mk:_gnmrk_": cell(b"it's")}
    assert WebPage(None, frozenset([WebPage.status]), chosen, row).cells == {b"f": {b"st": b"\0\0\0\2"}}
    assert chosen.has_cell(row)
    assert not chosen.has_cell({b"mk:_gnmrk_": cell(b"it's")})


def test_response_size_is_adapted():
    budget = RowBudget(1000, 1_000_000)
    asked = []
    for row_bytes in (100, 100, 100, 100, 50_000, 2_000_000):
        asked.append(budget.rows)
        budget.adjust(budget.rows, budget.rows * row_bytes)
    assert asked == [16, 128, 1000, 1000, 1000, 20]
    assert budget.rows == 1
    assert budget.copy().rows == 1


ROWS = {
    b"a": {b"f:st": b"\0\0\0\1", b"mk:": b"", b"ol:" + "ü".encode(): b"x" * 70_000},
    "com.foo:http/中".encode(): {b"mk": None, b"f:bid": None},
    b"empty": {},
}


@pytest.mark.parametrize("rows", [ROWS, {}, {b"a": {b"f:st": b"1"}}])
def test_write_message_equals_thriftpy2_message(rows):
    buffer = TMemoryBuffer()
    client = TClient(Hbase, TBinaryProtocol(buffer, decode_response=False))
    client._send("mutateRowsTs", tableName=b"t", rowBatches=batch_mutations(rows), timestamp=1 << 40, attributes={})
    assert binary_message(b"t", 1 << 40, rows) == buffer.getvalue()


def answer(text):
    """Return the error of a gateway with this text in the first line of its stack trace."""
    return HBaseError(f"org.apache.hadoop.hbase.{text}\n\tat org.apache.hadoop.hbase.thrift.A.b(A.java:1)\n".encode())


def trace(text, cause="", frame="org.apache.hadoop.hbase.thrift.A.b(A.java:1)"):
    """Return the error of a gateway with a cause, as Java prints it."""
    lines = [f"org.apache.hadoop.hbase.{text}", f"\tat {frame}"]
    lines += [f"Caused by: org.apache.hadoop.hbase.{cause}", f"\tat {frame}", "\t... 12 more"] if cause else []
    return HBaseError("\n".join([*lines, ""]).encode())


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (HBaseError(b"org.apache.hadoop.hbase.TableNotFoundException: x"), True),
        (HBaseError(b"org.apache.hadoop.hbase.DoNotRetryIOException: hconnection-0x4f closed"), False),
        (HBaseError(b"DoNotRetryIOException: Failed after retry of OutOfOrderScannerNextException"), False),
        (HBaseError(b"org.apache.hadoop.hbase.PleaseHoldException: Master is initializing"), False),
        (IllegalArgument(b"java.lang.IllegalArgumentException: KeyValue size too large"), True),
        (IllegalArgument(b"scanner ID is invalid"), False),
        (AlreadyExists(b"table name already in use"), True),
        (TimeoutError("timed out"), False),
        (TTransportException(4, "TSocket read 0 bytes"), False),
        # HBase 2.6, away with its ZooKeeper
        (answer("DoNotRetryIOException: Zookeeper GET could not be completed in 10000 ms"), False),
        (answer("DoNotRetryIOException: Zookeeper LIST could not be completed in 10000 ms"), False),
        (trace("client.RetriesExhaustedException: Can't get the location for replica 0",
               "DoNotRetryIOException: Zookeeper GET could not be completed in 10000 ms"), False),
        # the same class for what stays
        (answer("DoNotRetryIOException: Column family not found"), True),
        (answer("DoNotRetryIOException: no Zookeeper GET could not be completed in time"), True),
        # a connection that the gateway closed: 1.2, 2.6
        (answer("DoNotRetryIOException: hconnection-0x6a2bcfcb closed"), False),
        (answer("client.ConnectionImplementation$LocalConnectionClosedException: hconnection-0x4f closed"), False),
        # scanners: 1.2 and 2.6
        (trace("DoNotRetryIOException: Failed after retry of OutOfOrderScannerNextException: was there a rpc timeout?",
               "exceptions.OutOfOrderScannerNextException: Expected nextCallSeq: 1 But the one got is 0"), False),
        (trace("client.ScannerTimeoutException: 60345ms passed since the last invocation, timeout is set to 60000",
               "UnknownScannerException: Name: 12, already closed?"), False),
        (answer("regionserver.LeaseException: lease '12' does not exist"), False),
        # HBase comes and goes
        (answer("ipc.ServerNotRunningYetException: Server is not running yet"), False),
        (answer("exceptions.MasterStoppedException"), False),
        (answer("NotServingRegionException: webpage,,1.x. is not online on h,1,2"), False),
        (answer("CallQueueTooBigException: Call queue is full on h,1,2, too many items queued ?"), False),
        (answer("RegionTooBusyException: Over memstore limit"), False),
        (HBaseError(b"org.apache.zookeeper.KeeperException$ConnectionLossException: KeeperErrorCode = x"), False),
        # what a subclass says that names no other class
        (answer("regionserver.NoSuchColumnFamilyException: Column family x does not exist in region"), True),
        (answer("exceptions.FailedSanityCheckException: Requested row out of range"), True),
        (answer("security.AccessDeniedException: Insufficient permissions"), True),
        # writes: 1.2 names the class, 2.6 gives the whole message of the region server
        (answer("client.RetriesExhaustedWithDetailsException: Failed 2 actions: NotServingRegionException: 2 times, "),
         False),
        (answer("client.RetriesExhaustedWithDetailsException: Failed 2 actions: NotServingRegionException: 1 time, "
                "org.apache.hadoop.hbase.regionserver.NoSuchColumnFamilyException: Column family x does not exist\n"
                "\tat org.apache.hadoop.hbase.regionserver.RSRpcServices.x(RSRpcServices.java:1)\n: 1 time, "), True),
        # failed attempts
        (answer("client.RetriesExhaustedException: Failed after attempts=2, exceptions:\n"
                "Thu Nov 19 10:00:00 UTC 2026, null, java.net.SocketTimeoutException: callTimeout=60000: row "
                "'com.a:http/TableNotFoundException' on table 'webpage'"), False),
        (answer("client.RetriesExhaustedException: Failed after attempts=16, exceptions:\n"
                "2026-11-19T10:00:00.123Z, RpcRetryingCaller{globalStartTime=1, pause=100, maxAttempts=16}, "
                "org.apache.hadoop.hbase.TableNotFoundException: webpage"), True),
        # a class counts in its own position, not in a row key or in a text
        (answer("NotServingRegionException: row 'com.a:http/docs/TableNotFoundException: x'"), False),
        (HBaseError(b"java.io.IOException: in org.apache.hadoop.hbase.AccessDeniedException we say: nothing"), False),
        (trace("PleaseHoldException: Master is initializing", frame="TableNotFoundException.main(A.java:1)"), False),
        # what another server threw, wrapped
        (HBaseError(b"org.apache.hadoop.ipc.RemoteException(org.apache.hadoop.hbase.TableNotFoundException): t"), True),
        (HBaseError(b"java.io.IOException: org.apache.hadoop.hbase.TableNotFoundException: t"), True),
    ],
)  # fmt: skip
def test_retried_failures_are_classified(error, expected):
    assert is_permanent(error) is expected


def test_hbase_exceptions_are_retried_or_fatal():
    named = {simple(line) for line in LIST.read_text().splitlines() if not line.startswith("#")}
    assert len(named) > 50
    assert not hbase_errors.TRANSIENT & hbase_errors.PERMANENT
    assert named - hbase_errors.TRANSIENT - hbase_errors.PERMANENT == set()
    of_java_and_of_1_2 = {
        "IllegalArgumentException", "UnsupportedOperationException", "LockTimeoutException", "ScannerTimeoutException",
    }  # fmt: skip
    assert (hbase_errors.TRANSIENT | hbase_errors.PERMANENT) - named == of_java_and_of_1_2


@pytest.mark.skipif(not (JARS / ".complete").exists(), reason="the jars of HBase come with its first start")
def test_exception_list_matches_hbase_jars():
    assert LIST.read_text().splitlines()[1:] == of_jars()


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (IllegalArgument(b"scanner ID is invalid"), {ErrorCondition.SCANNER_GONE}),
        (IllegalArgument(b"java.lang.IllegalArgumentException: KeyValue size too large\n"), {ErrorCondition.TOO_LARGE}),
        (answer("DoNotRetryIOException: Cell with size 10485999 exceeds limit of 10485760 bytes"),
         {ErrorCondition.TOO_LARGE}),
        (answer("DoNotRetryIOException: Compression algorithm 'lzo' failed test."), {ErrorCondition.NO_CODEC}),
        (trace("DoNotRetryIOException: x", frame="jdk.internal.NativeMethodAccessorImpl.invoke(N.java)"), set()),
        (answer("RegionTooBusyException: row of KeyValue size too large"), set()),
    ],
)  # fmt: skip
def test_do_not_retry_exceptions_are_classified_by_text(error, expected):
    assert error_conditions(error) == expected


def test_error_message_derives_from_exception_class():
    stranger = answer("NotServingRegionException: row 'com.a:http/AccessDeniedException'")
    assert "access denied" not in str(to_store_error(stranger, "webpage", "hbase://h"))
    assert "access denied" in str(to_store_error(answer("security.AccessDeniedException: x"), "webpage", "hbase://h"))
    assert "inject" in str(to_store_error(trace("client.X: a", "TableNotFoundException: t"), "webpage", "hbase://h"))


MAPPING = """<gora-otd>
  <table name="webpage">
    <family name="c" maxVersions="1" compression="GZ"/> <family name="m" maxVersions="3" bloomFilter="NONE"/>
  </table>
  <class table="webpage" keyClass="java.lang.String" name="org.apache.nutch.storage.WebPage">
    <field name="content" family="c" qualifier="body"/>
    <field name="text" family="c" qualifier="t"/>
    <field name="status" family="m" qualifier="status"/>
    <field name="markers" family="marks"/>
  </class>
  <class table="host" keyClass="java.lang.String" name="org.apache.nutch.storage.Host">
    <field name="metadata" family="m"/>
  </class>
</gora-otd>"""


@pytest.fixture
def site(tmp_path):
    (tmp_path / "gora-hbase-mapping.xml").write_text(MAPPING)
    return Configuration(conf_dirs=[tmp_path])


def test_mapping_file_renames_columns_both_ways(site):
    mapping = column_mapping(site, WebPage)
    for ours, theirs in [
        ((b"f", b"cnt"), b"c:body"), ((b"f", b"st"), b"m:status"), ((b"mk", b"a:b"), b"marks:a:b"),
        ((b"f", b"ts"), b"f:ts"), ((b"foreign", b"x"), b"foreign:x"),
    ]:  # fmt: skip
        assert mapping.to_site(*ours) == theirs
        assert mapping.from_site(theirs) == ours
    assert not mapping.plain
    assert column_mapping(site, Host).to_site(b"mtdt", b"q") == b"m:q"
    assert column_mapping(site, DerivedRow).plain


def test_families_of_new_table_follow_mapping(site):
    families = {f.name: f for f in new_table_families(column_mapping(site, WebPage), HBaseSettings())}
    assert set(families) == {b"c", b"m", b"marks", b"f", b"p", b"s", b"h", b"ol", b"il", b"mtdt", b"stm"}
    assert (families[b"c"].compression, families[b"m"].versions, families[b"m"].bloom_filter) == ("GZ", 3, "NONE")
    plain = new_table_families(NUTCH, HBaseSettings(compression="SNAPPY"))
    assert {f.name for f in plain} == EVERY
    assert {(f.versions, f.bloom_filter, f.compression, f.block_cache) for f in plain} == {(1, "ROW", "SNAPPY", True)}


def test_unknown_codec_is_rejected():
    with pytest.raises(ConfigurationError, match=r"hbase\.compression"):
        new_table_families(NUTCH, HBaseSettings(compression="RAR"))


def test_mapping_file_not_xml_is_rejected(tmp_path):
    (tmp_path / "gora-hbase-mapping.xml").write_text("<gora")
    with pytest.raises(ConfigurationError, match=r"gora-hbase-mapping\.xml"):
        column_mapping(Configuration(conf_dirs=[tmp_path]), WebPage)


def test_two_fields_in_one_column_are_rejected(tmp_path):
    text = MAPPING.replace('qualifier="t"', 'qualifier="body"')
    (tmp_path / "gora-hbase-mapping.xml").write_text(text)
    with pytest.raises(ConfigurationError, match="two fields"):
        column_mapping(Configuration(conf_dirs=[tmp_path]), WebPage)


def test_no_gateway_at_address_is_reported():
    conf = Configuration({"service.wait.seconds": "0.3"})
    store = open_store(conf, WebPage, "hbase://127.0.0.1:1", "webpage")
    with pytest.raises(
        StoreError, match=r"no HBase Thrift gateway responds at hbase://127\.0\.0\.1:1 .*storage\.data\.store"
    ):
        list(store.scan(TableQuery()))


class _Making:
    """A gateway of a table that another process creates: it is enabled after a few checks."""

    table, where = "t", "hbase://h"

    def __init__(self, rejection, looks):
        self.rejection, self.looks = rejection, looks

    def call(self, action):
        return action(
            SimpleNamespace(client=SimpleNamespace(createTable=self.reject), is_table_enabled=self.is_enabled)
        )

    def reject(self, name, families):
        raise self.rejection

    def is_enabled(self, name):
        answer = self.looks.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.mark.parametrize(
    "rejection",
    [
        AlreadyExists(message=b"table name already in use"),
        HBaseError(message=b"org.apache.hadoop.hbase.TableExistsException: t\n\tat x.y(Z.java:1)\n"),
    ],
)
def test_table_being_created_elsewhere_is_awaited(rejection):
    making = _Making(
        rejection, [HBaseError(message=b"org.apache.hadoop.hbase.TableNotFoundException: t"), False, False, True]
    )
    create_table(making, b"t", new_table_families(NUTCH, HBaseSettings.from_conf(Configuration())))
    assert not making.looks


def test_table_staying_disabled_is_reported():
    with pytest.raises(StoreError, match="is disabled: run  enable 't'"):
        await_enabled(_Making(None, [False] * 3), b"t", timeout=0)
