"""Score updates in the embedded index without documents: searches find the same as after indexing again."""

from __future__ import annotations

import errno
import itertools
import json
import multiprocessing
import os
import random
import shutil
import signal
import threading
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import pytest

from nutch2py.backends import index_fields
from nutch2py.backends.embedded_index import index_directory, score_columns
from nutch2py.backends.embedded_index.index_directory import SCORES_TEMP_DIR, index_path
from nutch2py.conf.configuration import Configuration
from nutch2py.errors import IndexingError
from nutch2py.indexer.index_writers import IndexWriters
from nutch2py.records.document import NutchDocument, format_java_float
from nutch2py.search.engines.embedded_searcher import EmbeddedSearcher
from nutch2py.search.query.query_plan import SearchOptions
from tests.indexer.pages import doc

DOCUMENTS = 60


@pytest.fixture
def conf(tmp_path: Path) -> Configuration:
    return at(tmp_path / "index")


def at(folder: Path, **properties: object) -> Configuration:
    given = {name.replace("__", "."): str(value) for name, value in properties.items()}
    return Configuration.load(overrides={"index.embedded.path": str(folder), **given})


def document(number: int, score: float | None) -> NutchDocument:
    """Return a document with values in every column, or without some."""
    fields: dict[str, str | list[str]] = {
        "url": f"http://www.host{number % 7}.org/folder{number % 3}/page/{number}",
        "host": f"www.host{number % 7}.org",
        "title": f"Page {number}",
        "content": "word " * (1 + number % 5) + f"and {number}",
        "boost": str(1 + number % 4),
    }
    if number % 4:
        fields |= {"type": ["text/html", "text", "html"], "lang": "en", "tstamp": f"20{number % 20:02}-03-01T00:00:00Z"}
    if score is not None:
        fields["pagerank"] = format_java_float(score)
    return doc(f"org.host{number % 7}.www:http/folder{number % 3}/page/{number}", **fields)


def write(conf: Configuration, documents: list[NutchDocument], deleted: tuple[str, ...] = ()) -> None:
    with IndexWriters(conf) as writers:
        for each in documents:
            writers.write(each)
        for each in deleted:
            writers.delete(each)
        writers.commit()


def set_scores(conf: Configuration, scores: dict[str, float], documents: dict[str, NutchDocument] | None = None,
               share: float = 0.0) -> dict[str, int]:  # fmt: skip
    with IndexWriters(conf) as writers:
        counts = writers.update_scores(scores, share, lambda ids: [(documents or {})[each] for each in ids])
        writers.commit()
    return {name: count for name, count in counts.items() if count}


def answers(conf: Configuration) -> dict[str, object]:
    """Return results of all kinds of queries: hits with scores and fields, facets, filters, newest first."""
    searcher = EmbeddedSearcher(conf)
    found: dict[str, object] = {"count": searcher.count()}
    for query in ("word", "page", "host:host3.org", "12", "pagerank:1.5"):
        result = searcher.search(query, 0, 100, with_facets=True)
        scored = [(-round(hit.score, 5), hit.fields) for hit in result.hits]
        found[query] = result.total, sorted(scored, key=_by_score)
        found[f"facets {query}"] = result.facets
    for narrowed in (
        SearchOptions.from_filters({"host": "www.host2.org"}),
        SearchOptions.from_filters({"path": "www.host2.org/folder1/"}),
    ):
        hits = searcher.search("word", 0, 100, narrowed).hits
        found[str(narrowed)] = sorted([(-round(hit.score, 5), hit.fields) for hit in hits], key=_by_score)
    found["newest"] = [
        hit.fields.get("tstamp", "") for hit in searcher.search("word", 0, 100, SearchOptions(newest_first=True)).hits
    ]
    return found


def _by_score(hit: tuple[float, dict[str, str]]) -> tuple[float, str]:
    return hit[0], hit[1]["id"]


def made(folder: Path, scores: list[float | None], **properties: object) -> Configuration:
    """Yield an index of all documents in several segments, some of them deleted."""
    conf = at(folder, **properties)
    for start in range(0, DOCUMENTS, 20):
        write(conf, [document(number, scores[number]) for number in range(start, start + 20)])
    write(conf, [], deleted=(document(5, None).id, document(41, None).id))
    return conf


def drawn(seed: int, low: float = 0.2, high: float = 5.0) -> list[float | None]:
    chance = random.Random(seed)
    return [None if number % 6 == 5 else chance.uniform(low, high) for number in range(DOCUMENTS)]


@pytest.mark.parametrize("fields", ["pagerank", "pagerank^0.5,boost^0.3", "boost"])
def test_score_update_answers_equal_rebuilt_index(fields: str, tmp_path: Path) -> None:
    before, after = drawn(1), [each or 0.5 for each in drawn(2)]
    changed = made(tmp_path / "changed", before, index__weight__fields=fields)
    rebuilt = made(tmp_path / "rebuilt", [*after], index__weight__fields=fields)
    unchanged = answers(changed)
    scores = {document(number, None).id: float(format_java_float(score)) for number, score in enumerate(after)}
    assert set_scores(changed, scores) == {"alone": DOCUMENTS - 2, "absent": 2}
    assert answers(changed) == answers(rebuilt) != unchanged
    assert set_scores(changed, scores) == {"same": DOCUMENTS - 2, "absent": 2}


def test_later_writes_deletes_and_merges_keep_scores(tmp_path: Path) -> None:
    after = [each or 0.5 for each in drawn(2)]
    changed, rebuilt = made(tmp_path / "changed", drawn(1)), made(tmp_path / "rebuilt", [*after])
    set_scores(
        changed, {document(number, None).id: float(format_java_float(score)) for number, score in enumerate(after)}
    )
    for conf in (changed, rebuilt):
        for number in range(60, 72):  # each a segment of its own: tantivy merges the small ones
            write(conf, [document(number, 1.0)], deleted=(document(number - 40, None).id,))
        write(conf, [document(3, 2.0)])
    assert answers(changed) == answers(rebuilt)
    segments = json.loads((index_path(changed) / "meta.json").read_text())["segments"]
    assert len(segments) < 12, "nothing was merged"


def test_only_differences_above_share_are_written(conf: Configuration) -> None:
    write(conf, [document(number, 1.0) for number in range(3)])
    scores = {
        document(0, None).id: 1.019,
        document(1, None).id: 1.03,
        document(2, None).id: 0.97,
        "org.none:http/": 2.0,
    }
    assert set_scores(conf, scores, share=0.02) == {"same": 1, "alone": 2, "absent": 1}
    found = {fields["id"]: fields.get("pagerank") for _, fields in answers(conf)["word"][1]}  # type: ignore[index]
    assert list(found.values()).count("1.0") == 1


def test_large_weight_change_rewrites_document(conf: Configuration) -> None:
    write(conf, [document(number, 1.0) for number in range(3)])
    far = {document(1, None).id: 9000.0}
    assert set_scores(conf, far, {document(1, None).id: document(1, 9000.0)}) == {"whole": 1}
    assert answers(conf)["word"][1][0][1]["pagerank"] == "9000.0"  # type: ignore[index]
    back = {document(1, None).id: 1.0, document(2, None).id: 2.0}
    assert set_scores(conf, back, {document(1, None).id: document(1, 1.0)}) == {"whole": 1, "alone": 1}


@pytest.mark.parametrize("layout", [1, 2, 3])
def test_older_layout_rewrites_documents(layout: int, conf: Configuration) -> None:
    with pytest.MonkeyPatch.context() as then:
        then.setattr(index_directory, "SCHEMA_VERSION", layout)
        write(conf, [document(number, 1.0) for number in range(3)])
    scores = {document(1, None).id: 2.0, document(2, None).id: 1.0}
    assert set_scores(conf, scores, {document(1, None).id: document(1, 2.0)}) == {"whole": 1, "same": 1}
    searcher = EmbeddedSearcher(conf)
    assert searcher.index_dir.layout == layout
    assert searcher.get_document(document(1, None).id) == document(1, 2.0).to_json()


def test_running_searcher_sees_new_scores_after_reload(conf: Configuration) -> None:
    write(conf, [document(number, 1.0) for number in range(10)])
    searcher = EmbeddedSearcher(conf)
    before = searcher.search("word").hits
    for score in (2.0, 3.0, 4.0):  # the files of the first are collected meanwhile
        set_scores(conf, {document(0, None).id: score})
    assert searcher.search("word").hits == before
    assert (searcher.get_document(document(0, None).id) or {})["pagerank"] == "1.0"
    searcher = searcher.reopen()
    assert (searcher.get_document(document(0, None).id) or {})["pagerank"] == "4.0"


def test_no_file_is_left_behind(conf: Configuration) -> None:
    write(conf, [document(number, 1.0) for number in range(10)])
    folder = index_path(conf)
    before = len([*folder.iterdir()])
    for score in (2.0, 3.0, 4.0):
        set_scores(conf, {document(0, None).id: score})
    assert len([*folder.iterdir()]) == before
    assert not (folder / SCORES_TEMP_DIR).exists()


def test_missing_index_is_reported(conf: Configuration) -> None:
    assert set_scores(conf, {"org.none:http/": 1.0}) == {"absent": 1}


STEPS = ("_link_or_copy", "_sync_dir", "_replace_json", "_commit_segments")
"""Disk operations of replace_scores, apart from tantivy's in the temporary index."""
FORK = multiprocessing.get_context("fork")


def stepping(patch: pytest.MonkeyPatch, reach: Callable[[str], object]) -> None:
    """Call ``reach`` before and after each disk operation, and for the temporary index."""

    def traced(name: str, step: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(step)
        def run(*arguments: Any) -> Any:
            reach(f"{name} before")
            result = step(*arguments)
            reach(f"{name} after")
            return result

        return run

    for name in STEPS:
        patch.setattr(score_columns, name, traced(name, getattr(score_columns, name)))
    columns = score_columns.SegmentView.write_columns
    patch.setattr(score_columns.SegmentView, "write_columns", traced("columns", columns))


def die_at(number: int, conf: Configuration, scores: dict[str, float]) -> None:
    """Kill this process at a step."""
    steps = itertools.count()
    with pytest.MonkeyPatch.context() as patch:
        stepping(patch, lambda _: next(steps) == number and os.kill(os.getpid(), signal.SIGKILL))
        set_scores(conf, scores)


def test_killed_at_every_step_leaves_old_or_new_state(conf: Configuration) -> None:
    write(conf, [document(number, 1.0) for number in range(6)])
    write(conf, [document(number, 1.0) for number in range(6, 9)])
    folder, scores = index_path(conf), {document(number, None).id: 2.0 for number in range(0, 9, 2)}
    reached: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        stepping(patch, reached.append)
        set_scores(at_copy(folder, "whole"), scores)
    after, before = answers(at(folder.parent / "whole")), answers(conf)
    assert reached.count("_replace_json before") == 2
    outcomes = []
    kinds = ["", *(name.split()[0] for name in reached), ""]
    borders = [n for n in range(len(reached)) if len({*kinds[n : n + 3]}) > 1]  # of many links the first and the last
    for number in borders:
        killed = at_copy(folder, f"killed-{number}")

        child = FORK.Process(target=die_at, args=(number, killed, scores))
        child.start()
        child.join()
        assert child.exitcode == -signal.SIGKILL, reached[number]
        found = answers(killed)
        assert found in (before, after), reached[number]
        outcomes.append(found == after)
        write(killed, [document(20, 1.0)])  # a commit removes files of the killed process
        write(killed, [], deleted=(document(20, None).id,))
        set_scores(killed, scores)
        assert answers(killed) == after, reached[number]
        living = json.loads((index_path(killed) / "meta.json").read_text())["segments"]
        files = [path.name.partition(".")[0] for path in index_path(killed).glob("*.fast")]
        assert {*files} == {each["segment_id"].replace("-", "") for each in living}, reached[number]
    assert outcomes == sorted(outcomes)
    assert set(outcomes) == {False, True}


def at_copy(folder: Path, name: str) -> Configuration:
    shutil.copytree(folder, folder.parent / name)
    return at(folder.parent / name)


@pytest.mark.parametrize("step", [*STEPS, "columns"])
def test_full_disk_leaves_index_unchanged(step: str, conf: Configuration) -> None:
    write(conf, [document(number, 1.0) for number in range(6)])
    before, scores = answers(conf), {document(0, None).id: 2.0}

    def full(name: str) -> None:
        if name == f"{step} before":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.MonkeyPatch.context() as patch:
        stepping(patch, full)
        with pytest.raises(IndexingError, match=r"full|space"):
            set_scores(conf, scores)
    assert answers(conf) == before
    assert set_scores(conf, scores) == {"alone": 1}
    assert answers(conf) != before


def test_disk_without_hard_links_uses_copies(conf: Configuration, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    write(conf, [document(number, 1.0) for number in range(6)])
    monkeypatch.setattr(Path, "hardlink_to", fail)
    assert set_scores(conf, {document(0, None).id: 2.0}) == {"alone": 1}
    assert (EmbeddedSearcher(conf).get_document(document(0, None).id) or {})["pagerank"] == "2.0"


def test_concurrent_score_updates_and_writer_are_serialized(conf: Configuration) -> None:
    """Each waits for the lock; a later one finds segments with other names than it had read."""
    write(conf, [document(number, 1.0) for number in range(12)])
    first = {document(number, None).id: 2.0 for number in range(4)}
    second = {document(number, None).id: 3.0 for number in range(4, 8)}
    with IndexWriters(conf) as one, IndexWriters(conf) as other, IndexWriters(conf) as third:
        none: Callable[[Any], list[NutchDocument]] = lambda ids: []  # noqa: E731
        assert one.update_scores(first, 0.0, none)["alone"] == 4
        assert other.update_scores(second, 0.0, none)["alone"] == 4
        third.delete(document(0, None).id)
        third.write(document(5, 1.5))
        threads = [threading.Thread(target=each.commit) for each in (one, other, third)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    found = {number: EmbeddedSearcher(conf).get_document(document(number, None).id) for number in range(12)}
    assert found[0] is None
    shown = [float((found[number] or {})["pagerank"]) for number in range(1, 12)]
    assert shown[:4] == [2.0, 2.0, 2.0, 3.0]
    assert shown[5:] == [3.0, 3.0, 1.0, 1.0, 1.0, 1.0]
    assert shown[4] in (1.5, 3.0)  # of one of the two concurrent changes


def test_foreign_tantivy_files_are_kept(conf: Configuration) -> None:
    pages = {page.id: page for page in (document(number, 1.0) for number in range(5))}
    write(conf, [*pages.values()])
    segment = next(index_path(conf).glob("*.term"))
    segment.with_suffix(".vectors").touch()
    before = answers(conf)
    with pytest.raises(IndexingError, match=r"unknown files in .* \(vectors\): run index -reindex instead"):
        set_scores(conf, dict.fromkeys(pages, 7.0))
    assert answers(conf) == before


def test_every_index_column_is_rebuilt(conf: Configuration) -> None:
    """A column that is added to the schema and not copied would be lost with the first score update."""
    write(conf, [document(1, 1.0)])
    fields = json.loads((index_path(conf) / "meta.json").read_text())["schema"]
    columns = {each["name"] for each in fields if each["options"].get("fast")}
    assert columns == {
        *score_columns.NUMERIC_COLUMNS,
        *(f"{index_fields.FACET_PREFIX}{name}" for name in index_fields.FACET_NAMES),
    }
