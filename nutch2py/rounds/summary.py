"""What is said at the end of a crawl: what came, what was left out and what decides that, what to type next."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence

from nutch2py.conf import Configuration
from nutch2py.jobs.left_out import left_out
from nutch2py.jobs.tally import Tally
from nutch2py.pictures.words import size, span
from nutch2py.rounds.plan import Plan, Stay
from nutch2py.rounds.running import End


def summary(tally: Tally, plan: Plan, end: End, place: Sequence[str], conf: Configuration) -> Iterator[str]:
    """Yield the lines. ``place``: options by which later commands find the crawl and its index; ``conf``: its own."""
    links, new = tally.links
    came = f" ({size(tally.bytes)})" if tally.bytes else ""
    took = f"{_some(tally.rounds, 'round')}, {span(1000 * tally.seconds)}"
    yield f"{_some(tally.good, 'page')} fetched{came} in {took}; {_some(tally.documents, 'document')} in the index."
    if links:
        yield f"Links found on them: {links:,}, to {_some(new, 'page')} not known before."
    if tally.ranks:
        yield f"{tally.ranks[0].upper()}{tally.ranks[1:]}."
    found = [*left_out(tally, conf)]
    if found:
        yield "Left out:"
        yield from (f"  {each.number:>7,} {each}" for each in found)
    yield from _not_reached(tally, plan, end)
    if tally.documents:
        yield "Search it:"
        yield f"  {command_line(place, 'search', 'WORDS')}"
        yield f"  {command_line(place, 'serve')}"
    if tally.rounds:
        yield "See how it went, in pictures:"
        yield f"  {command_line(place, 'report', '-o', 'crawl.html')}"


def _not_reached(tally: Tally, plan: Plan, end: End) -> Iterator[str]:
    if end == End.PAGES:
        yield f"Ended at -pages {plan.pages}: the same command again goes on."
    elif end == End.TIME:
        yield f"Ended at -time {plan.minutes}: the same command again goes on."
    if plan.stay != Stay.ANYWHERE:
        what = {Stay.HOST: "host", Stay.DOMAIN: "domain", Stay.PATH: "folder"}[plan.stay]
        yield f"Links that leave the {what} of a page were not followed: -stay chooses."


def _some(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def command_line(place: Sequence[str], *words: str) -> str:
    """Return a command as a shell reads it; ``place``: the options that say where the crawl is."""
    name, *rest = words
    line = shlex.join([os.environ.get("NUTCH2PY_COMMAND", "nutch2py"), name, *place])
    return " ".join([line, *rest])
