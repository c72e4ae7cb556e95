"""A configuration folder for a new crawl: what people change, each with its description; all else is by reference.

What is not asked for stands in it as a comment with its shipped value, ready to be taken out of the comment.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from textwrap import fill
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from nutch2py.conf.configuration import Configuration, data_dir
from nutch2py.errors import InputError
from nutch2py.support.atomic_files import atomic_write

TEMPLATE_PROPERTIES = {
    "Who the crawler is": ("http.agent.name", "http.agent.url", "http.agent.email"),
    "Where it keeps what it finds": ("storage.data.store", "solr.server.url", "mapreduce.runner"),
    "How far it goes": (
        "db.ignore.external.links", "db.ignore.external.links.mode", "generate.max.distance", "generate.max.count",
        "http.filter.ipaddress.exclude",
    ),
    "How it asks": (
        "fetcher.server.delay", "fetcher.threads.fetch", "http.timeout", "http.content.limit",
        "http.dns.servers", "http.proxy.host", "http.proxy.port",
    ),
    "When it comes again": ("db.fetch.interval.default", "db.fetch.schedule.class"),
    "What it does with pages": ("plugin.includes.add", "parser.timeout", "fetcher.store.content"),
}  # fmt: skip
"""The properties of a new ``nutch-site.xml``, under headings."""
_LINE_WIDTH = 100
SEEDS_FILE = "seeds.txt"


def write_conf_dir(conf_dir: Path, values: Mapping[str, str], seeds: Iterable[str] = ()) -> list[Path]:
    """Write the folder; return its files. ``values``: values of properties of :data:`TEMPLATE_PROPERTIES`; ``seeds``: URLs.

    Raise InputError when it cannot be written, or a file of such a name is there: nothing is replaced.
    """
    files = {conf_dir / "nutch-site.xml": render_site_xml(values)}
    lines = [f"{seed}\n" for seed in seeds]
    if lines:
        files[conf_dir / SEEDS_FILE] = "".join(lines)
    for path in files:
        if os.path.lexists(path):  # which a name that is too long does not
            raise InputError(f"{path} is there already: name another folder, or change that file")
    try:
        conf_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot write {error.filename or conf_dir}: {error.strerror}: name another folder") from error
    for path, text in files.items():
        with atomic_write(path) as out:
            out.write(text.encode())
    return [*files]


def render_site_xml(values: Mapping[str, str]) -> str:
    """Return the text of a ``nutch-site.xml``."""
    shipped, described = Configuration.load(), _property_descriptions()
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        "<configuration>",
        "  <!-- What stands here goes before the shipped values, which `nutch2py showproperties` prints. Rule files of",
        "       the shipped configuration, as regex-urlfilter.txt, can be copied beside this file and changed. -->",
    ]
    for heading, names in TEMPLATE_PROPERTIES.items():
        lines += ["", f"  <!-- {heading} -->"]
        for name in names:
            text = fill(described[name], _LINE_WIDTH - 9, initial_indent="  ", subsequent_indent="     ")
            lines.append(f"  <!-- {_escape_comment(text.strip())} -->")
            value = values.get(name)
            written = f"<property><name>{name}</name><value>{escape(value or shipped.get(name, ''))}</value></property>"
            lines.append(f"  {written}" if value is not None else f"  <!-- {_escape_comment(written)} -->")
    return "\n".join([*lines, "</configuration>", ""])


def _property_descriptions() -> dict[str, str]:
    root = ElementTree.parse(data_dir("conf") / "nutch-default.xml").getroot()
    return {
        (each.findtext("name") or "").strip(): " ".join((each.findtext("description") or "").split())
        for each in root.iter("property")
    }


def _escape_comment(text: str) -> str:
    """Return a text that may stand in a comment, where two hyphens may not."""
    return text.replace("--", "- -")
