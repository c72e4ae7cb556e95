"""The command ``plugin``: lists plug-ins and their state, and runs a class of a plug-in, as Nutch does."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import EntryPoint

import orjson

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import UsageError
from nutch2py.interfaces import EXTENSION_POINTS
from nutch2py.plugins.loading import ALWAYS_ENABLED_POINTS, installed_plugins, load_plugin, plugin_selector
from nutch2py.support.reporting import print_output

_NAMING_PROPERTIES = {
    "signature": ("db.signature.class", "MD5Signature"),
    "fetchschedule": ("db.fetch.schedule.class", "DefaultFetchSchedule"),
    "encoder": ("index.encoder", ""),
}
"""Property and default of each point of which one plug-in runs."""


@dataclass(frozen=True)
class PluginInfo:
    """An installed plug-in. ``runs``: enabled by the properties; ``made_of``: ``module:Class``."""

    point: str
    id: str
    runs: bool
    made_of: str
    package: str


def list_plugins(conf: Configuration, plugin_id: str = "") -> list[PluginInfo]:
    """Return the installed plug-ins, or those of one id, by extension point and id."""
    selected = plugin_selector(conf)
    return [
        PluginInfo(
            point,
            name,
            _is_named(conf, point, name, entry) if point in ALWAYS_ENABLED_POINTS else selected(name),
            entry.value,
            f"{entry.dist.name} {entry.dist.version}" if entry.dist else "",
        )
        for point in sorted(EXTENSION_POINTS)
        for name, entry in sorted(installed_plugins(point).items())
        if plugin_id in ("", name)
    ]


def _is_named(conf: Configuration, point: str, name: str, entry: EntryPoint) -> bool:
    """Return whether the property of a point of which one plug-in runs names a plug-in, by its id or class."""
    named = conf.get_trimmed(*_NAMING_PROPERTIES[point])
    return named == entry.value.replace(":", ".") or named.rpartition(".")[2] == name


def print_plugins(conf: Configuration, plugin_id: str = "", as_json: bool = False) -> int:
    """Print a line per plug-in: point, id, whether it runs, class, package; with an id also its description."""
    found = list_plugins(conf, plugin_id)
    if not found:
        raise UsageError(f"there is no plug-in {plugin_id}: nutch2py plugin lists them")
    for each in found:
        if as_json:
            print_output(orjson.dumps(asdict(each)).decode())
            continue
        print_output(f"{each.point}\t{each.id}\t{'runs' if each.runs else '-'}\t{each.made_of}\t{each.package}")
        if plugin_id:
            made_of = load_plugin(installed_plugins(each.point)[each.id]).implementation
            print_output(f"  {inspect.getdoc(made_of) or ''}".rstrip())
    return 0


def run_plugin_class(conf: Configuration, plugin_id: str, class_name: str, arguments: Sequence[str]) -> int:
    """Call ``main(words)`` of a class or module of a plug-in; return its exit code, 0 for None.

    ``class_name``: a name within the module of the plug-in, or ``package.module.Name``. Raises :class:`UsageError` when
    the plug-in, the class or ``main`` does not exist.
    """
    found = list_plugins(conf, plugin_id)
    if not plugin_id or not found:
        raise UsageError(f"there is no plug-in {plugin_id}: nutch2py plugin lists them")
    load_plugin(installed_plugins(found[0].point)[plugin_id])  # the error names the missing members
    own = found[0].made_of.partition(":")[0]
    module, _, attribute = class_name.rpartition(".") if "." in class_name else (own, "", class_name)
    try:
        owner: object = importlib.import_module(module)
    except ImportError as error:
        raise UsageError(f"{class_name} cannot be imported: {error}") from error
    run = getattr(getattr(owner, attribute, None), "main", None)
    if not callable(run):
        raise UsageError(f"{module} has no {attribute} with a main(words) to call")
    code = run(list(arguments))
    return code if isinstance(code, int) else 0
