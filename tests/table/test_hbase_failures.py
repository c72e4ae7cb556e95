"""Gateways and servers that die, come back, lose answers or forget scanners: nothing is lost, nothing comes twice."""

import contextlib
import datetime
import ipaddress
import itertools
import os
import ssl
import threading
import time
import warnings
from pathlib import Path

import happybase
import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError, StoreError
from nutch2py.records.webpage import WebPage
from nutch2py.table import KeyRange, MarkCondition, TableQuery, open_store
from tests.table.gateway_proxy import GatewayProxy

_numbers = itertools.count()
ROWS = 6_000
QUICK = {
    "hbase.thrift.timeout": "120000",  # a restarted server needs less, on a busy machine, too
    "hbase.thrift.scan.rows": "200",
    "hbase.thrift.write.rows": "200",
}


@pytest.fixture
def opened(hbase):
    name = f"failures{next(_numbers)}_webpage"

    def make(location=None, **properties):
        conf = Configuration({**QUICK, **{key.replace("__", "."): value for key, value in properties.items()}})
        return open_store(conf, WebPage, location or hbase.location, name)

    make.name = name
    return make


@pytest.fixture
def proxy(hbase):
    proxies = []

    def make(tls=None):
        proxies.append(GatewayProxy(hbase.port("gateway"), tls))
        return proxies[-1]

    yield make
    for one in proxies:
        one.stop()


def page_of(number):
    page = WebPage(fields=frozenset())
    page.status, page.text = number, f"{number} " * 20
    page.markers["_gnmrk_"] = str(number % 2)
    page.outlinks = {f"http://{number}/": ""}
    return page


def fill(store, rows=ROWS, timestamp=None):
    with store.batch() as batch:
        for number in range(rows):
            batch.put(f"row{number:06d}", page_of(number), timestamp)


def keys(rows=ROWS):
    return [f"row{number:06d}" for number in range(rows)]


def read(store, at, then, query=None):
    """Scan; call ``then`` after row ``at``; return the keys."""
    found = []
    for key, page in store.scan(query or TableQuery.for_fields([WebPage.status, WebPage.text])):
        if query is None:
            assert page.text == f"{page.status} " * 20
            assert int(key[3:]) == page.status
        found.append(key)
        if len(found) == at:
            then()
    return found


def test_gateway_killed_during_scan_is_survived(hbase, opened):
    store = opened()
    store.create()
    fill(store)

    def crash():
        hbase.crash("gateway")
        threading.Timer(0.5, hbase.start, ["gateway"]).start()

    assert read(store, 1_000, crash) == keys()


def test_gateway_killed_during_writes_is_survived(hbase, opened):
    store, undisturbed = opened(), open_store(Configuration(), WebPage, hbase.location, f"{opened.name}_calm")
    store.create()
    undisturbed.create()
    fill(undisturbed, timestamp=10_000)

    def crash_twice():
        for _ in range(2):
            hbase.crash("gateway")
            hbase.start("gateway")
            time.sleep(0.3)

    crashes = threading.Thread(target=crash_twice)
    with store.batch() as batch:
        while crashes.ident is None or crashes.is_alive():  # the same rows again, until the gateway was killed twice
            for number in range(ROWS):
                if number == 1_000 and crashes.ident is None:
                    crashes.start()
                batch.put(f"row{number:06d}", page_of(number), 10_000)
                if number % 1_000 == 999:
                    batch.flush()
    assert list(store.scan_cells()) == list(undisturbed.scan_cells())


def test_hbase_killed_during_writes_and_reads_is_survived(hbase, opened):
    store, reader = opened(), opened()
    store.create()
    fill(store)
    acknowledged = []
    restart = threading.Thread(target=hbase.start)
    hbase.crash("master")
    restart.start()
    with store.batch() as batch:
        for number in range(ROWS, ROWS + 1_000):
            batch.put(f"row{number:06d}", page_of(number))
            if number % 500 == 499:
                batch.flush()
                acknowledged.append(number)
    restart.join()
    assert acknowledged == [ROWS + 499, ROWS + 999]
    found = []
    restart = threading.Thread(target=hbase.start)
    for key, _ in reader.scan(TableQuery.for_fields([WebPage.status])):
        found.append(key)
        if len(found) == 500:
            hbase.crash("master")
            restart.start()
    restart.join()
    assert found == keys(ROWS + 1_000)
    assert [page.status for page in store.get_many(found[::700])] == list(range(ROWS + 1_000))[::700]


def test_region_split_during_scan_is_survived(hbase, opened):
    store = opened()
    store.create()
    fill(store, 3_000)
    ranges = store.key_ranges(TableQuery(), 1)

    def split():
        hbase.java(Path(__file__).with_name("SplitRegion.java"), opened.name, "row001500")

    query = TableQuery.for_fields([WebPage.status], MarkCondition("_gnmrk_", "1"))
    assert read(store, 700, split) == keys(3_000)
    assert [key for part in ranges for key, _ in store.scan(query.with_range(part))] == keys(3_000)[1::2]
    assert store.key_ranges(TableQuery(), 2) == [KeyRange("", "row001500"), KeyRange("row001500", "")]


def test_slow_reader_reopens_scanner_and_socket(hbase, opened):
    """A gateway that closes a silent socket after 1 s and forgets a scanner after 2 s (defaults: 60 s and 2 min)."""
    store = opened()
    store.create()
    fill(store, 2_000)
    hbase.environment.update(SCANNER_TIMEOUT="1000", SOCKET_TIMEOUT="1000")
    try:
        hbase.start("gateway-b")
    finally:
        del hbase.environment["SCANNER_TIMEOUT"], hbase.environment["SOCKET_TIMEOUT"]
    try:
        slow = opened(hbase.address("gateway-b"))
        query = TableQuery.for_fields([WebPage.status], MarkCondition("_gnmrk_", "1"))
        assert read(slow, 300, lambda: time.sleep(3)) == keys(2_000)
        assert read(slow, 300, lambda: time.sleep(3), query) == keys(2_000)[1::2]
        time.sleep(1.5)
        assert slow.get("row000007").status == 7
    finally:
        hbase.crash("gateway-b")


def test_write_with_lost_response_is_resent_with_same_timestamps(hbase, opened, proxy):
    connection = happybase.Connection("127.0.0.1", hbase.port("gateway"), timeout=60_000)
    connection.create_table(opened.name, {f: {"max_versions": 9} for f in ("f", "mk", "ol", "p")})
    before = proxy()
    store = opened(f"hbase://127.0.0.1:{before.port}")
    store.exists()
    with store.batch() as batch:
        for number in range(300):
            batch.put(f"row{number:06d}", page_of(number))
            if number == 100:
                before.answers_to_lose = 2
    assert before.answers_to_lose == 0
    table = connection.table(opened.name)
    columns = [b"f:st", b"p:c", b"mk:_gnmrk_"]
    for number in (0, 150, 299):
        row = b"row%06d" % number
        assert {len(table.cells(row, column, versions=9)) for column in columns} == {1}
        assert len(table.cells(row, b"ol:http://%d/" % number, versions=9)) == 1
    assert [key for key, _ in store.scan(TableQuery())] == keys(300)
    connection.close()


def test_lost_read_responses_are_retried(opened, proxy):
    before = proxy()
    store = opened(f"hbase://127.0.0.1:{before.port}")
    store.create()
    fill(store, 2_000)

    def lose():
        before.answers_to_lose = 2

    assert read(store, 700, lose) == keys(2_000)
    assert before.answers_to_lose == 0
    before.answers_to_lose = 1
    assert [page.status for page in store.get_many(keys(50))] == list(range(50))
    before.cut()
    assert store.exists()


def test_gateways_rotate_and_dead_one_returns(hbase, opened, proxy):
    first, second = proxy(), proxy()
    location = f"hbase://127.0.0.1:{first.port},127.0.0.1:{second.port}"
    opened().create()
    for _ in range(6):
        store = opened(location)
        store.exists()
        held = [store._gateways.borrow() for _ in range(2)]
        assert {link.address.port for link in held} <= {first.port, second.port}
        for link in held:
            link.close()
        store.close()
    assert first.accepted
    assert second.accepted
    store = opened(location, hbase__thrift__gateway__rest="300", hbase__thrift__idle="1")
    fill(store, 2_000)
    assert read(store, 500, first.stop) == keys(2_000)
    rejected = first.accepted
    assert store.get("row000001").status == 1
    first.start()
    time.sleep(0.4)
    for _ in range(4):
        time.sleep(0.01)
        assert store.get("row000001").status == 1
    assert first.accepted > rejected


def test_abandoned_scans_leave_nothing_open(opened, proxy):
    before = proxy()
    store = opened(f"hbase://127.0.0.1:{before.port}")
    store.create()
    fill(store, 1_000)
    connections = before.accepted
    for _ in range(20):
        scan = store.scan(TableQuery.for_fields([WebPage.status]))
        assert next(scan)[0] == "row000000"
        scan.close()
        assert store.get("row000005").status == 5
    assert before.accepted - connections <= 3  # connections are reused, none with an unread response


def test_threads_share_hbase_store(opened):
    store = opened()
    store.create()
    fill(store, 1_000)
    found = {}

    def work(number):
        found[number] = [key for key, _ in store.scan(TableQuery.for_fields([WebPage.status]))]
        found[number] += [f"row{page.status:06d}" for page in store.get_many(keys(1_000)[::10])]

    threads = [threading.Thread(target=work, args=[number]) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found[number] for number in range(6)] == [keys(1_000) + keys(1_000)[::10]] * 6


def test_child_process_opens_own_connections(opened):
    store = opened()
    store.create()
    fill(store, 500)
    scan = store.scan(TableQuery.for_fields([WebPage.status]))
    next(scan)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # threads of other tests may live; the child needs none
        child = os.fork()
    if child == 0:
        status = 1
        with contextlib.suppress(BaseException):
            status = 0 if [key for key, _ in store.scan(TableQuery())] == keys(500) else 2
            store.close()
        os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert [key for key, _ in scan] == keys(500)[1:]
    assert store.get("row000005").status == 5


def test_framed_transport_and_compact_protocol_work(hbase, opened):
    opened().create()
    hbase.start("gateway-framed")
    try:
        location = f"hbase://127.0.0.1:{hbase.port('gateway-framed')}"
        framed = {"hbase__thrift__transport": "framed", "hbase__thrift__protocol": "compact"}
        store = opened(location, **framed)
        fill(store, 500)
        assert read(store, 100, lambda: None) == keys(500)
        assert store.get_many(["row000003"])[0].status == 3
        wrong = opened(location, service__wait__seconds="0", hbase__thrift__timeout="2000")
        with pytest.raises(StoreError, match=r"hbase\.thrift\.transport"):
            wrong.get("row000003")
    finally:
        hbase.crash("gateway-framed")


@pytest.fixture
def certificate(tmp_path):
    """Make a certificate of 127.0.0.1 and its key, in one PEM file."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.oid.NameOID.COMMON_NAME, "gateway")])
    now = datetime.datetime.now(datetime.UTC) - datetime.timedelta(hours=1)
    tomorrow = now + datetime.timedelta(days=1)
    alternatives = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    made = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), now, tomorrow)
    made = made.add_extension(alternatives, False).add_extension(x509.BasicConstraints(True, None), True)
    signed = made.sign(key, hashes.SHA256())
    path = tmp_path / "gateway.pem"
    pem, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    path.write_bytes(key.private_bytes(pem, form, serialization.NoEncryption()) + signed.public_bytes(pem))
    return path


def test_tls_connection_is_verified(opened, proxy, certificate):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    before = proxy(context)
    location = f"hbase://127.0.0.1:{before.port}"
    secure = {"hbase__thrift__ssl__enabled": "true", "service__wait__seconds": "0"}
    store = opened(location, hbase__thrift__ssl__ca__file=str(certificate), **secure)
    store.create()
    fill(store, 500)
    assert read(store, 100, lambda: None) == keys(500)
    with pytest.raises(StoreError, match="certificate"):
        opened(location, **secure).exists()
    with pytest.raises(ConfigurationError, match=r"hbase\.thrift\.ssl\.ca\.file"):
        opened(location, hbase__thrift__ssl__ca__file=f"{certificate}.none", **secure).exists()
