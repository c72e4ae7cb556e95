"""The few schedules that run in the suite: what they have to meet, with the fewest commands."""

from __future__ import annotations

from tests.kill.crawl import commands
from tests.kill.faults import Options, draw
from tests.kill.site import Plan

SEED = "suite"
COMMANDS = commands(Plan("any"))
JOBS_OF_A_CRAWL = [command.job for command in COMMANDS]
_DRAWN = 1000
_OTHERS = 5  # commands that run while one is held, approximately


def cheapest(options: Options, wanted: set[str], rounds: set[int]) -> list[int]:
    """Return schedules that strike in some rounds only, and meet all of the kinds of faults and jobs ``wanted``."""
    drawn: dict[int, tuple[set[str], int]] = {}
    for number in range(_DRAWN):
        faults = draw(SEED, number, options, JOBS_OF_A_CRAWL, frozenset())
        struck = [COMMANDS[fault.command] for fault in faults]
        if {command.round for command in struck} <= rounds:
            end = max(n for n, command in enumerate(COMMANDS) if command.round == struck[-1].round)
            cost = (
                end - faults[0].command + 1 + len(faults) + _OTHERS * sum(each.kind == "concurrent" for each in faults)
            )
            drawn[number] = {*(fault.kind for fault in faults), *(command.job for command in struck)}, cost
    found, left = [], set(wanted)
    while left:
        best = min(drawn, key=lambda number: drawn[number][1] / (len(drawn[number][0] & left) or 1e-9))
        found.append(best)
        left -= drawn.pop(best)[0]
    return sorted(found)
