"""``scripts/test suites``: the command line of the third-party suites."""

from __future__ import annotations

import argparse
import importlib
import os
import pkgutil
import sys
from pathlib import Path
from types import ModuleType

import tests.suites
from tests.suites.suite import report

_DATA = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "nutch2py" / "suites"


def suites() -> dict[str, ModuleType]:
    """Return the modules that hold a suite, by name."""
    names = [module.name for module in pkgutil.iter_modules(tests.suites.__path__)]
    modules = {name: importlib.import_module(f"tests.suites.{name}") for name in names if name != "__main__"}
    return {name.replace("_", "-"): module for name, module in modules.items() if hasattr(module, "cases")}


def main(argv: list[str] | None = None) -> int:
    """Run suites and return 0; 1 when an aim is missed."""
    found = suites()
    parser = argparse.ArgumentParser(
        prog="scripts/test suites",
        description="Reads test data of other projects and prints how much comes out as they expect.",
        epilog="\n".join(f"{name}: {(module.__doc__ or '').splitlines()[0]}" for name, module in found.items()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="which suites; if not given, all")
    parser.add_argument("--data", type=Path, default=_DATA, help=f"where their files are kept (default: {_DATA})")
    parser.add_argument("-v", "--verbose", action="store_true", help="list every case that is left")
    args = parser.parse_args(argv)
    unknown = [name for name in args.names if name not in found]
    if unknown:
        parser.error(f"there is no suite {unknown[0]}: choose from {', '.join(found)}")
    missed = []
    for name in args.names or found:
        module = found[name]
        print(f"== {name}: {(module.__doc__ or '').splitlines()[0]}", flush=True)
        if not report(module.cases(args.data), module.GOALS, args.verbose):
            missed.append(name)
    print(f"aims missed: {', '.join(missed)}" if missed else "every aim is reached")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
