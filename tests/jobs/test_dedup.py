"""DeduplicationJob: the pages that it marks, and the effect on their documents."""

import json
import random

import pytest

from nutch2py.cli import main
from nutch2py.errors import ConfigurationError
from nutch2py.jobs.dedup_job import DuplicateCandidate, dedup, pick_duplicate
from nutch2py.jobs.index.index_job import index
from nutch2py.parser.signatures.simhash import hamming_distance, simhash, split_bands
from nutch2py.records.cells import ParseStatus
from nutch2py.records.webpage import CrawlStatus, Mark, MetadataKey, WebPage
from nutch2py.table import open_store

DAY = 86_400_000


def page(signature, score=1.0, fetched=10 * DAY, status=CrawlStatus.FETCHED, text="text", **values):
    made = WebPage()
    made.status, made.parse_status = int(status), ParseStatus(1)
    made.signature, made.score, made.fetch_time = signature, score, fetched
    made.title, made.text, made.content_type = "title", text, "text/html"
    for name, value in values.items():
        setattr(made, name, value)
    return made


def fill(conf, rows):
    store = open_store(conf, WebPage)
    store.create()
    with store.batch() as batch:
        for key, made in rows.items():
            batch.put(key, made)


def marks(conf):
    """Return row key -> the row that represents it."""
    fields = {WebPage.metadata}
    rows = open_store(conf, WebPage)
    found = {}
    from nutch2py.table import TableQuery

    for key, row in rows.scan(TableQuery(frozenset(fields))):
        mark = row.metadata.get(MetadataKey.DUPLICATE)
        if mark is not None:
            found[key] = mark.decode().partition(" ")[2]
    return found


def test_nutch_1_cases_are_reproduced(cases):
    given = cases("dedup")
    passed = 0
    for case in given:
        order = case["args"]["compareOrder"].split(",")
        if case["args"].get("fn") == "getDuplicate":
            one, other = (DuplicateCandidate(url, 1.0, 0) for url in case["input"])
            worse = pick_duplicate(one, other, order)
            passed += (worse and worse.url) == case["expect"]["duplicate"]
        else:
            # the words are those of a comment in Nutch's test; in its table the "earlier" page was fetched later
            times = {"earlier": 1534945981316, "later": 1534945979532}
            pages = [DuplicateCandidate(each["url"], 1.0, times[each["fetched"]]) for each in case["input"]]
            worse = pick_duplicate(*pages, order)
            status = {each.url: "db_duplicate" if each == worse else "db_fetched" for each in pages}
            passed += status == case["expect"]
    print(f"dedup: {passed}/{len(given)}")
    assert passed == len(given)


def test_best_score_then_newest_then_shortest_url_is_kept(conf):
    fill(
        conf,
        {
            "org.a:http/low": page(b"1", score=1.0, fetched=30 * DAY),
            "org.b:http/high": page(b"1", score=2.0),
            "org.a:http/old": page(b"2"),
            "org.b:http/new": page(b"2", fetched=20 * DAY),
            "org.a:http/longer-than-the-other": page(b"3"),
            "org.a:http/short": page(b"3"),
            "org.a:http/alone": page(b"4"),
            "org.b:http/first": page(b"5"),
            "org.c:http/first": page(b"5"),
        },
    )
    result = dedup(conf)
    assert marks(conf) == {
        "org.a:http/low": "org.b:http/high",
        "org.a:http/old": "org.b:http/new",
        "org.a:http/longer-than-the-other": "org.a:http/short",
        "org.c:http/first": "org.b:http/first",
    }
    assert result.count("DeduplicationJob", "duplicates") == 4


def test_gone_redirected_unparsed_and_unsigned_pages_are_ignored(conf):
    fill(
        conf,
        {
            "org.a:http/gone": page(b"1", score=9.0, status=CrawlStatus.GONE),
            "org.a:http/moved": page(b"1", score=9.0, status=CrawlStatus.REDIR_PERM),
            "org.a:http/failed": page(b"1", score=9.0, parse_status=ParseStatus(2)),
            "org.a:http/kept": page(b"1"),
            "org.a:http/notmodified": page(b"1", score=0.5, status=CrawlStatus.NOTMODIFIED),
            "org.a:http/unsigned": page(None),
            "org.b:http/unsigned": page(None),
        },
    )
    dedup(conf)
    assert marks(conf) == {"org.a:http/notmodified": "org.a:http/kept"}


@pytest.mark.parametrize(
    ("mode", "marked"),
    [("none", {"b.x", "b.y", "d"}), ("host", set()), ("domain", {"b.y"})],
)
def test_group_option_compares_within_host_or_domain(conf, mode, marked):
    keys = {"a": "com.one.www:http/", "b.x": "org.two.x:http/", "b.y": "org.two.y:http/", "d": "net.three:http/"}
    fill(conf, {key: page(b"1", score=9.0 - at) for at, key in enumerate(keys.values())})
    conf.set("deduplication.group.mode", mode)
    dedup(conf)
    assert set(marks(conf)) == {keys[name] for name in marked}


def test_duplicate_mark_is_removed_when_original_or_page_changes(conf):
    fill(conf, {"org.a:http/": page(b"1", score=2.0), "org.b:http/": page(b"1")})
    dedup(conf)
    assert marks(conf) == {"org.b:http/": "org.a:http/"}
    gone = WebPage({}, frozenset())
    gone.status = int(CrawlStatus.GONE)
    fill(conf, {"org.a:http/": gone})
    dedup(conf)
    assert marks(conf) == {}


def test_duplicates_leave_index_and_return_when_page_changes(conf, tmp_path):
    conf.set("plugin.includes", "index-basic|indexer-jsonl")
    conf.set("indexer-jsonl.path", str(tmp_path / "index"))

    def indexed_pages():
        lines = [json.loads(line) for line in (tmp_path / "index").read_text().splitlines()]
        (tmp_path / "index").unlink()
        return {line.get("delete") or line["id"]: "delete" not in line for line in lines}

    rows = {"org.a:http/": page(b"1", score=2.0), "org.b:http/": page(b"1")}
    for made in rows.values():
        made.markers[Mark.UPDATEDB] = "b1"
    fill(conf, rows)
    index(conf, "-all")
    assert indexed_pages() == {"org.a:http/": True, "org.b:http/": True}
    dedup(conf)
    index(conf, "-all")
    assert indexed_pages() == {"org.a:http/": True, "org.b:http/": False}
    assert main(["clean", *options(conf, "plugin.includes", "indexer-jsonl.path")]) == 0
    assert indexed_pages() == {"org.b:http/": False}
    changed = WebPage({}, frozenset())
    changed.signature = b"2"
    fill(conf, {"org.b:http/": changed})
    index(conf, "-all")
    assert indexed_pages() == {"org.a:http/": True, "org.b:http/": True}


def options(conf, *names):
    return [word for name in ("storage.data.store", *names) for word in ("-D", f"{name}={conf.get(name)}")]


WORDS = [f"word{number}" for number in range(900)]


def edited(seed, changes):
    words = list(WORDS)
    for at in random.Random(seed).sample(range(len(words)), changes):
        words[at] = f"other{seed}"
    return " ".join(words)


def test_near_duplicates_are_marked_when_configured(conf):
    other = " ".join(f"different{number * 7 % 900}" for number in range(900))
    rows = {
        "org.a:http/best": page(b"1", score=5.0, text=edited(1, 0)),
        "org.a:http/near": page(b"2", score=4.0, text=edited(2, 3)),
        "org.a:http/equal": page(b"2", score=3.0, text=edited(2, 3)),
        "org.a:http/same-text": page(b"3", score=3.0, text=edited(1, 0)),
        "org.a:http/other": page(b"4", text=other),
        "org.a:http/short": page(b"5", text="few words"),
        "org.b:http/short": page(b"6", text="few words"),
    }
    fill(conf, rows)
    conf.set("deduplication.simhash.threshold", "6")
    dedup(conf)
    assert marks(conf) == {"org.a:http/equal": "org.a:http/near"}
    result = dedup(conf, include_near_duplicates=True)
    assert marks(conf) == {
        "org.a:http/equal": "org.a:http/near",
        "org.a:http/near": "org.a:http/best",
        "org.a:http/same-text": "org.a:http/best",
    }
    assert result.count("DeduplicationJob", "near_duplicates") == 2
    dedup(conf)
    assert marks(conf) == {"org.a:http/equal": "org.a:http/near"}


def test_every_runner_marks_same_rows(conf):
    rows = {
        f"org.h{number}:http/": page(bytes([number % 7]), score=number % 5, text=edited(number % 3, 2))
        for number in range(40)
    }
    fill(conf, rows)
    dedup(conf, include_near_duplicates=True)
    inline = marks(conf)
    assert len(inline) > 33
    for key in list(inline):
        cleared = WebPage({}, frozenset())
        cleared.metadata.pop(MetadataKey.DUPLICATE)
        fill(conf, {key: cleared})
    conf.set("mapreduce.runner", "local")
    conf.set("mapreduce.job.maps", "2")
    conf.set("mapreduce.job.reduces", "2")
    dedup(conf, include_near_duplicates=True)
    assert marks(conf) == inline


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-group", "site"], "deduplication.group.mode is 'site'"),
        (["-compareOrder", "score"], "must contain score, fetchTime and urlLength"),
        (["-threshold", "9"], "deduplication.simhash.threshold is 9: write a whole number from 0 to 7"),
        (["-threshold", "x"], "deduplication.simhash.threshold is 'x'"),
    ],
)
def test_unknown_settings_are_reported(conf, capsys, words, message):
    assert main(["dedup", *options(conf), *words]) == ConfigurationError.exit_code
    assert message in capsys.readouterr().err


def test_near_simhashes_share_a_band():
    chance = random.Random(7)
    for _ in range(500):
        value, threshold = chance.getrandbits(64), chance.randrange(8)
        other = value
        for bit in chance.sample(range(64), threshold):
            other ^= 1 << bit
        assert hamming_distance(value, other) == threshold
        pairs = zip(split_bands(value, threshold + 1), split_bands(other, threshold + 1), strict=True)
        assert any(one == two for one, two in pairs)


def test_simhash_depends_on_text():
    original = simhash(WORDS)
    assert hamming_distance(original, simhash([*WORDS, "more"])) <= 3
    assert hamming_distance(original, simhash(WORDS[::-1])) > 15
    assert len({simhash(WORDS[:count]) for count in range(5)}) == 5
