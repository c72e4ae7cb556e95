"""The configuration of a job, as a folder that its command is given: the site's own files, and what is set besides."""

from __future__ import annotations

from pathlib import Path
from xml.sax.saxutils import escape

from nutch2py.conf import Configuration, data_folder
from nutch2py.rest.kinds import SEEDS
from nutch2py.rest.state import made, write

_SITE = "nutch-site.xml"


def prepare(folder: Path, conf: Configuration, seeds: list[str] | None) -> None:
    """Write the files of a job that is to work with ``conf`` and a list of seeds."""
    made(folder / "conf")
    shipped = data_folder("conf")
    for site in (each for each in conf.folders if each.resolve() != shipped.resolve()):
        for path in site.iterdir():
            if path.name != _SITE and not (folder / "conf" / path.name).exists():
                (folder / "conf" / path.name).symlink_to(path.resolve())
    write(folder / "conf" / _SITE, _site_xml(conf, shipped).encode("utf-8"))
    if seeds is not None:
        write(folder / SEEDS, "".join(f"{seed}\n" for seed in seeds).encode("utf-8"))


def _site_xml(conf: Configuration, shipped: Path) -> str:
    """Return all properties that are not the shipped ones, variables as they were written."""
    default = str(shipped / "nutch-default.xml")
    lines = ["<?xml version='1.0' encoding='UTF-8'?>", "<configuration>"]
    for name, value in conf.raw().items():
        if conf.origin(name) != default:
            shown = escape(value, {"\r": "&#13;"})
            lines.append(f"<property><name>{escape(name)}</name><value>{shown}</value></property>")
    return "\n".join([*lines, "</configuration>\n"])
