"""The parts of the HBase store that need no server: addresses, properties, columns, conditions."""

from types import SimpleNamespace

import pytest
from thriftpy2.protocol import TBinaryProtocol
from thriftpy2.thrift import TClient
from thriftpy2.transport import TMemoryBuffer, TTransportException

from nutch2py.conf import Configuration
from nutch2py.errors import ConfigurationError, StoreError
from nutch2py.table import MarkCondition, Query, open_store
from nutch2py.table.hbase import failures
from nutch2py.table.hbase.admin import await_enabled, create_table, families_of
from nutch2py.table.hbase.columns import Selection
from nutch2py.table.hbase.failures import Condition, conditions_of, explained, hopeless
from nutch2py.table.hbase.gora_mapping import column_mapping
from nutch2py.table.hbase.hbase_settings import Address, Location, Settings
from nutch2py.table.hbase.interface import AlreadyExists, Hbase, HBaseError, IllegalArgument
from nutch2py.table.hbase.scan import RowBudget
from nutch2py.table.hbase.wire import batch_mutations, binary_message
from nutch2py.webpage import BatchEntry, Host, WebPage
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
def test_a_location(text, gateways, namespace):
    location = Location.parse(text)
    assert (list(location.gateways), location.namespace) == (gateways, namespace)


@pytest.mark.parametrize(
    "text", ["hbase://", "hbase://h:x", "hbase://h:0", "hbase://h:65536", "hbase://h/a-b", "hbase://a b"]
)
def test_a_malformed_location_is_refused(text):
    with pytest.raises(ConfigurationError, match=r"storage\.data\.store"):
        Location.parse(text)


def test_the_name_of_a_table_in_a_namespace():
    assert Location.parse("hbase://h/crawl").full_name("webpage") == "crawl:webpage"
    assert Location.parse("hbase://h/default").full_name("webpage") == "webpage"
    assert str(Address("::1", 7)) == "[::1]:7"


@pytest.mark.parametrize("name", ["a/b", "-x", "", "a:b", "é"])
def test_a_table_name_that_hbase_refuses(name):
    with pytest.raises(ConfigurationError, match=r"storage\.crawl\.id"):
        open_store(Configuration({"storage.crawl.id": ""}), WebPage, "hbase://h", name or " ")


def test_settings_come_from_the_properties():
    conf = Configuration({
        "hbase.thrift.transport": "FRAMED", "hbase.thrift.protocol": "compact", "hbase.thrift.timeout": "5000",
        "service.wait.seconds": "250", "hbase.compression": "gz", "gora.buffer.read.limit": "10",
        "hbase.thrift2.gateways": "a:1, b", "hbase.create.splits": "com.a,com.b",
    })  # fmt: skip
    found = Settings.of(conf)
    assert (found.transport, found.protocol, found.timeout, found.wait) == ("framed", "compact", 5.0, 250.0)
    assert (found.compression, found.scan_rows, found.splits) == ("GZ", 10, ("com.a", "com.b"))
    assert found.thrift2 == (("a", 1), ("b", 9095))
    assert found.write_bytes < 2 << 20  # what a gateway takes in a frame
    assert Settings.of(Configuration()) == Settings()


@pytest.mark.parametrize("name", ["hbase.thrift.transport", "hbase.thrift.protocol", "hbase.thrift2.gateways"])
def test_a_malformed_setting_names_its_property(name):
    with pytest.raises(ConfigurationError, match=name):
        Settings.of(Configuration({name: "a b"}))


def cell(value):
    return SimpleNamespace(value=value)


def test_only_the_named_columns_are_asked_for():
    asked = Selection([WebPage.status, WebPage.title, WebPage.markers, WebPage.fetch_time], NUTCH, EVERY).columns_asked
    assert sorted(asked) == [b"f:st", b"f:ts", b"mk", b"p:t"]
    assert Selection(None, NUTCH, EVERY).columns_asked is None
    assert Selection([], NUTCH, EVERY).columns_asked == []


def test_a_family_that_the_table_lacks_is_never_asked_for():
    old = EVERY - {b"stm"}
    assert Selection([WebPage.sitemaps, WebPage.status], NUTCH, old).columns_asked == [b"f:st"]
    assert Selection([WebPage.sitemaps], NUTCH, old).columns_asked == []
    assert Selection([WebPage.status], NUTCH, EVERY - {b"mk"}, MarkCondition("x")).columns_asked == []


def test_the_column_of_a_condition_is_read_and_not_shown():
    chosen = Selection([WebPage.status], NUTCH, EVERY, MarkCondition("_gnmrk_", "it's"))
    assert chosen.columns_asked == [b"f:st", b"mk:_gnmrk_"]
    assert chosen.filter == b"SingleColumnValueFilter('mk','_gnmrk_',=,'binary:it''s',true,true)"
    row = {b"f:st": cell(b"\0\0\0\2"), b"mk:_gnmrk_": cell(b"it's")}
    assert WebPage(None, frozenset([WebPage.status]), chosen, row).cells == {b"f": {b"st": b"\0\0\0\2"}}
    assert chosen.has_cell(row)
    assert not chosen.has_cell({b"mk:_gnmrk_": cell(b"it's")})


def test_answers_are_kept_near_their_size():
    budget = RowBudget(1000, 1_000_000)
    asked = []
    for row_bytes in (100, 100, 100, 100, 50_000, 2_000_000):
        asked.append(budget.rows)
        budget.learn(budget.rows, budget.rows * row_bytes)
    assert asked == [16, 128, 1000, 1000, 1000, 20]
    assert budget.rows == 1
    assert budget.copy().rows == 1


ROWS = {
    b"a": {b"f:st": b"\0\0\0\1", b"mk:": b"", b"ol:" + "ü".encode(): b"x" * 70_000},
    "com.foo:http/中".encode(): {b"mk": None, b"f:bid": None},
    b"empty": {},
}


@pytest.mark.parametrize("rows", [ROWS, {}, {b"a": {b"f:st": b"1"}}])
def test_the_message_that_writes_is_that_of_thriftpy2(rows):
    buffer = TMemoryBuffer()
    client = TClient(Hbase, TBinaryProtocol(buffer, decode_response=False))
    client._send("mutateRowsTs", tableName=b"t", rowBatches=batch_mutations(rows), timestamp=1 << 40, attributes={})
    assert binary_message(b"t", 1 << 40, rows) == buffer.getvalue()


def answer(text):
    """Return the error of a gateway whose exception says so, as the first line of its stack trace."""
    return HBaseError(f"org.apache.hadoop.hbase.{text}\n\tat org.apache.hadoop.hbase.thrift.A.b(A.java:1)\n".encode())


def trace(text, cause="", frame="org.apache.hadoop.hbase.thrift.A.b(A.java:1)"):
    """Return the error of a gateway whose exception has a cause, as Java prints it."""
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
        # attempts in vain
        (answer("client.RetriesExhaustedException: Failed after attempts=2, exceptions:\n"
                "Thu Nov 19 10:00:00 UTC 2026, null, java.net.SocketTimeoutException: callTimeout=60000: row "
                "'com.a:http/TableNotFoundException' on table 'webpage'"), False),
        (answer("client.RetriesExhaustedException: Failed after attempts=16, exceptions:\n"
                "2026-11-19T10:00:00.123Z, RpcRetryingCaller{globalStartTime=1, pause=100, maxAttempts=16}, "
                "org.apache.hadoop.hbase.TableNotFoundException: webpage"), True),
        # a class counts where one stands, not in a row key or in a text
        (answer("NotServingRegionException: row 'com.a:http/docs/TableNotFoundException: x'"), False),
        (HBaseError(b"java.io.IOException: in org.apache.hadoop.hbase.AccessDeniedException we say: nothing"), False),
        (trace("PleaseHoldException: Master is initializing", frame="TableNotFoundException.main(A.java:1)"), False),
        # what another server threw, wrapped
        (HBaseError(b"org.apache.hadoop.ipc.RemoteException(org.apache.hadoop.hbase.TableNotFoundException): t"), True),
        (HBaseError(b"java.io.IOException: org.apache.hadoop.hbase.TableNotFoundException: t"), True),
    ],
)  # fmt: skip
def test_what_is_tried_again(error, expected):
    assert hopeless(error) is expected


def test_each_of_hbase_s_own_exceptions_that_it_does_not_retry_either_passes_or_stays():
    named = {simple(line) for line in LIST.read_text().splitlines() if not line.startswith("#")}
    assert len(named) > 50
    assert not failures._PASSING & failures._HOPELESS
    assert named - failures._PASSING - failures._HOPELESS == set()
    of_java_and_of_1_2 = {
        "IllegalArgumentException", "UnsupportedOperationException", "LockTimeoutException", "ScannerTimeoutException",
    }  # fmt: skip
    assert (failures._PASSING | failures._HOPELESS) - named == of_java_and_of_1_2


@pytest.mark.skipif(not (JARS / ".complete").exists(), reason="the jars of HBase come with its first start")
def test_the_list_of_exceptions_is_that_of_the_jars():
    assert LIST.read_text().splitlines()[1:] == of_jars()


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (IllegalArgument(b"scanner ID is invalid"), {Condition.SCANNER_GONE}),
        (IllegalArgument(b"java.lang.IllegalArgumentException: KeyValue size too large\n"), {Condition.TOO_LARGE}),
        (answer("DoNotRetryIOException: Cell with size 10485999 exceeds limit of 10485760 bytes"),
         {Condition.TOO_LARGE}),
        (answer("DoNotRetryIOException: Compression algorithm 'lzo' previously failed test."), {Condition.NO_CODEC}),
        (trace("DoNotRetryIOException: x", frame="jdk.internal.NativeMethodAccessorImpl.invoke(N.java)"), set()),
        (answer("RegionTooBusyException: row of KeyValue size too large"), set()),
    ],
)  # fmt: skip
def test_what_only_words_tell(error, expected):
    assert conditions_of(error) == expected


def test_what_the_user_is_told_comes_of_the_class_not_of_a_row_key():
    stranger = answer("NotServingRegionException: row 'com.a:http/AccessDeniedException'")
    assert "access denied" not in str(explained(stranger, "webpage", "hbase://h"))
    assert "access denied" in str(explained(answer("security.AccessDeniedException: x"), "webpage", "hbase://h"))
    assert "inject" in str(explained(trace("client.X: a", "TableNotFoundException: t"), "webpage", "hbase://h"))


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
    return Configuration(folders=[tmp_path])


def test_a_mapping_file_renames_columns_both_ways(site):
    mapping = column_mapping(site, WebPage)
    for ours, theirs in [
        ((b"f", b"cnt"), b"c:body"), ((b"f", b"st"), b"m:status"), ((b"mk", b"a:b"), b"marks:a:b"),
        ((b"f", b"ts"), b"f:ts"), ((b"foreign", b"x"), b"foreign:x"),
    ]:  # fmt: skip
        assert mapping.to_site(*ours) == theirs
        assert mapping.from_site(theirs) == ours
    assert not mapping.plain
    assert column_mapping(site, Host).to_site(b"mtdt", b"q") == b"m:q"
    assert column_mapping(site, BatchEntry).plain


def test_families_of_a_new_table(site):
    families = {f.name: f for f in families_of(column_mapping(site, WebPage), Settings())}
    assert set(families) == {b"c", b"m", b"marks", b"f", b"p", b"s", b"h", b"ol", b"il", b"mtdt", b"stm"}
    assert (families[b"c"].compression, families[b"m"].versions, families[b"m"].bloom) == ("GZ", 3, "NONE")
    plain = families_of(NUTCH, Settings(compression="SNAPPY"))
    assert {f.name for f in plain} == EVERY
    assert {(f.versions, f.bloom, f.compression, f.block_cache) for f in plain} == {(1, "ROW", "SNAPPY", True)}


def test_a_codec_that_nobody_knows_is_refused():
    with pytest.raises(ConfigurationError, match=r"hbase\.compression"):
        families_of(NUTCH, Settings(compression="RAR"))


def test_a_mapping_file_that_is_not_xml(tmp_path):
    (tmp_path / "gora-hbase-mapping.xml").write_text("<gora")
    with pytest.raises(ConfigurationError, match=r"gora-hbase-mapping\.xml"):
        column_mapping(Configuration(folders=[tmp_path]), WebPage)


def test_two_fields_in_one_column_are_refused(tmp_path):
    text = MAPPING.replace('qualifier="t"', 'qualifier="body"')
    (tmp_path / "gora-hbase-mapping.xml").write_text(text)
    with pytest.raises(ConfigurationError, match="two fields"):
        column_mapping(Configuration(folders=[tmp_path]), WebPage)


def test_no_gateway_at_the_address():
    conf = Configuration({"service.wait.seconds": "0.3"})
    store = open_store(conf, WebPage, "hbase://127.0.0.1:1", "webpage")
    with pytest.raises(
        StoreError, match=r"no HBase Thrift gateway answers at hbase://127\.0\.0\.1:1 .*storage\.data\.store"
    ):
        list(store.scan(Query()))


class _Making:
    """A gateway of a table that another process is making: it is there, and enabled after a few looks."""

    table, where = "t", "hbase://h"

    def __init__(self, refusal, looks):
        self.refusal, self.looks = refusal, looks

    def call(self, action):
        return action(
            SimpleNamespace(client=SimpleNamespace(createTable=self.refuse), is_table_enabled=self.is_enabled)
        )

    def refuse(self, name, families):
        raise self.refusal

    def is_enabled(self, name):
        answer = self.looks.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.mark.parametrize(
    "refusal",
    [
        AlreadyExists(message=b"table name already in use"),
        HBaseError(message=b"org.apache.hadoop.hbase.TableExistsException: t\n\tat x.y(Z.java:1)\n"),
    ],
)
def test_a_table_that_another_is_making_is_shared_when_it_is_ready(refusal):
    making = _Making(
        refusal, [HBaseError(message=b"org.apache.hadoop.hbase.TableNotFoundException: t"), False, False, True]
    )
    create_table(making, b"t", families_of(NUTCH, Settings.of(Configuration())))
    assert not making.looks


def test_a_table_that_stays_disabled_is_told():
    with pytest.raises(StoreError, match="is disabled: run  enable 't'"):
        await_enabled(_Making(None, [False] * 3), b"t", seconds=0)
