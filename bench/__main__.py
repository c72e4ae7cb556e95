"""``scripts/bench``: the command line of the benchmarks."""

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
    """Return the modules with benchmarks, by name."""
    names = [module.name for module in pkgutil.iter_modules(bench.__path__) if module.name != "__main__"]
    modules = {name: importlib.import_module(f"bench.{name}") for name in names}
    return {name.replace("_", "-"): module for name, module in modules.items() if hasattr(module, "measure")}


def main(argv: list[str] | None = None) -> int:
    """Measure, print the table, and return 0, or 1 when a measured command failed."""
    arguments = sys.argv[1:] if argv is None else argv
    if arguments[:1] == ["ranking"]:
        from bench.ranking.__main__ import main as ranking

        return ranking(arguments[1:])
    if arguments[:1] == ["judged"]:
        from bench.judged.__main__ import main as judged

        return judged(arguments[1:])
    if arguments[:1] == ["typos"]:
        from bench.ranking.typos import main as typos

        return typos(arguments[1:])
    if arguments[:1] == ["scale"]:
        from bench.scaling.__main__ import main as scale

        return scale(arguments[1:])
    modules = subcommands()
    parser = argparse.ArgumentParser(
        prog="bench",
        description="Measures a job with the real command line: CPU seconds of all processes, memory, rate.",
        epilog="\n".join(
            [
                *(f"{name}: {(module.__doc__ or '').splitlines()[0]}" for name, module in modules.items()),
                "ranking FOLDER: relevance of results (docs/ranking.md); see bench ranking --help",
                "judged: public judged collections, next to BM25 (docs/ranking.md); see bench judged --help",
                "typos FOLDER: typing errors in words of an index (docs/ranking.md); see bench typos --help",
                "scale: modelled cost of jobs on 1 to 100 nodes (docs/scale.md); see bench scale --help",
            ]
        ),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", choices=modules, help="the benchmark")
    parser.add_argument("rows", nargs="*", type=int, metavar="ROWS", help="sizes (default: those of docs/measurements)")
    parser.add_argument("--markdown", action="store_true", help="print a Markdown table")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results to this file, too")
    parser.add_argument("--runner", default="inline", help="mrjob runner: inline (default) or local")
    parser.add_argument("--folder", type=Path, help="parent of temporary folders (default: the system's)")
    args = parser.parse_args(arguments)
    module = modules[args.name]
    # Compile as an installer does, whatever the environment: otherwise each command would compile its modules.
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
        args.json.write_text(as_json(measured, arguments), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
