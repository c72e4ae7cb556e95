"""Errors of a table's folder: one line names cause and repair, and the table stays unchanged."""

import errno
import mmap
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import lmdb
import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import StoreError
from nutch2py.records.webpage import WebPage
from nutch2py.table import TableQuery, open_store
from nutch2py.table.embedded.storage import lmdb_environment, lmdb_errors
from tests.preloaded_library import compiled

from .store_suite import page_at, write

FAILS_ONCE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>
ssize_t pwrite(int fd, const void *data, size_t size, off_t at) {
  char link[64], path[PATH_MAX];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, sizeof path - 1);
  path[length < 0 ? 0 : length] = 0;
  if (at < 2 * sysconf(_SC_PAGESIZE) && strstr(path, getenv("FAILS")) && !unlink(getenv("FAILS_WHILE"))) {
    errno = EIO;
    return -1;
  }
  return ((ssize_t (*)(int, const void *, size_t, off_t))dlsym(RTLD_NEXT, "pwrite"))(fd, data, size, at);
}
ssize_t pwrite64(int fd, const void *data, size_t size, off_t at) { return pwrite(fd, data, size, at); }
"""
"""Fails to write the page that ends a commit, once; the file of FAILS_WHILE exists until then."""
WRITES_TWICE = """
import sys
from pathlib import Path
from nutch2py.conf.configuration import Configuration
from nutch2py.errors import StoreError
from nutch2py.table import open_store
from nutch2py.records.webpage import WebPage
store = open_store(Configuration(), WebPage, f"embedded:{sys.argv[1]}")
assert store.get("a") is not None
for refused in (True, False):
    if refused:
        Path(sys.argv[2]).touch()
    batch, page = store.batch(), WebPage(fields=frozenset())
    page.content, page.title, page.status = b"new", "new", 2
    for number in range(200):
        batch.put(f"k{number}", page)
    try:
        batch.flush()
    except StoreError as error:
        assert refused, error
        print(error)
        if "again" in sys.argv:
            batch.flush()
            break
    else:
        assert not refused
print(store.get("k7").content)
"""


def opened(tmp_path, **properties):
    conf = Configuration({name.replace("_", "."): str(value) for name, value in properties.items()})
    return open_store(conf, WebPage, f"embedded:{tmp_path / 'crawl'}")


@pytest.fixture
def store(tmp_path):
    store = opened(tmp_path)
    store.create()
    yield store
    store.close()


def with_contents(count, size=20_000):
    page = WebPage(fields=frozenset())
    pages = {}
    for number in range(count):
        page = WebPage(fields=frozenset())
        page.content, page.status = os.urandom(size), 2
        pages[f"k{number:05d}"] = page
    return pages


def test_full_map_leaves_table_unchanged(tmp_path):
    store = opened(tmp_path, storage_embedded_map_size=2 << 20)
    store.create()
    write(store, {"a": page_at()})
    before = list(store.scan_cells())
    batch = store.batch()
    for key, page in with_contents(200).items():
        batch.put(key, page)
    with pytest.raises(StoreError, match=r"storage\.embedded\.map\.size"):
        batch.flush()
    assert list(store.scan_cells()) == before
    store.close()
    larger = opened(tmp_path, storage_embedded_map_size=64 << 20)
    write(larger, with_contents(200))
    assert sum(1 for _ in larger.scan(TableQuery())) == 201
    larger.close()


def limited(work, limit=resource.RLIMIT_FSIZE, amount=1 << 20):
    """Run ``work`` in a child with a file size limit of 1 MB; return the text of its StoreError."""
    receive, send = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(receive)
        try:
            resource.setrlimit(limit, (amount, amount))
            work()
            os.write(send, b"no error")
        except StoreError as error:
            os.write(send, str(error).encode())
        finally:
            os._exit(0)
    os.close(send)
    os.waitpid(child, 0)
    with os.fdopen(receive) as stream:
        return stream.read()


def test_full_disk_leaves_table_unchanged(store):
    write(store, {"a": page_at()})
    before = list(store.scan_cells())
    message = limited(lambda: write(store, with_contents(200)))
    assert "no space left" in message
    assert "free some" in message
    assert "nothing of this batch was written" in message
    assert list(store.scan_cells()) == before
    write(store, with_contents(200))
    assert sum(1 for _ in store.scan(TableQuery())) == 201


def test_refused_commit_gives_its_space_back(store, tmp_path):
    write(store, {"a": page_at()})
    files = sorted((tmp_path / "crawl" / "webpage").glob("*/data.mdb"))
    before = [file.stat().st_size for file in files]
    assert "no space left" in limited(lambda: write(store, with_contents(200)))
    assert [file.stat().st_size for file in files] != before
    store.close()
    again = opened(tmp_path)
    assert [key for key, _ in again.scan(TableQuery())] == ["a"]
    assert [file.stat().st_size for file in files] == before
    again.close()


@pytest.mark.parametrize("name", ["meta", "content"])
@pytest.mark.parametrize("length", [0, 1, mmap.PAGESIZE, 2 * mmap.PAGESIZE - 1])
def test_table_half_created_on_full_disk_is_completed(tmp_path, name, length):
    for each in ("meta", "content"):
        (tmp_path / "crawl" / "webpage" / each).mkdir(parents=True)
    (tmp_path / "crawl" / "webpage" / name / "data.mdb").write_bytes(bytes(length))
    store = opened(tmp_path)
    assert not store.exists()
    store.create()
    write(store, {"a": page_at()})
    assert [key for key, _ in store.scan(TableQuery())] == ["a"]
    store.close()


def test_table_without_created_marker_keeps_rows(store, tmp_path):
    write(store, {"a": page_at()})
    store.close()
    (tmp_path / "crawl" / "webpage" / lmdb_environment.READY_FILE).unlink()
    again = opened(tmp_path)
    again.create()
    assert [key for key, _ in again.scan(TableQuery())] == ["a"]
    again.close()


def test_full_disk_in_small_families_leaves_table_unchanged(store):
    write(store, {"a": page_at()})
    before = list(store.scan_cells())

    def work():
        write(store, {f"k{number:06d}": page_at() for number in range(9_000)})

    assert "no space left" in limited(work)
    assert list(store.scan_cells()) == before


@pytest.mark.parametrize("more", [(), ("again",)])
@pytest.mark.parametrize("part", ["meta", "content"])
def test_failed_commit_end_is_survived(store, tmp_path, part, more):
    """LMDB accepts no more writes of such a process, and leaves a page with wrong contents."""
    made = compiled(FAILS_ONCE, tmp_path / "fails.so")
    if made is None:
        pytest.skip("there is no C compiler")
    write(store, {"a": page_at()})
    switch = tmp_path / "switch"
    names = {"LD_PRELOAD": str(made), "FAILS": f"/{part}/data.mdb", "FAILS_WHILE": str(switch)}
    command = [sys.executable, "-c", WRITES_TWICE, str(tmp_path / "crawl"), str(switch), *more]
    done = subprocess.run(command, check=False, env={**os.environ, **names}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    error, content = done.stdout.splitlines()
    assert "no space left for" in error
    assert "its disk fails" in error
    assert content == "b'new'"
    assert len(list(opened(tmp_path).scan(TableQuery()))) == 201
    assert not notes(store)


@pytest.mark.parametrize("part", ["meta", "content"])
def test_rejected_commit_leaves_no_damage(store, tmp_path, part):
    made = compiled(FAILS_ONCE, tmp_path / "fails.so")
    if made is None:
        pytest.skip("there is no C compiler")
    write(store, {"a": page_at()})
    store.close()
    switch = tmp_path / "switch"
    names = {"LD_PRELOAD": str(made), "FAILS": f"/{part}/data.mdb", "FAILS_WHILE": str(switch)}
    program = WRITES_TWICE.replace("print(error)", "sys.exit(0)")
    command = [sys.executable, "-c", program, str(tmp_path / "crawl"), str(switch)]
    done = subprocess.run(command, check=False, env={**os.environ, **names}, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")
    assert not switch.exists()
    again = opened(tmp_path)
    assert [key for key, _ in again.scan(TableQuery())] == ["a"]
    assert not notes(again)
    write(again, with_contents(3))
    assert len(list(again.scan(TableQuery()))) == 4
    again.close()


def notes(store):
    found = []
    assert [key for key, _ in store.check(found.append)]
    store.due_index().check(found.append)
    return found


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EFBIG, errno.EIO, errno.EDQUOT])
def test_disk_error_is_detected_by_errno(number):
    with pytest.raises(StoreError, match="no space left for the table"), lmdb_errors.translate_errors("the table"):
        raise OSError(number, "in whatever language")


@pytest.mark.parametrize("number", [errno.ENOENT, errno.EMFILE, None])
def test_path_mentioning_disk_is_no_disk_error(number):
    with (
        pytest.raises(StoreError, match=r"cannot open t \((gone|No space left)\): "),
        lmdb_errors.translate_errors("t"),
    ):
        raise OSError(number, "gone", "/quota/No space left") if number else OSError("No space left")


def test_lmdb_error_carries_system_errno(tmp_path):
    with pytest.raises(StoreError, match=r"the table t fails: .*No such file"), lmdb_errors.translate_errors("t"):
        lmdb.open(str(tmp_path / "quota" / "x"), create=False)


def test_small_address_space_error_names_limit(tmp_path):
    message = limited(opened(tmp_path).create, resource.RLIMIT_AS, 1 << 34)
    assert "lower storage.embedded.map.size" in message


def test_file_not_lmdb_is_rejected(tmp_path, store):
    store.close()
    (tmp_path / "crawl" / "webpage" / "meta" / "data.mdb").write_bytes(b"<html>" * 4_000)
    with pytest.raises(StoreError, match="not a sound table"):
        store.get("a")


def test_truncated_file_is_rejected(tmp_path, store):
    store.close()
    (tmp_path / "crawl" / "webpage" / "meta" / "data.mdb").write_bytes(b"\0" * 100)
    with pytest.raises(StoreError, match="webpage in"):
        store.get("a")


def test_folder_of_other_program_is_rejected(tmp_path):
    table = tmp_path / "crawl" / "webpage"
    for name in ("meta", "content"):
        (table / name).mkdir(parents=True)
        lmdb.open(str(table / name)).close()
    (table / "ready").touch()
    with pytest.raises(StoreError, match="not a table of nutch2py"):
        opened(tmp_path).get("a")


def test_folder_path_that_is_file_is_rejected(tmp_path):
    (tmp_path / "crawl").write_text("x")
    with pytest.raises(StoreError, match="webpage in"):
        opened(tmp_path).create()


def test_missing_table_error_names_fix(tmp_path):
    with pytest.raises(StoreError, match=r"there is no table webpage.*inject"):
        opened(tmp_path).get("a")


def test_half_created_table_does_not_exist_and_can_be_created(tmp_path, store):
    store.close()
    (tmp_path / "crawl" / "webpage" / "ready").unlink()
    assert not store.exists()
    store.create()
    write(store, {"a": page_at()})
    assert store.get("a") is not None


WITHOUT_PERMISSION = """
import os, sys
from nutch2py.conf.configuration import Configuration
from nutch2py.errors import StoreError
from nutch2py.table import open_store
from nutch2py.records.webpage import WebPage
store = open_store(Configuration(), WebPage, "embedded:" + sys.argv[1])
if os.geteuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
print(store.get("a").status)
for work in (lambda: store.compare_and_set("a", WebPage.status, None, b"x"), store.drop):
    try:
        work()
    except StoreError as error:
        print(error)
"""


def test_unwritable_folder_is_named_in_error():
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(Configuration(), WebPage, f"embedded:{folder}")
        store.create()
        write(store, {"a": page_at()})
        store.close()
        places = [Path(folder), *Path(folder).rglob("*")]
        for path in places:
            path.chmod(0o555 if path.is_dir() else 0o444)
        command = [sys.executable, "-c", WITHOUT_PERMISSION, folder]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        for path in places:
            path.chmod(0o755 if path.is_dir() else 0o644)
        assert done.returncode == 0, done.stderr
        lines = done.stdout.splitlines()
        assert lines[0] == "2"
        assert len(lines) == 3
        assert all("cannot read or write in webpage" in line for line in lines[1:])
        assert all("give this user the right" in line for line in lines[1:])
        assert store.get("a").status == 2
        store.close()


CHECK_WITHOUT_PERMISSION = """
import os, sys
from nutch2py.cli import main
def codes(folder):
    where = ["-D", "storage.data.store=embedded:" + folder]
    return [main([*words.split(), *where]) for words in ("checktable", "exporttable -salvage " + folder + "/dump")]
codes(sys.argv[2])  # imports what this user alone may read
if os.geteuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
print(codes(sys.argv[1]))
"""


@pytest.mark.parametrize("closed", ["meta/data.mdb", "content/data.mdb", "meta/lock.mdb", "content", "."])
def test_missing_permission_is_not_reported_as_damage(closed):
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        sound = Path(folder, "sound")
        for where in (folder, sound):
            store = open_store(Configuration(), WebPage, f"embedded:{where}")
            store.create()
            write(store, {"a": page_at()})
            store.close()
        table = Path(folder, "webpage")
        for path in (table, *table.rglob("*")):
            path.chmod(0o777 if path.is_dir() else 0o666)
        Path(folder).chmod(0o777)  # for the dump
        (table / closed).chmod(0)
        command = [sys.executable, "-c", CHECK_WITHOUT_PERMISSION, folder, str(sound)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        for path in (table, table / "content"):
            path.chmod(0o755)
        assert done.returncode == 0, done.stderr
        codes = [0, 0] if closed == "meta/lock.mdb" else [4, 4]  # reading needs no lock file
        if codes != [0, 0]:
            assert "cannot read or write in webpage" in done.stderr, done.stderr
            assert "give this user the right" in done.stderr
        assert "restore" not in done.stdout + done.stderr
        assert done.stdout.splitlines()[-1] == str(codes), done.stderr


def test_damaged_content_is_named_in_error(store):
    write(store, {"a": with_contents(1)["k00000"]})
    page = WebPage(fields=frozenset())
    page.content = b"compressible " * 100
    write(store, {"b": page})
    with store.get_files().content.begin(write=True) as txn:
        cursor = txn.cursor()
        cursor.last()
        txn.put(cursor.key(), b"\1damaged")
    with pytest.raises(StoreError, match="damaged"):
        store.get("b")
