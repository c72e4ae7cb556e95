"""How plug-ins are found, held to their contract, chosen and put in order.

An extension point is an entry-point group (``nutch2py.urlfilter``, …), a plug-in an entry of it: its name is the plugin
id that ``plugin.includes`` and ``plugin.excludes`` select by regular expression, as in Nutch. A plug-in is a class that
is called with the Configuration and has the members that :mod:`nutch2py.interfaces` asks for. ``*.order`` properties
list ids, Java class names or Python names; a class says with ``java_class`` which class of Nutch it stands for.
"""

from __future__ import annotations

import inspect
import re
import sys
import types
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, NamedTuple

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError, NutchError
from nutch2py.interfaces import EXTENSION_POINTS
from nutch2py.support.reporting import warn

ALWAYS_ENABLED_POINTS = frozenset({"signature", "fetchschedule"})
"""Points whose plug-in a property of its own names, whatever ``plugin.includes`` says."""


VIRTUAL_PLUGIN_IDS = frozenset(
    [
        "parse-tika",
        "protocol-browser",
        "protocol-file",
        "protocol-ftp",
        "protocol-htmlunit",
        "protocol-http",
        "protocol-httpclient",
        "protocol-interactiveselenium",
        "protocol-okhttp",
        "protocol-selenium",
    ]
)
"""Ids that stand for something here and are no entry points: protocols, and all parsers that do Tika's work."""
UNSUPPORTED_NUTCH_PLUGINS = frozenset(
    [
        "nutch-extensionpoints",
        "lib-htmlunit",
        "lib-http",
        "lib-nekohtml",
        "lib-regex-filter",
        "lib-selenium",
        "lib-xml",
        "parse-ext",
        "parse-swf",
        "parse-zip",
        "protocol-sftp",
    ]
)
"""Plug-ins of Nutch that lists of plug-ins name and that are not here: docs/differences.md says why."""
_PLAIN_ID = re.compile(r"\s*(?P<before>[\w-]*+)(?:\((?P<group>[\w|-]*+)\))?(?P<after>[\w-]*+)\s*")
_TOP_LEVEL_BAR = re.compile(r"\|(?![^()]*+\))")

_plugin_ids: dict[type[Any], str] = {}  # of the classes that were loaded


class PluginClass(NamedTuple):
    """A plug-in that was imported; called with the Configuration, it makes the object that does the work.

    ``implementation`` derives from ``interface``.
    """

    entry_point: EntryPoint
    implementation: type[Any]
    interface: type[object]

    def __call__(self, conf: Configuration) -> Any:
        """Return the plug-in; ConfigurationError when it lacks an attribute that its contract requires."""
        try:
            made = self.implementation(conf)
        except NutchError:
            raise
        except Exception as error:
            raise ConfigurationError(
                f"plug-in {self.entry_point.name} ({self.entry_point.value}) cannot be made: {type(error).__name__}: {error}: "
                "mend it, or take it out of plugin.includes"
            ) from error
        present = {*dir(made)}
        lacking = [name for name in required_attributes(self.interface) if name not in present]
        if lacking:
            raise self.missing_members_error(lacking)
        return made

    @property
    def names(self) -> set[str]:
        """Every name by which a property may call the plug-in."""
        cls = self.implementation
        return {
            self.entry_point.name,
            cls.__name__,
            f"{cls.__module__}.{cls.__name__}",
            cls.java_class or self.entry_point.name,
        }

    def missing_members_error(self, missing: Iterable[str]) -> ConfigurationError:
        """Return the error for members that the plug-in has not."""
        entry, file = self.entry_point, inspect.getfile(self.implementation)
        without = (
            "name another" if _extension_point(entry) in ALWAYS_ENABLED_POINTS else "take it out of plugin.includes"
        )
        return ConfigurationError(
            f"plug-in {entry.name} ({entry.value}, {file}) has no {' and no '.join(missing)}, which "
            f"nutch2py.interfaces.{self.interface.__name__} requires: install a version of it that has, or {without}"
        )


def required_attributes(contract: type[object]) -> list[str]:
    """Return the attributes of a contract that have no default: those that are declared and have no value."""
    declared = {name for cls in contract.__mro__ for name in inspect.get_annotations(cls)}
    return sorted(declared.difference(dir(contract)))


@cache
def with_defaults(cls: type[Any], point: str) -> type[Any]:
    """Return ``cls``, or a class derived from it that has the optional members of its contract as well.

    The one place that knows plug-ins which do not derive from their contract: all they have comes first, the defaults
    of the contract fill what is left. The new class goes by the name of the old one, in messages and in properties.
    """
    contract = EXTENSION_POINTS[point]
    if contract in cls.__mro__:
        return cls
    named = {"__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": cls.__doc__}
    return types.new_class(cls.__name__, (cls, contract), exec_body=lambda body: body.update(named))


@cache
def _installed_entry_points(path: tuple[str, ...]) -> Mapping[str, list[EntryPoint]]:
    """Return the entry points of each extension point, as they are found along ``path``.

    One look through all that is installed takes as long for one group as for all.
    """
    every = entry_points()
    return {point: [*every.select(group=f"nutch2py.{point}")] for point in EXTENSION_POINTS}


@cache
def installed_plugins(point: str) -> Mapping[str, EntryPoint]:
    """Return the installed plug-ins of an extension point by plugin id; the first of two with one id wins."""
    found: dict[str, EntryPoint] = {}
    for entry in _installed_entry_points((*sys.path,)).get(point, ()):
        found.setdefault(entry.name, entry)
    return found


def _compile_pattern(conf: Configuration, name: str) -> re.Pattern[str]:
    text = conf.get_trimmed(name)
    try:
        return re.compile(text)
    except re.error as error:
        raise ConfigurationError(f"property {name} is not a regular expression: {error}: correct it") from None


def load_plugin(entry: EntryPoint) -> PluginClass:
    """Return a plug-in; ConfigurationError, which names it, when it cannot be imported or does not fit its contract."""
    point = _extension_point(entry)
    try:
        found = entry.load()
        if not isinstance(found, type):
            raise TypeError(f"it is no class but {found!r}")
        plugin = PluginClass(entry, with_defaults(found, point), EXTENSION_POINTS[point])
    except Exception as error:
        raise ConfigurationError(
            f"plug-in {entry.name} ({entry.value}) cannot be loaded: {error}: install what it needs, "
            "or take it out of plugin.includes"
        ) from error
    lacking = plugin.implementation.__abstractmethods__
    if lacking:
        raise plugin.missing_members_error(sorted(lacking))
    _plugin_ids[plugin.implementation] = entry.name
    return plugin


def plugin_id_of(plugin: object) -> str:
    """Return the plug-in id under which the class of ``plugin`` was loaded; of any other object the class's name."""
    return _plugin_ids.get(type(plugin), type(plugin).__name__)


def _extension_point(entry: EntryPoint) -> str:
    return entry.group.removeprefix("nutch2py.")


def enabled_plugins(conf: Configuration, point: str) -> dict[str, PluginClass]:
    """Return the plug-ins of a point that the properties select (:func:`plugin_selector`), by id."""
    selected = plugin_selector(conf)
    return {
        plugin_id: load_plugin(entry)
        for plugin_id, entry in sorted(installed_plugins(point).items())
        if point in ALWAYS_ENABLED_POINTS or selected(plugin_id)
    }


def import_builtin_plugins(conf: Configuration, point: str) -> None:
    """Import the plug-ins of a point that the properties select, but for those of other packages."""
    selected = plugin_selector(conf)
    for plugin_id, entry in installed_plugins(point).items():
        if entry.module.startswith("nutch2py.") and (point in ALWAYS_ENABLED_POINTS or selected(plugin_id)):
            load_plugin(entry)


def plugin_selector(conf: Configuration) -> Callable[[str], bool]:
    """Return what tells of an id whether the plug-in runs.

    That is what ``plugin.includes`` or ``plugin.includes.add`` matches whole, and ``plugin.excludes`` does not.
    """
    includes, more, excludes = (
        _compile_pattern(conf, f"plugin.{name}") for name in ("includes", "includes.add", "excludes")
    )

    def selected(plugin_id: str) -> bool:
        named = includes.fullmatch(plugin_id) or (more.pattern and more.fullmatch(plugin_id))
        return bool(named) and not (excludes.pattern and excludes.fullmatch(plugin_id))

    return selected


def has_third_party_plugins() -> bool:
    """Tell whether plug-ins of other packages are installed, which may read properties of their own."""
    every = [entry for entries in _installed_entry_points((*sys.path,)).values() for entry in entries]
    # a name is read from a file each time it is asked for
    packages = {id(entry.dist): entry.dist for entry in every if entry.dist is not None}
    return any(package.name != "nutch2py" for package in packages.values())


def unread_properties(conf: Configuration) -> list[tuple[str, str]]:
    """Return the properties that nothing reads, each with the one perhaps meant or "".

    What begins with the id of a plug-in is the plug-in's own, as ``indexer-csv.fields``; plug-ins of other packages may
    read properties of any name.
    """
    strange = conf.unknown_properties()
    if not strange:
        return []
    own = tuple(f"{plugin_id}." for point in EXTENSION_POINTS for plugin_id in installed_plugins(point))
    foreign = has_third_party_plugins()
    return [(name, near) for name, near in strange if (near or not foreign) and not name.startswith(own)]


def unknown_plugin_ids(conf: Configuration) -> list[tuple[str, str, str]]:
    """Return the plug-ins that a property names and that there are not: property, id, the id perhaps meant or "".

    Looked at are ids that are written plainly, as in ``a|parse-(b|c)``, in values that a site or a caller has set; not
    those of Nutch that have no counterpart here (:data:`UNSUPPORTED_NUTCH_PLUGINS`).
    """
    given = [
        (name, match)
        for name in ("plugin.includes", "plugin.includes.add")
        if name in conf and not conf.origin(name).endswith("nutch-default.xml")
        for match in map(_PLAIN_ID.fullmatch, _TOP_LEVEL_BAR.split(conf.get_trimmed(name)))
    ]
    if not given:
        return []
    known = {plugin_id for point in EXTENSION_POINTS for plugin_id in installed_plugins(point)} | VIRTUAL_PLUGIN_IDS
    found = []
    for name, match in given:
        for middle in (match["group"] or "").split("|") if match else ():
            plugin_id = f"{match['before']}{middle}{match['after']}" if match else ""
            if plugin_id and plugin_id not in known | UNSUPPORTED_NUTCH_PLUGINS:
                near = get_close_matches(plugin_id, known, n=1, cutoff=0.8)
                found.append((name, plugin_id, near[0] if near else ""))
    return found


def create_ordered_plugins(conf: Configuration, point: str, order_property: str) -> list[Any]:
    """Return an instance of every enabled plug-in of a point; those that the order property names come first."""
    chosen = enabled_plugins(conf, point)
    return [
        plugin(conf)
        for plugin in sort_plugins(chosen, conf.get_strings(order_property, separators=", \t\n\r"), order_property)
    ]


def sort_plugins(
    plugins: Mapping[str, PluginClass], order: Iterable[str], order_property: str = ""
) -> list[PluginClass]:
    """Return the plug-ins of ``plugins``, those named in ``order`` first; a name that is not enabled is warned of."""
    rest = dict(plugins)
    first: list[PluginClass] = []
    for name in order:
        plugin_id = next((i for i, plugin in rest.items() if name in plugin.names), None)
        if plugin_id is not None:
            first.append(rest.pop(plugin_id))
        elif not any(name in plugin.names for plugin in plugins.values()) and order_property:
            warn(f"{order_property} names {name}, which is not an enabled plug-in: it is left out")
    return [*first, *rest.values()]


def create_named_plugin(conf: Configuration, point: str, name: str) -> Any:
    """Return an instance of the plug-in of ``point`` that is called ``name`` (id, Java or Python class name)."""
    for plugin_id, entry in installed_plugins(point).items():
        # the id is the class's own name for built-ins, so most are found without importing the others
        if name == plugin_id or name.rsplit(".", 1)[-1] == plugin_id:
            return load_plugin(entry)(conf)
    for entry in installed_plugins(point).values():
        plugin = load_plugin(entry)
        if name in plugin.names:
            return plugin(conf)
    raise ConfigurationError(
        f"no plug-in of {point} is called {name}: known are {', '.join(sorted(installed_plugins(point)))}"
    )
