"""plugin: which plug-ins there are and which of them run; and running a class of one, as Nutch does."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import orjson

from nutch2py.conf import Configuration
from nutch2py.contracts import EXTENSION_POINTS
from nutch2py.errors import UsageError
from nutch2py.plugins import ALWAYS_ON, load, registered, selection
from nutch2py.reporting import say


@dataclass(frozen=True)
class Listed:
    """A plug-in that is installed. ``runs``: the properties choose it; ``made_of``: ``module:Class``."""

    point: str
    id: str
    runs: bool
    made_of: str
    package: str


def plugins(conf: Configuration, plugin_id: str = "") -> list[Listed]:
    """Return the plug-ins that are installed, or those of one id, by extension point and id."""
    selected = selection(conf)
    return [
        Listed(
            point,
            name,
            point in ALWAYS_ON or selected(name),
            entry.value,
            f"{entry.dist.name} {entry.dist.version}" if entry.dist else "",
        )
        for point in sorted(EXTENSION_POINTS)
        for name, entry in sorted(registered(point).items())
        if plugin_id in ("", name)
    ]


def print_plugins(conf: Configuration, plugin_id: str = "", as_json: bool = False) -> int:
    """Print a line for each plug-in: point, id, whether it runs, class, package; with an id what it does, too."""
    found = plugins(conf, plugin_id)
    if not found:
        raise UsageError(f"there is no plug-in {plugin_id}: nutch2py plugin lists them")
    for each in found:
        if as_json:
            say(orjson.dumps(asdict(each)).decode())
            continue
        say(f"{each.point}\t{each.id}\t{'runs' if each.runs else '-'}\t{each.made_of}\t{each.package}")
        if plugin_id:
            made_of = load(registered(each.point)[each.id]).made_of
            say(f"  {inspect.getdoc(made_of) or ''}".rstrip())
    return 0


def run_class(conf: Configuration, plugin_id: str, name: str, words: Sequence[str]) -> int:
    """Call ``main(words)`` of a class or a module of a plug-in; return the exit code that it gives, 0 for None.

    ``name``: a name within the module of the plug-in, or ``package.module.Name``. Raises :class:`UsageError` when there
    is no such plug-in, class or ``main``.
    """
    found = plugins(conf, plugin_id)
    if not plugin_id or not found:
        raise UsageError(f"there is no plug-in {plugin_id}: nutch2py plugin lists them")
    load(registered(found[0].point)[plugin_id])  # says what it lacks
    own = found[0].made_of.partition(":")[0]
    module, _, attribute = name.rpartition(".") if "." in name else (own, "", name)
    try:
        owner: object = importlib.import_module(module)
    except ImportError as error:
        raise UsageError(f"{name} cannot be imported: {error}") from error
    run = getattr(getattr(owner, attribute, None), "main", None)
    if not callable(run):
        raise UsageError(f"{module} has no {attribute} with a main(words) to call")
    code = run(list(words))
    return code if isinstance(code, int) else 0
