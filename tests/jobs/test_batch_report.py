"""Batch report: progress of batches after any order of jobs, and the jobs that work on them."""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from contextlib import suppress
from typing import Any

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import UnknownBatchError
from nutch2py.jobs.batches.batch_lists import BatchListStore, BatchState
from nutch2py.jobs.fetch.fetch_job import fetch
from nutch2py.jobs.generate.generate_job import generate
from nutch2py.jobs.index.index_job import index
from nutch2py.jobs.inject.inject_job import inject
from nutch2py.jobs.job_context import open_job
from nutch2py.jobs.locking import lock_scopes
from nutch2py.jobs.locking.job_lock import hold_job_lock
from nutch2py.jobs.monitoring.batch_report import format_age, list_open_batches
from nutch2py.jobs.parse_job import parse
from nutch2py.jobs.readdb.readdb_commands import print_batches
from nutch2py.jobs.updatedb.updatedb_job import updatedb
from nutch2py.mapreduce.lock_check import CURRENT_LOCK_TOKEN
from nutch2py.records.webpage import Mark, WebPage
from nutch2py.table import TableQuery, open_store
from tests.jobs import crawl
from tests.jobs.concurrent_commands import A, B, make_batch


class TestBatches:
    def test_states_after_every_job_on_all_are_reported(self, conf: Configuration, tmp_path: Any) -> None:
        with crawl.site() as url:
            for name, value in crawl.SETTINGS.items():
                conf.set(name, value)
            conf.set("index.embedded.path", str(tmp_path / "index"))
            (tmp_path / "seeds").write_text(f"{url}/0\n{url}/1\n")
            inject(conf, str(tmp_path / "seeds"))
            generate(conf, batch_id=A)
            assert self.states(conf) == [(A, "generated", 2, 2)]
            fetch(conf, "-all")
            assert self.states(conf) == [(A, "fetched", 2, 2)]
            parse(conf, "-all")
            assert self.states(conf) == [(A, "parsed", 2, 2)]
            updatedb(conf, "-all")
            assert self.states(conf) == [(A, "updated", 2, 2)]
            index(conf, "-all")
            assert self.states(conf) == []

    def states(self, conf: Configuration) -> list[tuple[str, str, int, int | None]]:
        return [(batch.batch_id, batch.state, batch.count, batch.done) for batch in list_open_batches(conf)]

    def test_partial_batch_and_running_job_are_reported(
        self, conf: Configuration, capsys: pytest.CaptureFixture[str]
    ) -> None:
        make_batch(conf, A, "http://a.example/", "http://a.example/2", "http://a.example/3")
        make_batch(conf, "c d/3", "http://a.example/2", **{Mark.FETCH: "c d/3"})
        with open_job(conf, lock_scopes.FETCH, batch_id=A):
            print_batches(conf)
            plain = capsys.readouterr().out.splitlines()
            print_batches(conf, as_json=True)
            report = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert [line.split("\t")[:2] + line.split("\t")[3:5] for line in plain] == [
            [A, "generated", "3", "2"],
            ["c d/3", "fetched", "1", "1"],
        ]
        assert f"({os.getpid()})" in plain[0].split("\t")[6]
        assert plain[1].split("\t")[6] == "-"
        assert (report[0]["done"], report[0]["count"], report[1]["state"]) == (2, 3, "fetched")
        assert report[0]["running_jobs"][0].startswith("fetch on ")

    def test_dead_generate_is_interrupted_and_running_is_not(self, conf: Configuration) -> None:
        open_store(conf, WebPage).create()
        BatchListStore(conf).set_state(A, BatchState.GENERATING)
        assert self.states(conf) == [(A, "interrupted", 0, None)]
        with open_job(conf, lock_scopes.GENERATE, batch_id=A):
            assert self.states(conf) == [(A, "generating", 0, None)]

    def test_ages_are_reported(self) -> None:
        assert [format_age(seconds) for seconds in (7, 907, 7_261, 273_600)] == ["0m7s", "15m7s", "2h1m", "3d4h"]

    def test_index_all_skips_batch_locked_by_other_job(self, conf: Configuration, tmp_path: Any) -> None:
        conf.set("index.embedded.path", str(tmp_path / "index"))
        make_batch(conf, A, "http://a.example/")
        make_batch(conf, B, "http://b.example/")
        for batch in (A, B):
            BatchListStore(conf).set_state(batch, BatchState.UPDATED, 1)
        with hold_job_lock(conf, BatchListStore(conf), lock_scopes.UPDATEDB.for_batch(B)):
            token = CURRENT_LOCK_TOKEN.set("")
            index(conf, "-all")
            CURRENT_LOCK_TOKEN.reset(token)
        assert [state.batch_id for state in BatchListStore(conf).list_records()] == [B]


def by_the_rows(conf: Configuration) -> dict[str, tuple[str, int]]:
    """Return of each batch what was done last with any of its rows, and with how many, by the marks of all rows."""
    counts: dict[str, Counter[str]] = {}
    for _, page in open_store(conf, WebPage).scan(TableQuery(frozenset({WebPage.markers}))):
        batch = page.markers.get(Mark.GENERATE)
        if batch is not None:
            done = counts.setdefault(batch, Counter())
            done["generated"] += 1
            done["fetched"] += page.markers.get(Mark.FETCH) == batch
            done["parsed"] += page.markers.get(Mark.PARSE) == batch
    last = {batch: next(name for name in ("parsed", "fetched", "generated") if counts[batch][name]) for batch in counts}
    return {batch: (name, counts[batch][name]) for batch, name in last.items()}


@pytest.mark.parametrize("seed", [2, 3])
def test_batch_states_match_rows_after_any_job_order(conf: Configuration, tmp_path: Any, seed: int) -> None:
    """With ids and -all, in the right order and not; a batch without open rows is updated, until it is indexed."""
    chance = random.Random(seed)
    for name, value in {**crawl.SETTINGS, "index.embedded.path": str(tmp_path / "index")}.items():
        conf.set(name, value)
    conf.set("db.fetch.interval.default", "1")
    made: list[str] = []
    seen: Counter[str] = Counter()
    with crawl.site() as url:
        (tmp_path / "seeds").write_text("".join(f"{line}\n" for line in crawl.seeds(url)))
        inject(conf, str(tmp_path / "seeds"))
        for step in range(36):
            job = chance.choice([generate, generate, fetch, fetch, fetch, parse, parse, parse, updatedb, index])
            batch = chance.choice(["-all", *made[-3:]])
            if job is generate:
                if generate(conf, batch_id=f"g-{step}", top_n=chance.randint(1, 6), add_days=400).urls:
                    made.append(f"g-{step}")
            else:
                with suppress(UnknownBatchError):
                    job(conf, batch)
            expected, reports = by_the_rows(conf), {report.batch_id: report for report in list_open_batches(conf)}
            states = {
                name: (each.state, each.done) for name, each in reports.items() if each.state != BatchState.UPDATED
            }
            assert states == expected, f"step {step}: {job.__name__} {batch}"
            for each in reports.values():
                assert (each.running_jobs, each.batch_id in made) == ((), True)
                assert each.state != BatchState.UPDATED or each.done == each.count > 0
            seen.update(each.state for each in reports.values())
    assert seen.keys() >= {"generated", "fetched", "parsed", "updated"}
