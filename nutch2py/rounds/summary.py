"""What is said at the end of a crawl: what came, what was left out and what decides that, what to type next."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from nutch2py.fetcher.answer import FailureKind
from nutch2py.jobs.tally import Tally
from nutch2py.rounds.plan import Plan, Stay
from nutch2py.rounds.running import End
from nutch2py.rounds.seeds import GATE
from nutch2py.rounds.view import duration


class Reason(NamedTuple):
    """Why URLs were left out: what for people, and what to do about it ("": nothing that is ours to do)."""

    what: str
    repair: str = ""


_STATUS = {
    "ROBOTS_DENIED": Reason("the site's robots.txt denies them to us"),
    "NOTFOUND": Reason("are not there (404)"),
    "GONE": Reason("are gone (410, 400)"),
    "ACCESS_DENIED": Reason("ask for a login (401)", "http.auth.file names logins"),
}
_FAILURE = {
    FailureKind.GATE: Reason("are at addresses that are refused", f"to allow private ones: -D {GATE}="),
    FailureKind.DNS: Reason("have a host whose name nobody knows", "http.dns.servers chooses who is asked"),
    FailureKind.REFUSED: Reason("are of servers that refuse the connection"),
    FailureKind.CONNECT: Reason("are of servers that cannot be reached"),
    FailureKind.CLOSED: Reason("are of servers that closed the connection"),
    FailureKind.TLS: Reason("have a certificate that is not to be trusted", "-D http.tls.certificates.check=false"),
    FailureKind.TIMEOUT: Reason("were not answered in time", "http.timeout, in milliseconds"),
    FailureKind.PROTOCOL: Reason("were answered with what is no HTTP"),
    FailureKind.LIMIT: Reason("are beyond a limit, which readdb -url URL names"),
    FailureKind.URL: Reason("are malformed"),
    FailureKind.SCHEME: Reason("have a protocol that no plug-in speaks", "plugin.includes.add"),
    FailureKind.ROBOTS: Reason("wait until the robots.txt of their site can be read"),
    FailureKind.BROWSER: Reason("could not be rendered", "readdb -url URL shows why"),
    FailureKind.OTHER: Reason("failed", "readdb -url URL shows how"),
    "http": Reason("were answered with an error", "readdb -url URL shows which"),
}
"""By the names of counters."""


def summary(tally: Tally, plan: Plan, end: End, place: Sequence[str]) -> Iterator[str]:
    """Yield the lines. ``place``: the options by which later commands find the crawl and its index."""
    links, new = tally.links
    size = f" ({_size(tally.bytes)})" if tally.bytes else ""
    took = f"{_some(tally.rounds, 'round')}, {duration(tally.seconds)}"
    yield f"{_some(tally.good, 'page')} fetched{size} in {took}; {_some(tally.documents, 'document')} in the index."
    if links:
        yield f"Links found on them: {links:,}, to {_some(new, 'page')} not known before."
    left_out = [*_left_out(tally)]
    if left_out:
        yield "Left out:"
        yield from left_out
    yield from _not_reached(tally, plan, end)
    if tally.documents:
        yield "Search it:"
        yield f"  {command_line(place, 'search', 'WORDS')}"
        yield f"  {command_line(place, 'serve')}"
    if tally.rounds:
        yield "See how it went, in pictures:"
        yield f"  {command_line(place, 'report', '-o', 'crawl.html')}"


def _left_out(tally: Tally) -> Iterator[str]:
    if tally.moved:
        yield _line(tally.moved, Reason("lead to other URLs, which are fetched instead"))
    for name, reason in _STATUS.items():
        if tally.fetched(name):
            yield _line(tally.fetched(name), reason)
    for name, count in sorted(tally.failures().items(), key=lambda each: -each[1]):
        what, repair = _FAILURE[name]
        yield _line(count, Reason(f"{what}; they are tried again later", repair))
    if tally.unparsed:
        yield _line(tally.unparsed, Reason("came, and no parser can read them", "readdb -url URL shows why"))


def _not_reached(tally: Tally, plan: Plan, end: End) -> Iterator[str]:
    left = tally.left
    if end == End.PAGES:
        yield f"Ended at -pages {plan.pages}: the same command again goes on."
    elif end == End.TIME:
        yield f"Ended at -time {plan.minutes}: the same command again goes on."
    elif left.get("too_distant"):
        count = left["too_distant"]
        yield f"{count:,} URLs are more than {plan.depth} links from where it began: a greater -depth fetches them."
    if plan.stay != Stay.ANYWHERE:
        what = {Stay.HOST: "host", Stay.DOMAIN: "domain", Stay.PATH: "folder"}[plan.stay]
        yield f"Links that leave the {what} of a page were not followed: -stay chooses."


def _line(count: int, reason: Reason) -> str:
    return f"  {count:>7,} {reason.what}" + (f" ({reason.repair})" if reason.repair else "")


def _some(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _size(count: int) -> str:
    power = 0 if count < 1000 else 1 if count < 1_000_000 else 2 if count < 1_000_000_000 else 3
    return f"{count / 1000**power:,.1f} {('B', 'kB', 'MB', 'GB')[power]}" if power else f"{count} B"


def command_line(place: Sequence[str], *words: str) -> str:
    """Return a command as a shell reads it; ``place``: the options that say where the crawl is."""
    name, *rest = words
    line = shlex.join([os.environ.get("NUTCH2PY_COMMAND", "nutch2py"), name, *place])
    return " ".join([line, *rest])
