"""``scripts/bench``: the command line of the measurements."""

from __future__ import annotations

import argparse
import compileall
import importlib
import pkgutil
import sys
import tempfile
from pathlib import Path
from types import ModuleType

import bench
from bench.measuring import CommandError, Measurement
from bench.report import as_json, table


def subcommands() -> dict[str, ModuleType]:
    """Return the modules that measure something, by name."""
    names = [module.name for module in pkgutil.iter_modules(bench.__path__) if module.name != "__main__"]
    modules = {name: importlib.import_module(f"bench.{name}") for name in names}
    return {name.replace("_", "-"): module for name, module in modules.items() if hasattr(module, "measure")}


def main(argv: list[str] | None = None) -> int:
    """Measure, print the table, and return 0; 1 when a measured command failed."""
    given = sys.argv[1:] if argv is None else argv
    if given[:1] == ["ranking"]:
        from bench.ranking.__main__ import main as ranking

        return ranking(given[1:])
    if given[:1] == ["scale"]:
        from bench.scaling.__main__ import main as scale

        return scale(given[1:])
    found = subcommands()
    parser = argparse.ArgumentParser(
        prog="bench",
        description="Measures a job with the real command line: CPU seconds of all processes, memory, rate.",
        epilog="\n".join(
            [
                *(f"{name}: {(module.__doc__ or '').splitlines()[0]}" for name, module in found.items()),
                "ranking FOLDER: how good results are (docs/ranking.md); bench ranking --help tells its options",
                "scale: what jobs would cost on 1 to 100 nodes, by a model (docs/scale.md); bench scale --help",
            ]
        ),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", choices=found, help="what to measure")
    parser.add_argument(
        "rows", nargs="*", type=int, metavar="ROWS", help="sizes; if not given, those of docs/performance.md"
    )
    parser.add_argument("--markdown", action="store_true", help="print a Markdown table")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results to this file, too")
    parser.add_argument("--runner", default="inline", help="mrjob runner: inline (default) or local")
    parser.add_argument("--folder", type=Path, help="where tables are made and removed (default: the system's)")
    args = parser.parse_args(given)
    module = found[args.name]
    # as an installation has it, whatever the environment says: else each command would compile what it loads
    compileall.compile_dir(Path(bench.__path__[0]).parent / "nutch2py", quiet=1)
    measured: list[Measurement] = []
    for rows in args.rows or module.ROWS:
        with tempfile.TemporaryDirectory(prefix="nutch2py-bench-", dir=args.folder) as folder:
            print(f"{args.name}: {rows:,}", file=sys.stderr, flush=True)
            try:
                measured += module.measure(rows, Path(folder), args.runner)
            except CommandError as error:
                print(error, file=sys.stderr)
                return 1
    print(table(measured, markdown=args.markdown))
    if args.json is not None:
        args.json.write_text(as_json(measured, given), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
