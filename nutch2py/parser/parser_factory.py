"""Which parsers a content type gets: ``parse-plugins.xml`` and ``plugin.includes`` (Nutch's ParserFactory)."""

from __future__ import annotations

import re
from weakref import WeakKeyDictionary

from nutch2py.conf import Configuration
from nutch2py.contracts import Parser
from nutch2py.errors import ConfigurationError
from nutch2py.plugins import enabled, load, registered, selection
from nutch2py.reporting import warn

DEFAULT_FILE = "parse-plugins.xml"
ANY_TYPE = "*"
# Nutch reads all formats but HTML through one plug-in; here each has a parser of its own that says part_of it
TIKA = frozenset({"parse-tika", "org.apache.nutch.parse.tika.TikaParser"})


def read_parse_plugins(conf: Configuration) -> dict[str, list[str]]:
    """Return content type -> names of its parsers in order, from the file that ``parse.plugin.file`` names."""
    name = conf.get_trimmed("parse.plugin.file", DEFAULT_FILE)
    root = conf.resource_xml(name)
    if root is None:
        raise ConfigurationError(f"parse.plugin.file names {name}, which is in no configuration folder: correct it")
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
    """The enabled parsers. A class says with ``content_types`` (a regular expression) what it claims to read.

    ``parse-tika`` in ``plugin.includes`` enables every installed parser with ``part_of = "parse-tika"``, and in
    ``parse-plugins.xml`` it stands for those of them that claim the content type. So a Nutch 2 configuration works.
    """

    def __init__(self, conf: Configuration) -> None:
        self._mapping = read_parse_plugins(conf)
        self._file = conf.resource(conf.get_trimmed("parse.plugin.file", DEFAULT_FILE))
        classes = enabled(conf, "parser")
        selected = selection(conf)
        excludes = re.compile(conf.get_trimmed("plugin.excludes"))
        if selected("parse-tika"):
            for plugin_id, entry in registered("parser").items():
                if plugin_id not in classes and not (excludes.pattern and excludes.fullmatch(plugin_id)):
                    plugin = load(entry)
                    if plugin.made_of.part_of in TIKA:
                        classes[plugin_id] = plugin
        self._parsers: list[tuple[set[str], Parser]] = [
            (plugin.names, plugin(conf)) for _, plugin in sorted(classes.items())
        ]
        self._chosen: dict[str, list[Parser]] = {}
        self.fields = frozenset().union(*(parser.fields for _, parser in self._parsers))

    def parsers(self, content_type: str) -> list[Parser]:
        """Return the parsers for a content type in the order they are tried; an empty list when there is none."""
        kind = content_type.partition(";")[0].strip().lower()
        found = self._chosen.get(kind)
        if found is None:
            found = self._chosen[kind] = self._find(kind)
        return found

    def _find(self, kind: str) -> list[Parser]:
        ids = self._mapping.get(kind)
        found = self._named(ids, kind) if ids else [p for _, p in self._parsers if _claims(p, kind)]
        return found or self._named(self._mapping.get(ANY_TYPE, []), kind)

    def _named(self, ids: list[str], kind: str) -> list[Parser]:
        found: list[Parser] = []
        left_out: list[str] = []
        for plugin_id in ids:
            if plugin_id in TIKA:
                named = [parser for _, parser in self._parsers if parser.part_of in TIKA and _claims(parser, kind)]
            else:
                named = [parser for names, parser in self._parsers if plugin_id in names]
                if not named and plugin_id in registered("parser"):
                    left_out.append(plugin_id)
            found += [parser for parser in named if parser not in found]
        if left_out and not found and ids != self._mapping.get(ANY_TYPE):
            names = ", ".join(left_out)
            warn(f"{names} is mapped to {kind} in {self._file}, but plugin.includes leaves it out")
        return found


_factories: WeakKeyDictionary[Configuration, ParserFactory] = WeakKeyDictionary()


def parser_factory(conf: Configuration) -> ParserFactory:
    """Return the factory of a configuration, made at the first call."""
    found = _factories.get(conf)
    if found is None:
        found = _factories[conf] = ParserFactory(conf)
    return found


def _claims(parser: Parser, kind: str) -> bool:
    return re.fullmatch(parser.content_types, kind) is not None
