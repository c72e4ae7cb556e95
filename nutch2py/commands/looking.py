"""Looking at what a crawl stands on."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from nutch2py.commands.command import Arguments, Command

if TYPE_CHECKING:
    from nutch2py.conf import Configuration


def _doctor_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-json", "--json", action="store_true", help="one JSON object a line")


def _doctor(args: Arguments, conf: Configuration) -> int:
    import orjson

    from nutch2py.doctor.examination import examine, worst
    from nutch2py.doctor.finding import State
    from nutch2py.secrets import concealed

    findings = []
    for finding in examine(conf):
        told = concealed(finding.told, conf.secrets())
        findings.append(finding)
        if args.json:
            print(orjson.dumps({"part": finding.part, "state": finding.state, "told": told}).decode(), flush=True)
        else:
            print(f"{finding.state:4}  {finding.part}: {told}", flush=True)
    return 10 if worst(findings) == State.BAD else 0


COMMANDS: dict[str, Command] = {
    "doctor": Command("look at what a crawl stands on, and say what is wrong", _doctor_options, _doctor),
}
