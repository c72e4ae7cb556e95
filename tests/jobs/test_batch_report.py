"""How far batches are, whatever jobs ran in whatever order, and who is at work on them."""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from contextlib import suppress
from typing import Any

import pytest

from nutch2py.conf import Configuration
from nutch2py.errors import UnknownBatchError
from nutch2py.jobs import works
from nutch2py.jobs.batch_report import age_text, open_batches
from nutch2py.jobs.batchlist import BatchLists, State
from nutch2py.jobs.beginning import begin
from nutch2py.jobs.fetch import fetch
from nutch2py.jobs.generate import generate
from nutch2py.jobs.index import index
from nutch2py.jobs.inject import inject
from nutch2py.jobs.locks import holding
from nutch2py.jobs.parse import parse
from nutch2py.jobs.readdb import print_batches
from nutch2py.jobs.updatedb import updatedb
from nutch2py.mapreduce.held import HOLDING
from nutch2py.table import Query, open_store
from nutch2py.webpage import Mark, WebPage
from tests.jobs import crawl
from tests.jobs.beside import A, B, make_batch


class TestBatches:
    def test_states_after_every_job_with_all(self, conf: Configuration, tmp_path: Any) -> None:
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
        return [(batch.batch_id, batch.state, batch.count, batch.done) for batch in open_batches(conf)]

    def test_a_part_that_is_done_and_who_is_at_work(
        self, conf: Configuration, capsys: pytest.CaptureFixture[str]
    ) -> None:
        make_batch(conf, A, "http://a.example/", "http://a.example/2", "http://a.example/3")
        make_batch(conf, "c d/3", "http://a.example/2", **{Mark.FETCH: "c d/3"})
        with begin(conf, works.FETCH, batch_id=A):
            print_batches(conf)
            plain = capsys.readouterr().out.splitlines()
            print_batches(conf, as_json=True)
            told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert [line.split("\t")[:2] + line.split("\t")[3:5] for line in plain] == [
            [A, "generated", "3", "2"],
            ["c d/3", "fetched", "1", "1"],
        ]
        assert f"({os.getpid()})" in plain[0].split("\t")[6]
        assert plain[1].split("\t")[6] == "-"
        assert (told[0]["done"], told[0]["count"], told[1]["state"]) == (2, 3, "fetched")
        assert told[0]["at_work"][0].startswith("fetch on ")

    def test_a_generate_that_died_is_interrupted_and_one_at_work_is_not(self, conf: Configuration) -> None:
        open_store(conf, WebPage).create()
        BatchLists(conf).set_state(A, State.GENERATING)
        assert self.states(conf) == [(A, "interrupted", 0, None)]
        with begin(conf, works.GENERATE, batch_id=A):
            assert self.states(conf) == [(A, "generating", 0, None)]

    def test_ages(self) -> None:
        assert [age_text(seconds) for seconds in (7, 907, 7_261, 273_600)] == ["0m7s", "15m7s", "2h1m", "3d4h"]

    def test_index_all_leaves_a_batch_alone_at_which_another_job_works(
        self, conf: Configuration, tmp_path: Any
    ) -> None:
        conf.set("index.embedded.path", str(tmp_path / "index"))
        make_batch(conf, A, "http://a.example/")
        make_batch(conf, B, "http://b.example/")
        for batch in (A, B):
            BatchLists(conf).set_state(batch, State.UPDATED, 1)
        with holding(conf, BatchLists(conf), works.UPDATEDB.on(B)):
            token = HOLDING.set("")
            index(conf, "-all")
            HOLDING.reset(token)
        assert [state.batch_id for state in BatchLists(conf).states()] == [B]


def by_the_rows(conf: Configuration) -> dict[str, tuple[str, int]]:
    """Return of each batch what was done last with any of its rows, and with how many, by the marks of all rows."""
    counts: dict[str, Counter[str]] = {}
    for _, page in open_store(conf, WebPage).scan(Query(frozenset({WebPage.markers}))):
        batch = page.markers.get(Mark.GENERATE)
        if batch is not None:
            done = counts.setdefault(batch, Counter())
            done["generated"] += 1
            done["fetched"] += page.markers.get(Mark.FETCH) == batch
            done["parsed"] += page.markers.get(Mark.PARSE) == batch
    last = {batch: next(name for name in ("parsed", "fetched", "generated") if counts[batch][name]) for batch in counts}
    return {batch: (name, counts[batch][name]) for batch, name in last.items()}


@pytest.mark.parametrize("seed", [2, 3])
def test_states_are_those_of_the_rows_after_jobs_in_any_order(conf: Configuration, tmp_path: Any, seed: int) -> None:
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
            expected, reports = by_the_rows(conf), {report.batch_id: report for report in open_batches(conf)}
            told = {name: (each.state, each.done) for name, each in reports.items() if each.state != State.UPDATED}
            assert told == expected, f"step {step}: {job.__name__} {batch}"
            for each in reports.values():
                assert (each.at_work, each.batch_id in made) == ((), True)
                assert each.state != State.UPDATED or each.done == each.count > 0
            seen.update(each.state for each in reports.values())
    assert seen.keys() >= {"generated", "fetched", "parsed", "updated"}
