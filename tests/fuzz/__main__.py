"""``scripts/test fuzz``: the command line of fuzzing."""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import NamedTuple

from tests.fuzz.running import LONGEST, SECONDS, report, saved, smaller, tried_apart
from tests.fuzz.targets import TARGETS

_ROOT = Path(__file__).resolve().parent.parent.parent
_FOLDER = _ROOT / ".cache" / "fuzz"
_UNITS = re.compile(rb"stat::number_of_executed_units:\s*(\d+)")
_DONE = re.compile(rb"^#(\d+)\s", re.MULTILINE)
_COVERAGE = re.compile(rb" cov: (\d+)")


class Outcome(NamedTuple):
    """Result of fuzzing one target."""

    name: str
    inputs: int
    minutes: float
    covered: int
    found: list[Path]


def fuzz(name: str, seconds: float, folder: Path) -> Outcome:
    """Run libFuzzer on a target; restart it after an input that terminates it."""
    here = folder / name
    corpus, found = here / "corpus", here / "found"
    for place in (corpus, found):
        place.mkdir(parents=True, exist_ok=True)
    for seed in TARGETS[name].seeds:
        saved(corpus, seed)
    before = {path for path in found.iterdir() if not path.suffix}
    start, inputs, covered, known = time.monotonic(), 0, 0, set[str]()
    while (left := int(seconds - (time.monotonic() - start))) > 0:
        options = [
            f"-max_total_time={left}", f"-max_len={LONGEST}", f"-timeout={int(3 * SECONDS)}", "-rss_limit_mb=2000",
            f"-artifact_prefix={found}/", "-print_final_stats=1", "-close_fd_mask=0", str(corpus),
        ]  # fmt: skip
        ended = subprocess.run(
            [sys.executable, "-m", "tests.fuzz.worker", name, str(here), *options],
            cwd=_ROOT, env={**os.environ, "FUZZ_KNOWN": "\n".join(known)}, capture_output=True, check=False,
        )  # fmt: skip
        output = ended.stdout + ended.stderr
        units = _UNITS.findall(output) or _DONE.findall(output)
        inputs += int(units[-1]) if units else 0
        covered = max([covered, *map(int, _COVERAGE.findall(output))])
        known |= {path.read_text() for path in found.glob("*.txt")}
        if ended.returncode and not units:
            raise SystemExit(f"{name}: the process that runs it failed:\n{output[-3000:].decode(errors='replace')}")
    new = sorted({path for path in found.iterdir() if not path.suffix} - before)
    return Outcome(name, inputs, (time.monotonic() - start) / 60, covered, [minimized(name, path) for path in new])


def minimized(name: str, path: Path) -> Path:
    """Minimize a finding, and print how to replay it."""
    target = TARGETS[name]
    run, data = target.make(), path.read_bytes()
    wrong = tried_apart(run, target, data)
    if wrong:
        small = smaller(data, lambda less: tried_apart(run, target, less) == wrong)
        path.with_suffix(".txt").unlink(missing_ok=True)
        path.unlink()
        path = saved(path.parent, small)
        path.with_suffix(".txt").write_text(wrong)
    report(f"{name}: {wrong or 'not seen again'}\n  {path.read_bytes()[:200]!r}")
    report(f"  scripts/test fuzz --target {name} --replay {path}")
    return path


def replay(name: str, path: Path) -> int:
    """Run one input and show its traceback; return 1 if it is a finding."""
    target = TARGETS[name]
    run = target.make()
    wrong = tried_apart(run, target, path.read_bytes())
    report(wrong or "nothing is wrong")
    if wrong and not wrong.startswith(("more than", "the process")):
        run(path.read_bytes())
    return int(bool(wrong))


def main(argv: list[str] | None = None) -> int:
    """Fuzz and return 0, or 1 after a finding."""
    parser = argparse.ArgumentParser(
        prog="scripts/test fuzz",
        description="Feeds each target with inputs that reach code which none before has reached (libFuzzer by "
        "atheris, which is installed at the first run). Findings are minimized and saved in .cache/fuzz.",
        epilog=f"Targets: {', '.join(TARGETS)}.",
    )
    parser.add_argument("--minutes", type=float, default=1.0, help="for each target (default: 1)")
    parser.add_argument(
        "--target", action="append", choices=[*TARGETS], metavar="NAME", help="which; if not given, all"
    )
    parser.add_argument("--folder", type=Path, default=_FOLDER, help="for inputs and findings (default: .cache/fuzz)")
    parser.add_argument(
        "--replay", type=Path, metavar="FILE", help="run one input of the target, and show what it does"
    )
    args = parser.parse_args(argv)
    if args.replay:
        if not args.target or len(args.target) != 1:
            parser.error("--replay needs one --target")
        return replay(args.target[0], args.replay)
    if importlib.util.find_spec("atheris") is None:
        wanted = tomllib.loads((_ROOT / "pyproject.toml").read_text())["dependency-groups"]["fuzz"]
        report(f"installing {' '.join(wanted)}")
        subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", *wanted], check=True)
    outcomes = []
    for name in args.target or TARGETS:
        outcomes.append(fuzz(name, args.minutes * 60, args.folder))
        report(
            f"{name}: {outcomes[-1].inputs:,} inputs in {outcomes[-1].minutes:.1f} min, {len(outcomes[-1].found)} found"
        )
    report("\n| target | inputs | minutes | branches | found |\n|---|---|---|---|---|")
    for each in outcomes:
        report(f"| {each.name} | {each.inputs:,} | {each.minutes:.1f} | {each.covered:,} | {len(each.found)} |")
    return int(any(each.found for each in outcomes))


if __name__ == "__main__":
    sys.exit(main())
