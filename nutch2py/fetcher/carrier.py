"""What carries the fetcher's requests, as the properties say: a handler alone, or Scrapy with its add-ons."""

from __future__ import annotations

import json
from importlib import import_module
from typing import Any, NamedTuple

from nutch2py.conf import Configuration
from nutch2py.errors import ConfigurationError

PYCURL = "nutch2py.fetcher.handler.PycurlDownloadHandler"
PYCURL_WHOLE = "nutch2py.fetcher.whole_handler.WholeDownloadHandler"
"""The same for the whole way: what add-ons say of a request counts, and a failure is an exception."""
_AIOHTTP = "scrapy.core.downloader.handlers._aiohttp.AiohttpDownloadHandler"
_HTTPX = "scrapy.core.downloader.handlers._httpx.HttpxDownloadHandler"
HANDLERS = {"auto": PYCURL, "pycurl": PYCURL, "aiohttp": _AIOHTTP, "httpx": _HTTPX}
"""Values of ``fetcher.download.handler``; any other is the path of a handler's class."""
GATED = frozenset({PYCURL, PYCURL_WHOLE, _AIOHTTP, _HTTPX})
"""Handlers whose connections the address gate sees."""

_FIRST = 100  # where middlewares begin for which no place is given: nearer to the fetcher than all of Scrapy's

Components = tuple[tuple[str, int], ...]


class Carrier(NamedTuple):
    """What carries requests; components by their paths, with their places in Scrapy's order.

    ``time_limit``: seconds that add-ons may take for a page; ``most_requests``: how often they may ask for it.
    """

    handler: str = "auto"
    middlewares: Components = ()
    addons: Components = ()
    extensions: Components = ()
    module: str = ""
    settings: tuple[tuple[str, Any], ...] = ()
    chosen: bool = False
    time_limit: float = 600.0
    most_requests: int = 20

    @property
    def path(self) -> str:
        """The path of the handler's class."""
        return HANDLERS.get(self.handler, self.handler)

    @property
    def whole(self) -> bool:
        """Whether requests take Scrapy's whole way: it was asked for, or something is there that needs it."""
        added = self.middlewares or self.addons or self.extensions or self.module or self.settings
        return self.chosen or bool(added) or self.path != PYCURL

    @classmethod
    def from_conf(cls, conf: Configuration) -> Carrier:
        """Read the properties; raise ConfigurationError when what one names is not there."""
        carrier = cls(
            conf.get_trimmed("fetcher.download.handler", "auto"),
            _components(conf, "fetcher.scrapy.middlewares"),
            _components(conf, "fetcher.scrapy.addons"),
            _components(conf, "fetcher.scrapy.extensions"),
            conf.get_trimmed("fetcher.scrapy.settings.module"),
            _settings(conf),
            conf.get_bool("fetcher.scrapy.whole", False),
            conf.get_float("fetcher.scrapy.time.limit", 600.0),
            conf.get_int("fetcher.scrapy.requests.max", 20),
        )
        if carrier.path not in GATED:
            _load("fetcher.download.handler", carrier.path)
        if carrier.module:
            try:
                import_module(carrier.module)
            except (Exception, SystemExit) as error:
                lacks = isinstance(error, ImportError)
                raise ConfigurationError(
                    f"property fetcher.scrapy.settings.module: {carrier.module}: {_told(error)}"
                    + (": set PYTHONPATH to the folder of the Scrapy project" if lacks else "")
                ) from error
        return carrier


def _load(name: str, path: str) -> None:
    from scrapy.utils.misc import load_object

    try:
        load_object(path)
    except (Exception, SystemExit) as error:  # whatever the module of an add-on does when it is imported
        raise ConfigurationError(f"property {name}: {path}: {_told(error)}") from error


def _told(error: BaseException) -> str:
    return str(error) if isinstance(error, (ImportError, NameError, ValueError)) else f"{type(error).__name__}: {error}"


def _components(conf: Configuration, name: str) -> Components:
    """Read paths, each with ``=PLACE`` in Scrapy's order or without."""
    found = []
    for number, text in enumerate(conf.get_strings(name)):
        path, _, place = (part.strip() for part in text.partition("="))
        if place and not place.isdecimal():
            raise ConfigurationError(f"property {name} holds {text!r}: write PATH or PATH=PLACE, a whole number")
        _load(name, path)
        found.append((path, int(place) if place else _FIRST + number))
    return tuple(found)


def _parted(text: str) -> list[str]:
    """Part settings at commas and lines, where the name of another one follows: else they belong to the value."""
    parts: list[str] = []
    for line in text.splitlines():
        for number, piece in enumerate(line.split(",")):
            name, equals, _ = piece.partition("=")
            begins = equals and name.strip().isidentifier() and name.strip().isupper()
            if parts and not begins:
                parts[-1] += ("," if number else "\n") + piece
            elif piece.strip():
                parts.append(piece)
    return parts


def _settings(conf: Configuration) -> tuple[tuple[str, Any], ...]:
    name, found = "fetcher.scrapy.settings", []
    for text in _parted(conf.get(name, "")):
        key, equals, value = (part.strip() for part in text.partition("="))
        if not equals:
            raise ConfigurationError(f"property {name} holds {text!r}: write NAME=VALUE, parted by commas or lines")
        try:
            found.append((key, json.loads(value) if value[:1] in ("{", "[") else value))
        except ValueError as error:
            raise ConfigurationError(f"property {name}: {key} is not JSON: {error}") from error
    return tuple(found)
