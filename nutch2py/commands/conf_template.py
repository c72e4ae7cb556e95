"""Template of the configuration folder of a new crawl: the most used properties, each with its description.

A property without a given value is commented out, with its default value.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from textwrap import fill
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from nutch2py.conf.configuration import Configuration, data_dir
from nutch2py.errors import InputError
from nutch2py.support.atomic_files import atomic_write
from nutch2py.support.disk_errors import raise_disk_error

TEMPLATE_PROPERTIES = {
    "Identity of the crawler": ("http.agent.name", "http.agent.url", "http.agent.email"),
    "Storage, index and runner": ("storage.data.store", "solr.server.url", "mapreduce.runner"),
    "Scope": (
        "db.ignore.external.links", "db.ignore.external.links.mode", "generate.max.distance", "generate.max.count",
        "http.filter.ipaddress.exclude",
    ),
    "Politeness and network": (
        "fetcher.server.delay", "fetcher.threads.fetch", "http.timeout", "http.content.limit",
        "http.dns.servers", "http.proxy.host", "http.proxy.port",
    ),
    "Fetch schedule": ("db.fetch.interval.default", "db.fetch.schedule.class"),
    "Plug-ins and parsing": ("plugin.includes.add", "parser.timeout", "fetcher.store.content"),
}  # fmt: skip
"""The properties of a new ``nutch-site.xml``, by heading."""
_LINE_WIDTH = 100
SEEDS_FILE = "seeds.txt"


def write_conf_dir(conf_dir: Path, values: Mapping[str, str], seeds: Iterable[str] = ()) -> list[Path]:
    """Write the folder, all of its files or none, and return them.

    Args:
        conf_dir: The folder.
        values: Values of properties in :data:`TEMPLATE_PROPERTIES`.
        seeds: URLs for the seed file.

    Raises:
        InputError: The folder is not writable, or one of the files exists: nothing is overwritten.
        StoreError: A file cannot be written, for instance on a full disk.
    """
    files = {conf_dir / "nutch-site.xml": render_site_xml(values)}
    lines = [f"{seed}\n" for seed in seeds]
    if lines:
        files[conf_dir / SEEDS_FILE] = "".join(lines)
    for path in files:
        if os.path.lexists(path):  # unlike exists, false for a name that is too long
            raise InputError(f"{path} already exists: name another folder, or change that file")
    missing = [each for each in (conf_dir, *conf_dir.parents) if not os.path.lexists(each)]
    try:
        conf_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise_disk_error(error, conf_dir, "name another folder")
        raise InputError(f"cannot write {error.filename or conf_dir}: {error.strerror}: name another folder") from error
    try:
        with ExitStack() as stack:
            for path, text in files.items():
                out = stack.enter_context(atomic_write(path))
                out.write(text.encode())
                out.flush()
                os.fsync(out.fileno())  # a full disk shows here, before the first file gets its name
    except BaseException:
        for path in files:
            with suppress(OSError):
                path.unlink(missing_ok=True)
        for folder in missing:
            with suppress(OSError):
                folder.rmdir()
        raise
    return [*files]


def render_site_xml(values: Mapping[str, str]) -> str:
    """Return the content of a ``nutch-site.xml``."""
    shipped, described = Configuration.load(), _property_descriptions()
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        "<configuration>",
        "  <!-- These values override the defaults, which `nutch2py showproperties` prints. Rule files of the default",
        "       configuration, such as regex-urlfilter.txt, can be copied to this folder and changed. -->",
    ]
    for heading, names in TEMPLATE_PROPERTIES.items():
        lines += ["", f"  <!-- {heading} -->"]
        for name in names:
            text = fill(described[name], _LINE_WIDTH - 9, initial_indent="  ", subsequent_indent="     ")
            lines.append(f"  <!-- {_escape_comment(text.strip())} -->")
            value = values.get(name)
            element = f"<property><name>{name}</name><value>{escape(value or shipped.get(name, ''))}</value></property>"
            lines.append(f"  {element}" if value is not None else f"  <!-- {_escape_comment(element)} -->")
    return "\n".join([*lines, "</configuration>", ""])


def _property_descriptions() -> dict[str, str]:
    root = ElementTree.parse(data_dir("conf") / "nutch-default.xml").getroot()  # noqa: S314 - the package's own file
    return {
        (each.findtext("name") or "").strip(): " ".join((each.findtext("description") or "").split())
        for each in root.iter("property")
    }


def _escape_comment(text: str) -> str:
    """Return a text that is valid in a comment, which must not contain two hyphens in a row."""
    return text.replace("--", "- -")
