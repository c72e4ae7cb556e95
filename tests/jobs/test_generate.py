"""GeneratorJob: selection, order, partitions, and the effect of marks."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar
from zlib import crc32

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError
from nutch2py.jobs.batches.batch_lists import BatchListStore, BatchState
from nutch2py.jobs.fetch.fetch_job import fetch
from nutch2py.jobs.generate.batch_writer_job import interleave_hosts
from nutch2py.jobs.generate.generate_job import generate
from nutch2py.jobs.generate.top_n import CandidateEntry, TopNSelector, format_entry, get_url_and_moved_marks
from nutch2py.jobs.inject.inject_job import inject
from nutch2py.jobs.updatedb.updatedb_job import updatedb
from nutch2py.mapreduce.driver import JobResult
from nutch2py.mapreduce.job_parameters import ALL
from nutch2py.mapreduce.mrjob_protocols import descending_sort_key
from nutch2py.records.webpage import Mark
from nutch2py.table.embedded.embedded_batch import EmbeddedBatch
from nutch2py.url.url_partitioner import URLPartitioner
from nutch2py.url.url_parts import domain_of, host_of
from tests.jobs.rows import fetchlist, marked, pages, put

DAY = 86_400_000
NOW = 1_700_000_000_000


def chosen(conf: Configuration, batch: str = "b", **options: Any) -> set[str]:
    """Make a batch; return the URLs that carry its mark."""
    batch_id, count = generate(conf, batch_id=batch, now=options.pop("now", NOW), **options)
    found = marked(conf, Mark.GENERATE, batch_id)
    assert len(found) == count
    return found


def skewed(hosts: int, of_first: int) -> dict[str, dict[str, Any]]:
    """Return rows of many hosts, of which the first has most; scores differ."""
    chance = random.Random(hosts)
    urls = [f"http://h0.example/{number}.html" for number in range(of_first)]
    urls += [f"http://h{host}.example/{number}.html" for host in range(1, hosts) for number in range(1 + host % 3)]
    return {url: {"score": round(chance.uniform(0, 10), 3)} for url in urls}


class TestTheSixRequirements:
    """Of a fetchlist, as the original's Generator names them."""

    @pytest.fixture
    def conf(self, conf: Configuration) -> Configuration:
        conf.set("mapreduce.job.reduces", "3")
        conf.set("mapreduce.job.maps", "4")
        conf.set("generate.max.count", "20")
        put(conf, skewed(40, 200))
        return conf

    def test_all_urls_of_host_are_in_one_partition(self, conf: Configuration) -> None:
        chosen(conf)
        where: dict[str | None, set[str]] = {}
        for partition, urls in fetchlist(conf, "b").items():
            for url in urls:
                where.setdefault(host_of(url), set()).add(partition)
        assert len(where) == 40
        assert {len(partitions) for partitions in where.values()} == {1}

    def test_urls_of_host_are_spread_over_partition(self, conf: Configuration) -> None:
        chosen(conf)
        urls = next(urls for urls in fetchlist(conf, "b").values() if any("//h0." in url for url in urls))
        places = [place for place, url in enumerate(urls) if host_of(url) == "h0.example"]
        gaps = {after - before for before, after in pairwise(places)}
        even = len(urls) / len(places)
        assert len(places) == 20
        assert max(gaps) <= 2 * even + 2
        assert max(gaps) > 1

    def test_max_count_limits_urls_per_host(self, conf: Configuration) -> None:
        counts = Counter(map(host_of, chosen(conf)))
        assert max(counts.values()) == counts["h0.example"] == 20

    def test_highest_scores_are_chosen_per_host_and_overall(self, conf: Configuration) -> None:
        rows = pages(conf)
        of_first = sorted((page.score for url, page in rows.items() if host_of(url) == "h0.example"), reverse=True)
        found = chosen(conf, top_n=50)
        assert sorted((rows[url].score for url in found if host_of(url) == "h0.example"), reverse=True) == [
            score for score in of_first[:20] if score >= min(rows[url].score for url in found)
        ]
        left = [page.score for url, page in rows.items() if url not in found and host_of(url) != "h0.example"]
        assert max(left) <= min(rows[url].score for url in found)

    @pytest.mark.parametrize("share", ["0", "1"])
    def test_top_n_of_zero_selects_nothing(self, conf: Configuration, share: str) -> None:
        """As in Nutch, by a scan or by the due index."""
        conf.set("generate.due.share", share)
        assert generate(conf, batch_id="none", top_n=0, now=NOW).urls == 0
        assert BatchListStore(conf).get_record("none") is None
        assert marked(conf, Mark.GENERATE) == set()

    def test_top_n_limits_batch(self, conf: Configuration) -> None:
        assert len(chosen(conf, top_n=50)) == 50

    def test_partitions_equal_fetch_tasks(self, conf: Configuration) -> None:
        chosen(conf)
        assert sorted(fetchlist(conf, "b")) == ["00000", "00001", "00002"]


@pytest.mark.parametrize("maps", ["1", "2", "7"])
@pytest.mark.parametrize("cap", ["-1", "5"])
def test_top_n_is_exact_for_any_number_of_tasks(conf: Configuration, maps: str, cap: str) -> None:
    """Nutch gives each reducer topN / reducers, and comes up short when hosts are of different size."""
    rows = skewed(30, 3000)
    put(conf, rows)
    conf.set("generate.max.count", cap)
    conf.set("mapreduce.job.maps", maps)
    conf.set("mapreduce.job.reduces", "4")
    order = sorted(rows, key=lambda url: (-rows[url]["score"], url))
    counts: Counter[str | None] = Counter()
    expected: list[str] = []
    for url in order:
        counts[host_of(url)] += 1
        if cap == "-1" or counts[host_of(url)] <= int(cap):
            expected.append(url)
    assert chosen(conf, top_n=60) == set(expected[:60])


@pytest.mark.parametrize("maps", ["1", "2"])
def test_urls_normalizing_to_same_count_once_in_top_n(conf: Configuration, maps: str) -> None:
    conf.set("mapreduce.job.maps", maps)
    good = {f"http://a.example/x/../p{number}.html": {"score": 9.0} for number in range(10)}
    good |= {f"http://a.example/y/../p{number}.html": {"score": 8.0} for number in range(10)}
    put(conf, good | {f"http://b.example/{number}.html": {"score": 1.0} for number in range(30)})
    found = chosen(conf, top_n=15)
    assert len(found) == 15
    assert sum("a.example" in url for url in found) == 10


Numbers = st.tuples(st.integers(1, 60), st.integers(-1, 4), st.integers(1, 5), st.integers(0, 2**32))


@settings(max_examples=40, deadline=None)
@given(Numbers)
def test_bounded_selection_equals_sort_and_cut(numbers: tuple[int, int, int, int]) -> None:
    """Also when it is merged from several map tasks; rows below its worst score are not offered."""
    limit, cap, tasks, seed = numbers
    chance = random.Random(seed)
    entries = []
    for number in range(chance.randrange(4000)):
        score, group = chance.choice((0.0, 0.5, 1.0, 2.0)) + chance.randrange(3), f"g{chance.randrange(1 + seed % 7)}"
        own, moved = f"http://{group}/{number:05d}", seed % 2 and chance.random() < 0.2
        target = (f"http://{group}/{number % 50:05d}", "{}") if moved else ()
        entries.append(CandidateEntry(format_entry(descending_sort_key(score), own, *target), group))
    plain: list[CandidateEntry] = []
    counts: Counter[str] = Counter()
    seen: set[str] = set()
    for entry in sorted(entries):
        url, _ = get_url_and_moved_marks(entry.text)
        if url in seen:
            continue
        seen.add(url)
        counts[entry.group] += 1
        if cap <= 0 or counts[entry.group] <= cap:
            plain.append(entry)
    whole = TopNSelector(limit, cap)
    for task in range(tasks):
        part = TopNSelector(limit, cap)
        for entry in entries[task::tasks]:
            if not (part.worst_score and entry.text[:16] > part.worst_score):
                part.add(entry)
        for entry in part.get_best():
            whole.add(entry)
    assert whole.get_best() == plain[:limit]


@given(st.dictionaries(st.sampled_from("abcdefgh"), st.integers(1, 30), min_size=1))
def test_spread_keeps_all_urls_and_host_order(sizes: dict[str, int]) -> None:
    hosts = {name: [(f"{name}{number:03d}", "") for number in range(size)] for name, size in sizes.items()}
    order = interleave_hosts(hosts)
    assert sorted(order) == sorted(url for urls in hosts.values() for url in urls)
    for name, urls in hosts.items():
        assert [url for url in order if url[0][0] == name] == urls


def test_hosts_with_colliding_hashes_lose_nothing(conf: Configuration) -> None:
    first, second = "plumless.example", "buckeroo.example"
    assert crc32(first.encode()) == crc32(second.encode())
    rows = {f"http://{host}/{number}": {"score": 1.0} for host in (first, second) for number in range(50)}
    same = [f"http://{name}.example/" for name in ("aaBB", "BBaa", "AaBB", "AaAa", "BBBB")]
    rows |= {url.lower().replace("//", "//x.") + url[7:11]: {"score": 1.0} for url in same}
    put(conf, rows)
    conf.set("mapreduce.job.reduces", "2")
    partitioner = URLPartitioner(conf)
    assert len({partitioner.partition(url, 2) for url in rows}) == 2
    assert chosen(conf) == set(rows)
    assert sorted(url for urls in fetchlist(conf, "b").values() for url in urls) == sorted(rows)


class TestWhichHostsMeet:
    ROWS: ClassVar = {f"http://h{number}.example/": {"score": 1.0} for number in range(40)}

    @pytest.fixture
    def conf(self, conf: Configuration) -> Configuration:
        conf.set("mapreduce.job.reduces", "2")
        put(conf, self.ROWS)
        return conf

    @staticmethod
    def groups(conf: Configuration, batch: str) -> set[frozenset[str]]:
        return {frozenset(urls) for urls in fetchlist(conf, batch).values()}

    def test_hosts_are_grouped_differently_in_each_batch(self, conf: Configuration) -> None:
        now = int(time.time() * 1000)
        assert chosen(conf, "one", now=now) == chosen(conf, "two", now=now + 8 * DAY) == set(self.ROWS)
        assert len(self.groups(conf, "one")) == len(self.groups(conf, "two")) == 2
        assert self.groups(conf, "one") != self.groups(conf, "two")

    def test_resumed_batch_groups_hosts_equally(self, conf: Configuration) -> None:
        chosen(conf, "one")
        before = fetchlist(conf, "one")
        BatchListStore(conf).set_state("one", BatchState.GENERATING)
        assert chosen(conf, "one") == set(self.ROWS)
        assert fetchlist(conf, "one") == before

    def test_fetch_splits_batch_like_its_list(self, conf: Configuration, monkeypatch: pytest.MonkeyPatch) -> None:
        chosen(conf, "one")
        seeds = []

        def run_job(*arguments: Any, **_: Any) -> JobResult:
            seeds.append(arguments[3].partition_seed)
            return JobResult({})

        monkeypatch.setattr("nutch2py.jobs.fetch.fetch_job.run_job", run_job)
        conf.set("http.agent.name", "probe")
        for batch in ("one", "one", ALL, ALL):
            fetch(conf, batch)
        partitioner = URLPartitioner(conf, seed=seeds[0])
        lists = fetchlist(conf, "one")
        assert all(partitioner.partition(url, 2) == int(number) for number, urls in lists.items() for url in urls)
        assert seeds[0] == seeds[1]
        assert len(set(seeds)) == 3


@pytest.mark.parametrize("job", ["inject", "generate", "updatedb"])
def test_contradictory_schedule_settings_are_rejected_before_start(
    conf: Configuration, tmp_path: Path, job: str
) -> None:
    (tmp_path / "seeds.txt").write_text("http://b.example/\n")
    put(conf, {"http://a.example/": {}})
    chosen(conf, "before")
    conf.set("db.fetch.schedule.class", "AdaptiveFetchSchedule")
    conf.set("db.fetch.schedule.adaptive.sync_delta_rate", "1.5")
    jobs = {
        "inject": partial(inject, conf, str(tmp_path / "seeds.txt")),
        "generate": partial(generate, conf, batch_id="b"),
        "updatedb": partial(updatedb, conf, "before"),
    }
    with pytest.raises(ConfigurationError, match=r"sync_delta_rate is 1\.5: write a number from 0 to 1"):
        jobs[job]()
    assert pages(conf).keys() == {"http://a.example/"}
    state = BatchListStore(conf).get_record("before")
    assert (state is not None and state.state, BatchListStore(conf).get_record("b")) == (BatchState.GENERATED, None)


class TestMarks:
    URL = "http://a.example/"

    def test_marked_row_waits_for_updatedb(self, conf: Configuration) -> None:
        put(conf, {self.URL: {"marks": {Mark.GENERATE: f"{NOW // 1000}-1"}}, "http://b.example/": {}})
        assert chosen(conf) == {"http://b.example/"}

    def test_mark_older_than_delay_is_of_dead_batch(self, conf: Configuration) -> None:
        put(conf, {self.URL: {"marks": {Mark.GENERATE: f"{(NOW - 8 * DAY) // 1000}-1"}}})
        assert chosen(conf) == {self.URL}

    def test_mark_delay_is_configurable(self, conf: Configuration) -> None:
        put(conf, {self.URL: {"marks": {Mark.GENERATE: f"{(NOW - 8 * DAY) // 1000}-1"}}})
        conf.set("crawl.gen.delay", 9 * DAY)
        assert chosen(conf) == set()
        conf.set("crawl.gen.delay", 7 * DAY)
        assert chosen(conf) == {self.URL}

    def test_batch_id_without_time_ages_from_first_sight(self, conf: Configuration) -> None:
        put(conf, {self.URL: {"marks": {Mark.GENERATE: "monday"}}})
        now = int(time.time() * 1000)
        assert chosen(conf, now=now) == set()
        assert chosen(conf, now=now + 6 * DAY) == set()
        assert chosen(conf, now=now + 8 * DAY) == {self.URL}

    def test_dead_own_batch_is_released(self, conf: Configuration) -> None:
        put(conf, {self.URL: {}})
        now = int(time.time() * 1000)
        assert chosen(conf, "one", now=now) == {self.URL}
        assert chosen(conf, "two", now=now + 6 * DAY) == set()
        assert chosen(conf, "three", now=now + 8 * DAY) == {self.URL}

    @pytest.mark.parametrize("batch", [f"{NOW // 1000}-7", "one", "-D"])
    @pytest.mark.parametrize("days", [8, 400, 36_500])
    def test_adddays_takes_no_row_of_open_batch(self, conf: Configuration, batch: str, days: int) -> None:
        """Of a batch made here, of one of Nutch with its time in the id, and of one first seen now."""
        now = int(time.time() * 1000)
        if batch == "one":
            put(conf, {self.URL: {}})
            assert chosen(conf, batch, now=now) == {self.URL}
        else:
            mark = f"{now // 1000}-7" if batch != "-D" else "monday"
            put(conf, {self.URL: {"marks": {Mark.GENERATE: mark}}})
            assert chosen(conf, "first", now=now) == set()  # it sees the batch
        result = generate(conf, batch_id="two", add_days=days, now=now + DAY)
        assert (result.urls, result.count("generator", "already_generated")) == (0, 1)

    @pytest.mark.parametrize("days", [-8, -400])
    def test_negative_adddays_releases_dead_batch(self, conf: Configuration, days: int) -> None:
        """The age of its mark is that by the clock; the row was due before."""
        put(conf, {self.URL: {"marks": {Mark.GENERATE: f"{(NOW - 8 * DAY) // 1000}-1"}, "fetch_time": 0}})
        assert generate(conf, batch_id="two", add_days=days, now=NOW).urls == 1

    def test_adddays_still_selects_rows_due_later(self, conf: Configuration) -> None:
        put(conf, {self.URL: {"fetch_time": NOW + 5 * DAY}})
        assert generate(conf, batch_id="one", now=NOW).urls == 0
        assert generate(conf, batch_id="one", now=NOW, add_days=4.9).urls == 0
        assert generate(conf, batch_id="one", now=NOW, add_days=5).urls == 1

    def test_row_stores_its_batch_id(self, conf: Configuration) -> None:
        put(conf, {self.URL: {"marks": {Mark.DISTANCE: "3"}}})
        chosen(conf, "one")
        page = pages(conf)[self.URL]
        assert page.batch_id == "one"
        assert dict(page.markers) == {Mark.DISTANCE: "3", Mark.GENERATE: "one"}


class TestABatchIdTwice:
    def test_repeated_command_adds_nothing(self, conf: Configuration, capsys: pytest.CaptureFixture[str]) -> None:
        put(conf, {f"http://a.example/{number}": {} for number in range(10)})
        first = chosen(conf, top_n=4)
        assert chosen(conf, top_n=4) == first
        assert "batch b already exists and is not updated yet: nothing was added to it" in capsys.readouterr().out

    def test_interrupted_batch_is_regenerated(self, conf: Configuration) -> None:
        """Of the rows due then: those that the interrupted run marked and this one does not choose are free again."""
        put(conf, {f"http://a.example/{number}": {"score": float(number)} for number in range(10)})
        assert chosen(conf, top_n=4) == {f"http://a.example/{number}" for number in (6, 7, 8, 9)}
        BatchListStore(conf).set_state("b", BatchState.GENERATING)
        put(conf, {f"http://a.example/{number}": {"score": 100.0} for number in (0, 1)})
        best = {f"http://a.example/{number}" for number in (0, 1, 8, 9)}
        assert chosen(conf, top_n=4) == best
        assert marked(conf, Mark.GENERATE, "b") == best
        assert chosen(conf, "c", top_n=2) == {"http://a.example/6", "http://a.example/7"}

    def test_batch_interrupted_twice_is_regenerated(self, conf: Configuration, monkeypatch: pytest.MonkeyPatch) -> None:
        rows = {f"http://a.example/{number}" for number in range(10)}
        put(conf, {url: {} for url in rows})
        first = chosen(conf, top_n=4)
        BatchListStore(conf).set_state("b", BatchState.GENERATING)
        conf.set("joblog.keep", "0")  # its writes are not those of generate
        conf.set("gora.buffer.write.limit", "1")
        write, writes = EmbeddedBatch._write, 0

        class Killed(BaseException):
            """Represents the end of the process."""

        for number in range(1, 16):
            writes = 0

            def die(batch: EmbeddedBatch, number: int = number) -> None:
                nonlocal writes
                writes += 1
                if writes == number:
                    raise Killed
                write(batch)

            monkeypatch.setattr(EmbeddedBatch, "_write", die)
            with pytest.raises(Killed):
                generate(conf, batch_id="b", top_n=4, now=NOW)
        monkeypatch.undo()
        assert chosen(conf, top_n=4) == first
        assert marked(conf, Mark.GENERATE, "b") == first
        assert BatchListStore(conf).is_complete("b")

    def test_fetched_rows_of_interrupted_batch_stay(self, conf: Configuration) -> None:
        put(conf, {f"http://a.example/{number}": {"score": float(number)} for number in range(4)})
        chosen(conf, top_n=2)
        BatchListStore(conf).set_state("b", BatchState.GENERATING)
        put(conf, {"http://a.example/3": {"marks": {Mark.GENERATE: "b", Mark.FETCH: "b"}}})
        assert tuple(generate(conf, batch_id="b", top_n=2, now=NOW)) == ("b", 2)
        assert marked(conf, Mark.GENERATE, "b") == {f"http://a.example/{number}" for number in (1, 2, 3)}
        assert not BatchListStore(conf).is_complete("b")

    def test_nutch_2_batch_is_extended_and_found_by_marks(self, conf: Configuration) -> None:
        put(conf, {"http://a.example/": {"marks": {Mark.GENERATE: "b"}}, "http://b.example/": {}})
        assert tuple(generate(conf, batch_id="b", now=NOW)) == ("b", 1)
        assert marked(conf, Mark.GENERATE, "b") == {"http://a.example/", "http://b.example/"}
        assert not BatchListStore(conf).is_complete("b")

    def test_batch_without_due_rows_leaves_nothing(self, conf: Configuration) -> None:
        put(conf, {"http://a.example/": {"fetch_time": NOW + DAY}})
        assert tuple(generate(conf, batch_id="b", now=NOW)) == ("b", 0)
        assert BatchListStore(conf).list_records() == []


class TestLimits:
    def test_undue_rows_wait_and_add_days_shifts_clock(self, conf: Configuration) -> None:
        put(conf, {f"http://a.example/{day}": {"fetch_time": NOW + day * DAY} for day in range(5)})
        assert chosen(conf, "b0") == {"http://a.example/0"}
        assert chosen(conf, "b1", add_days=1) == {"http://a.example/1"}
        assert chosen(conf, "b2", add_days=2.5) == {"http://a.example/2"}

    def test_row_due_beyond_maximum_interval_is_due_now(self, conf: Configuration) -> None:
        put(conf, {"http://a.example/": {"fetch_time": NOW + 91 * DAY}, "http://b.example/": {"fetch_time": NOW + DAY}})
        assert chosen(conf) == {"http://a.example/"}

    def test_max_distance_excludes_deeper_pages(self, conf: Configuration) -> None:
        put(conf, {f"http://a.example/{far}": {"marks": {Mark.DISTANCE: str(far)}} for far in range(4)})
        put(conf, {"http://a.example/seed": {}})
        conf.set("generate.max.distance", "1")
        assert chosen(conf) == {f"http://a.example/{name}" for name in ("0", "1", "seed")}

    def test_min_score_is_compared_with_sort_value(self, conf: Configuration) -> None:
        """It is compared with what the scoring filters make of the score: OPIC squares it, as in Nutch 2."""
        put(conf, {f"http://a.example/{score}": {"score": score} for score in (0.0, 0.25, 0.75, 2.0)})
        conf.set("generate.min.score", "0.5")
        assert chosen(conf) == {"http://a.example/0.75", "http://a.example/2.0"}

    def test_count_mode_domain_limits_domains(self, conf: Configuration) -> None:
        put(conf, {f"http://{name}.{domain}/": {} for name in "abc" for domain in ("one.co.uk", "two.co.uk")})
        conf.set("generate.max.count", "2")
        conf.set("generate.count.mode", "domain")
        assert Counter(map(domain_of, chosen(conf))) == {"one.co.uk": 2, "two.co.uk": 2}

    def test_unknown_count_mode_is_host(self, conf: Configuration, capsys: pytest.CaptureFixture[str]) -> None:
        put(conf, {f"http://{name}.one.example/{number}": {} for name in "ab" for number in range(3)})
        conf.set("generate.max.count", "2")
        conf.set("generate.count.mode", "planet")
        assert len(chosen(conf)) == 4
        assert "Unknown generator.max.count mode 'planet', using mode=host" in capsys.readouterr().err

    def test_max_count_zero_is_rejected(self, conf: Configuration) -> None:
        conf.set("generate.max.count", "0")
        with pytest.raises(ConfigurationError, match=r"generate\.max\.count is 0.*-1 for no limit"):
            generate(conf)

    def test_sitemap_and_page_batches_are_separate(self, conf: Configuration) -> None:
        put(
            conf,
            {"http://a.example/s": {"marks": {Mark.INJECT: "s"}}, "http://a.example/p": {"marks": {Mark.INJECT: "y"}}},
        )
        assert chosen(conf, "pages") == {"http://a.example/p"}
        assert chosen(conf, "sitemaps", sitemap=True) == {"http://a.example/s"}


class TestFiltersAndNormalizers:
    def test_filters_apply_unless_disabled(self, conf: Configuration) -> None:
        put(conf, {"http://a.example/": {}, "http://a.example/b.gif": {}})
        assert chosen(conf, "one") == {"http://a.example/"}
        assert chosen(conf, "two", filter_urls=False) == {"http://a.example/b.gif"}

    def test_url_normalizing_to_other_url_marks_that_row(self, conf: Configuration) -> None:
        put(conf, {"http://a.example/x/../y": {"marks": {Mark.DISTANCE: "2"}}})
        assert chosen(conf) == {"http://a.example/y"}
        assert pages(conf)["http://a.example/y"].markers[Mark.DISTANCE] == "2"

    def test_no_norm_skips_normalization(self, conf: Configuration) -> None:
        put(conf, {"http://a.example/x/../y": {}})
        assert chosen(conf, normalize=False) == {"http://a.example/x/../y"}

    def test_invalid_keys_are_skipped(self, conf: Configuration) -> None:
        put(conf, {"http://a.example/": {}})
        from nutch2py.records.webpage import WebPage
        from nutch2py.table import open_store

        page = WebPage()
        page.score = 5.0
        with open_store(conf, WebPage).batch() as batch:
            batch.put("no key at all", page)
        assert tuple(generate(conf, batch_id="b")) == ("b", 1)


Cases = Callable[[str], list[dict[str, Any]]]


def _setting(conf: Configuration, case: dict[str, Any]) -> dict[str, Any]:
    """Make the table of a case; return the options for generate."""
    args = case["args"]
    for name, value in args.items():
        if name.startswith("generate."):
            conf.set(name, value)
    if "urlfilter" in args:  # "suffix filter that rejects everything"
        conf.set("plugin.includes", "urlfilter-suffix|scoring-opic")
        conf.set("urlfilter.suffix.rules", "-\n.nosuchsuffix")
    options: dict[str, Any] = {"top_n": args.get("topN"), "sitemap": args.get("sitemap", False)}
    options |= {"filter_urls": args.get("filter", False), "normalize": args.get("normalise", False)}
    return options


def test_generator_public_cases(cases: Cases, tmp_path_factory: pytest.TempPathFactory, conf: Configuration) -> None:
    """Every case of generator.json; none is excepted."""
    failed = []
    table = cases("generator")
    for number, case in enumerate(table):
        case_conf = conf.copy()
        folder = tmp_path_factory.mktemp("case")
        case_conf.set("storage.data.store", f"embedded:{folder / 'crawldata'}")
        case_conf.set("storage.embedded.map.size", 1 << 26)
        options = _setting(case_conf, case)
        if isinstance(case["input"], dict):
            seeds = folder / "seeds.txt"
            seeds.write_text("\n".join(case["input"]["seed_lines"]))
            inject(case_conf, str(seeds))
        else:
            rows = {row["url"]: {"score": float(row["score"]), "fetch_interval": 1} for row in case["input"]}
            put(case_conf, {url: row for url, row in rows.items() if not url.startswith("xyz:")})
        if not _holds(case_conf, case, options):
            failed.append(number)
    print(f"generator: {len(table) - len(failed)}/{len(table)}")
    assert failed == []


def _holds(conf: Configuration, case: dict[str, Any], options: dict[str, Any]) -> bool:
    expected = case["expect"]
    runs = case["args"].get("runs_on_same_table")
    if runs:
        found = []
        for number, run in enumerate(runs):
            for name, value in run.items():
                conf.set(name, value)
            generate(conf, batch_id=f"run-{number}", **options)
            found.append(len(marked(conf, Mark.GENERATE)))
        return bool(found == expected["rows_with_generate_mark_after_each_run"])
    _, count = generate(conf, batch_id="case", **options)
    urls = marked(conf, Mark.GENERATE, "case")
    if "selected_by_score_desc" in expected:
        order = sorted(urls, key=lambda url: -pages(conf)[url].score)
        return bool(order == expected["selected_by_score_desc"])
    return bool(count == len(urls) == expected["count"])
