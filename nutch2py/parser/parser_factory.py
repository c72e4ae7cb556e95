"""Selects the parsers of a content type by ``parse-plugins.xml`` and ``plugin.includes`` (Nutch's ParserFactory)."""

from __future__ import annotations

import re
from weakref import WeakKeyDictionary

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError
from nutch2py.interfaces import Parser
from nutch2py.plugins.loading import enabled_plugins, installed_plugins, load_plugin, plugin_selector
from nutch2py.support.reporting import warn

DEFAULT_PARSE_PLUGINS_FILE = "parse-plugins.xml"
ANY_TYPE = "*"
# Nutch reads all formats but HTML with one plug-in; here each format has a parser whose part_of names it
TIKA_PLUGIN_IDS = frozenset({"parse-tika", "org.apache.nutch.parse.tika.TikaParser"})


def read_parse_plugins(conf: Configuration) -> dict[str, list[str]]:
    """Return content type -> names of its parsers in order, from the file in ``parse.plugin.file``."""
    name = conf.get_trimmed("parse.plugin.file", DEFAULT_PARSE_PLUGINS_FILE)
    root = conf.resource_xml(name)
    if root is None:
        raise ConfigurationError(f"parse.plugin.file names {name}, which no configuration folder contains: correct it")
    mapping: dict[str, list[str]] = {}
    for element in root.iter("mimeType"):
        ids: list[str] = []
        for plugin in element.iter("plugin"):
            order = plugin.get("order", "")
            ids.insert(int(order) - 1 if order.isdecimal() and int(order) else len(ids), plugin.get("id", ""))
        if ids:
            mapping[element.get("name", "").lower()] = ids
    return mapping


class ParserFactory:
    """The enabled parsers. A class declares its content types with the regular expression ``content_types``.

    ``parse-tika`` in ``plugin.includes`` enables every installed parser with ``part_of = "parse-tika"``. In
    ``parse-plugins.xml`` it means those of them that accept the content type. So a Nutch 2 configuration works.
    """

    def __init__(self, conf: Configuration) -> None:
        self._mapping = read_parse_plugins(conf)
        self._mapping_path = conf.resource(conf.get_trimmed("parse.plugin.file", DEFAULT_PARSE_PLUGINS_FILE))
        classes = enabled_plugins(conf, "parser")
        selected = plugin_selector(conf)
        excludes = re.compile(conf.get_trimmed("plugin.excludes"))
        if selected("parse-tika"):
            for plugin_id, entry in installed_plugins("parser").items():
                if plugin_id not in classes and not (excludes.pattern and excludes.fullmatch(plugin_id)):
                    plugin = load_plugin(entry)
                    if plugin.implementation.part_of in TIKA_PLUGIN_IDS:
                        classes[plugin_id] = plugin
        self._parsers: list[tuple[set[str], Parser]] = [
            (plugin.names, plugin(conf)) for _, plugin in sorted(classes.items())
        ]
        self._parsers_by_type: dict[str, list[Parser]] = {}
        self.fields = frozenset().union(*(parser.fields for _, parser in self._parsers))

    def get_parsers(self, content_type: str) -> list[Parser]:
        """Return the parsers of a content type in the order to try them; may be empty."""
        kind = content_type.partition(";")[0].strip().lower()
        found = self._parsers_by_type.get(kind)
        if found is None:
            found = self._parsers_by_type[kind] = self._find_parsers(kind)
        return found

    def _find_parsers(self, kind: str) -> list[Parser]:
        ids = self._mapping.get(kind)
        found = self._parsers_by_id(ids, kind) if ids else [p for _, p in self._parsers if _claims_type(p, kind)]
        return found or self._parsers_by_id(self._mapping.get(ANY_TYPE, []), kind)

    def _parsers_by_id(self, ids: list[str], kind: str) -> list[Parser]:
        found: list[Parser] = []
        disabled: list[str] = []
        for plugin_id in ids:
            if plugin_id in TIKA_PLUGIN_IDS:
                named = [
                    parser
                    for _, parser in self._parsers
                    if parser.part_of in TIKA_PLUGIN_IDS and _claims_type(parser, kind)
                ]
            else:
                named = [parser for names, parser in self._parsers if plugin_id in names]
                if not named and plugin_id in installed_plugins("parser"):
                    disabled.append(plugin_id)
            found += [parser for parser in named if parser not in found]
        if disabled and not found and ids != self._mapping.get(ANY_TYPE):
            names = ", ".join(disabled)
            warn(f"{names} is mapped to {kind} in {self._mapping_path}, but plugin.includes does not enable it")
        return found


_factory_cache: WeakKeyDictionary[Configuration, ParserFactory] = WeakKeyDictionary()


def get_parser_factory(conf: Configuration) -> ParserFactory:
    """Return the cached factory of a configuration."""
    found = _factory_cache.get(conf)
    if found is None:
        found = _factory_cache[conf] = ParserFactory(conf)
    return found


def _claims_type(parser: Parser, kind: str) -> bool:
    return re.fullmatch(parser.content_types, kind) is not None
