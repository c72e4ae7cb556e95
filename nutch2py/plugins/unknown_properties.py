"""Finds names in the configuration that nothing reads: unknown properties and unknown plug-in ids."""

from __future__ import annotations

import re
from difflib import get_close_matches

from nutch2py.conf.configuration import Configuration
from nutch2py.interfaces import EXTENSION_POINTS
from nutch2py.plugins.loading import has_third_party_plugins, installed_plugins

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
"""Ids without an entry point that are supported nevertheless: protocols, and the parsers that replace Tika."""
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
"""Plug-ins of Nutch without a counterpart here: docs/differences.md gives the reasons."""
_PLAIN_ID = re.compile(r"\s*(?P<before>[\w-]*+)(?:\((?P<group>[\w|-]*+)\))?(?P<after>[\w-]*+)\s*")
_TOP_LEVEL_BAR = re.compile(r"\|(?![^()]*+\))")


def unread_properties(conf: Configuration) -> list[tuple[str, str]]:
    """Return the properties that no code reads, each with a suggested name or "".

    Properties with a plug-in id as prefix belong to the plug-in, such as ``indexer-csv.fields``; plug-ins of other
    packages may read properties of any name.
    """
    strange = conf.unknown_properties()
    if not strange:
        return []
    own = tuple(f"{plugin_id}." for point in EXTENSION_POINTS for plugin_id in installed_plugins(point))
    foreign = has_third_party_plugins()
    return [(name, near) for name, near in strange if (near or not foreign) and not name.startswith(own)]


def unknown_plugin_ids(conf: Configuration) -> list[tuple[str, str, str]]:
    """Return unknown plug-in ids in properties: property, id, and a suggested id or "".

    Checks ids that are written literally, as in ``a|parse-(b|c)``, in values of the site or the caller. Nutch plug-ins
    without a counterpart (:data:`UNSUPPORTED_NUTCH_PLUGINS`) are not reported.
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
