"""Finds plug-ins, validates them against their interface, selects and orders them.

An extension point is an entry-point group (``nutch2py.urlfilter``, …), a plug-in an entry of it. The entry's name is
the plug-in id that ``plugin.includes`` and ``plugin.excludes`` select by regular expression, as in Nutch. A plug-in is
a class that is called with the Configuration and has the members that :mod:`nutch2py.interfaces` requires. ``*.order``
properties list ids, Java class names or Python names; ``java_class`` names the Nutch class that a plug-in replaces.
"""

from __future__ import annotations

import inspect
import re
import sys
import types
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, NamedTuple

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError, NutchError
from nutch2py.interfaces import EXTENSION_POINTS
from nutch2py.support.reporting import warn

ALWAYS_ENABLED_POINTS = frozenset({"signature", "fetchschedule", "encoder"})
"""Extension points whose plug-in is selected by a property of its own, independently of ``plugin.includes``."""


_plugin_ids: dict[type[Any], str] = {}  # of the loaded classes


class PluginClass(NamedTuple):
    """An imported plug-in; calling it with the Configuration creates an instance.

    ``implementation`` derives from ``interface``.
    """

    entry_point: EntryPoint
    implementation: type[Any]
    interface: type[object]

    def __call__(self, conf: Configuration) -> Any:
        """Return an instance; ConfigurationError when it lacks an attribute that its interface requires."""
        try:
            made = self.implementation(conf)
        except NutchError:
            raise
        except Exception as error:
            raise ConfigurationError(
                f"plug-in {self.entry_point.name} ({self.entry_point.value}) cannot be created: "
                f"{type(error).__name__}: {error}: "
                "fix it, or remove it from plugin.includes"
            ) from error
        present = {*dir(made)}
        lacking = [name for name in required_attributes(self.interface) if name not in present]
        if lacking:
            raise self.missing_members_error(lacking)
        return made

    @property
    def names(self) -> set[str]:
        """All names by which a property may refer to the plug-in."""
        cls = self.implementation
        return {
            self.entry_point.name,
            cls.__name__,
            f"{cls.__module__}.{cls.__name__}",
            cls.java_class or self.entry_point.name,
        }

    def missing_members_error(self, missing: Iterable[str]) -> ConfigurationError:
        """Return the error for missing members of the plug-in."""
        entry, file = self.entry_point, inspect.getfile(self.implementation)
        without = (
            "name another" if _extension_point(entry) in ALWAYS_ENABLED_POINTS else "remove it from plugin.includes"
        )
        return ConfigurationError(
            f"plug-in {entry.name} ({entry.value}, {file}) lacks {' and '.join(missing)}, which "
            f"nutch2py.interfaces.{self.interface.__name__} requires: install a version that has it, or {without}"
        )


def required_attributes(contract: type[object]) -> list[str]:
    """Return the attributes of an interface without a default: declared, but without a value."""
    declared = {name for cls in contract.__mro__ for name in inspect.get_annotations(cls)}
    return sorted(declared.difference(dir(contract)))


@cache
def with_defaults(cls: type[Any], point: str) -> type[Any]:
    """Return ``cls``, or a subclass of it with the missing optional members of its interface.

    Supports plug-ins that do not derive from their interface: their own members come first, the defaults of the
    interface fill the rest. The subclass keeps the name of ``cls`` for messages and properties.
    """
    contract = EXTENSION_POINTS[point]
    if contract in cls.__mro__:
        return cls
    named = {"__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": cls.__doc__}
    return types.new_class(cls.__name__, (cls, contract), exec_body=lambda body: body.update(named))


@cache
def _installed_entry_points(path: tuple[str, ...]) -> Mapping[str, list[EntryPoint]]:
    """Return the entry points of each extension point found along ``path``.

    Scanning all installed packages takes as long for one group as for all.
    """
    every = entry_points()
    return {point: [*every.select(group=f"nutch2py.{point}")] for point in EXTENSION_POINTS}


@cache
def installed_plugins(point: str) -> Mapping[str, EntryPoint]:
    """Return the installed plug-ins of an extension point by id; the first of two with the same id wins."""
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
    """Return a plug-in; ConfigurationError when it cannot be imported or does not implement its interface."""
    point = _extension_point(entry)
    try:
        found = entry.load()
        if not isinstance(found, type):
            raise TypeError(f"it is not a class but {found!r}")
        plugin = PluginClass(entry, with_defaults(found, point), EXTENSION_POINTS[point])
    except Exception as error:
        raise ConfigurationError(
            f"plug-in {entry.name} ({entry.value}) cannot be loaded: {error}: install what it needs, "
            "or remove it from plugin.includes"
        ) from error
    lacking = plugin.implementation.__abstractmethods__
    if lacking:
        raise plugin.missing_members_error(sorted(lacking))
    _plugin_ids[plugin.implementation] = entry.name
    return plugin


def plugin_id_of(plugin: object) -> str:
    """Return the plug-in id under which the class of ``plugin`` was loaded; the class name of any other object."""
    return _plugin_ids.get(type(plugin), type(plugin).__name__)


def _extension_point(entry: EntryPoint) -> str:
    return entry.group.removeprefix("nutch2py.")


def enabled_plugins(conf: Configuration, point: str) -> dict[str, PluginClass]:
    """Return the plug-ins of a point that the properties enable (:func:`plugin_selector`), by id."""
    selected = plugin_selector(conf)
    return {
        plugin_id: load_plugin(entry)
        for plugin_id, entry in sorted(installed_plugins(point).items())
        if point in ALWAYS_ENABLED_POINTS or selected(plugin_id)
    }


def import_builtin_plugins(conf: Configuration, point: str) -> None:
    """Import the enabled plug-ins of a point, except those of other packages."""
    selected = plugin_selector(conf)
    for plugin_id, entry in installed_plugins(point).items():
        if entry.module.startswith("nutch2py.") and (point in ALWAYS_ENABLED_POINTS or selected(plugin_id)):
            load_plugin(entry)


def plugin_selector(conf: Configuration) -> Callable[[str], bool]:
    """Return a predicate of plug-in ids: whether the properties enable the plug-in.

    An id is enabled if ``plugin.includes`` or ``plugin.includes.add`` matches it fully and ``plugin.excludes`` does
    not.
    """
    includes, more, excludes = (
        _compile_pattern(conf, f"plugin.{name}") for name in ("includes", "includes.add", "excludes")
    )

    def selected(plugin_id: str) -> bool:
        named = includes.fullmatch(plugin_id) or (more.pattern and more.fullmatch(plugin_id))
        return bool(named) and not (excludes.pattern and excludes.fullmatch(plugin_id))

    return selected


def has_third_party_plugins() -> bool:
    """Return whether plug-ins of other packages are installed, which may read properties of their own."""
    every = [entry for entries in _installed_entry_points((*sys.path,)).values() for entry in entries]
    # reading a name opens a file each time
    packages = {id(entry.dist): entry.dist for entry in every if entry.dist is not None}
    return any(package.name != "nutch2py" for package in packages.values())


def create_ordered_plugins(conf: Configuration, point: str, order_property: str) -> list[Any]:
    """Return an instance of every enabled plug-in of a point; those named by the order property come first."""
    chosen = enabled_plugins(conf, point)
    return [
        plugin(conf)
        for plugin in sort_plugins(chosen, conf.get_strings(order_property, separators=", \t\n\r"), order_property)
    ]


def sort_plugins(
    plugins: Mapping[str, PluginClass], order: Iterable[str], order_property: str = ""
) -> list[PluginClass]:
    """Return ``plugins`` with those named in ``order`` first; warns of a name that is not enabled."""
    rest = dict(plugins)
    first: list[PluginClass] = []
    for name in order:
        plugin_id = next((i for i, plugin in rest.items() if name in plugin.names), None)
        if plugin_id is not None:
            first.append(rest.pop(plugin_id))
        elif not any(name in plugin.names for plugin in plugins.values()) and order_property:
            warn(f"{order_property} names {name}, which is not an enabled plug-in: it is skipped")
    return [*first, *rest.values()]


def create_named_plugin(conf: Configuration, point: str, name: str) -> Any:
    """Return an instance of the plug-in of ``point`` that is called ``name`` (id, Java or Python class name)."""
    for plugin_id, entry in installed_plugins(point).items():
        # the id equals the class name for built-ins, so most are found without importing the others
        if name == plugin_id or name.rsplit(".", 1)[-1] == plugin_id:
            return load_plugin(entry)(conf)
    for entry in installed_plugins(point).values():
        plugin = load_plugin(entry)
        if name in plugin.names:
            return plugin(conf)
    raise ConfigurationError(
        f"no plug-in of {point} is called {name}: known are {', '.join(sorted(installed_plugins(point)))}"
    )
