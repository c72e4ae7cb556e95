"""What carries the fetcher's requests, as the properties say: a handler alone, or Scrapy with its add-ons."""

from __future__ import annotations

import json
from importlib import import_module
from typing import Any, NamedTuple

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError

PYCURL_HANDLER = "nutch2py.fetcher.downloader.download_handler.PycurlDownloadHandler"
PYCURL_SCRAPY_HANDLER = "nutch2py.fetcher.downloader.scrapy_download_handler.ScrapyDownloadHandler"
"""The same for the whole way: what add-ons say of a request counts, and a failure is an exception."""
_AIOHTTP_HANDLER = "scrapy.core.downloader.handlers._aiohttp.AiohttpDownloadHandler"
_HTTPX_HANDLER = "scrapy.core.downloader.handlers._httpx.HttpxDownloadHandler"
HANDLER_ALIASES = {
    "auto": PYCURL_HANDLER,
    "pycurl": PYCURL_HANDLER,
    "aiohttp": _AIOHTTP_HANDLER,
    "httpx": _HTTPX_HANDLER,
}
"""Values of ``fetcher.download.handler``; any other is the path of a handler's class."""
FILTERED_HANDLERS = frozenset({PYCURL_HANDLER, PYCURL_SCRAPY_HANDLER, _AIOHTTP_HANDLER, _HTTPX_HANDLER})
"""Handlers whose connections the address gate sees."""

_FIRST_MIDDLEWARE_ORDER = (
    100  # where middlewares begin for which no place is given: nearer to the fetcher than all of Scrapy's
)

ComponentPriorities = tuple[tuple[str, int], ...]


class TransportSettings(NamedTuple):
    """What carries requests; components by their paths, with their places in Scrapy's order.

    ``time_limit``: seconds that add-ons may take for a page; ``max_requests``: how often they may ask for it.
    """

    handler: str = "auto"
    middlewares: ComponentPriorities = ()
    addons: ComponentPriorities = ()
    extensions: ComponentPriorities = ()
    settings_module: str = ""
    extra_settings: tuple[tuple[str, Any], ...] = ()
    force_scrapy_mode: bool = False
    time_limit: float = 600.0
    max_requests: int = 20

    @property
    def handler_path(self) -> str:
        """The path of the handler's class."""
        return HANDLER_ALIASES.get(self.handler, self.handler)

    @property
    def is_scrapy_mode(self) -> bool:
        """Whether requests take Scrapy's whole way: it was asked for, or something is there that needs it."""
        added = self.middlewares or self.addons or self.extensions or self.settings_module or self.extra_settings
        return self.force_scrapy_mode or bool(added) or self.handler_path != PYCURL_HANDLER

    @classmethod
    def from_conf(cls, conf: Configuration) -> TransportSettings:
        """Read the properties; raise ConfigurationError when what one names is not there."""
        carrier = cls(
            conf.get_trimmed("fetcher.download.handler", "auto"),
            _parse_components(conf, "fetcher.scrapy.middlewares"),
            _parse_components(conf, "fetcher.scrapy.addons"),
            _parse_components(conf, "fetcher.scrapy.extensions"),
            conf.get_trimmed("fetcher.scrapy.settings.module"),
            _parse_settings(conf),
            conf.get_bool("fetcher.scrapy.whole", False),
            conf.get_float("fetcher.scrapy.time.limit", 600.0),
            conf.get_int("fetcher.scrapy.requests.max", 20),
        )
        if carrier.handler_path not in FILTERED_HANDLERS:
            _load_class("fetcher.download.handler", carrier.handler_path)
        if carrier.settings_module:
            try:
                import_module(carrier.settings_module)
            except (Exception, SystemExit) as error:
                lacks = isinstance(error, ImportError)
                raise ConfigurationError(
                    f"property fetcher.scrapy.settings.module: {carrier.settings_module}: {_format_error(error)}"
                    + (": set PYTHONPATH to the folder of the Scrapy project" if lacks else "")
                ) from error
        return carrier


def _load_class(name: str, path: str) -> None:
    from scrapy.utils.misc import load_object

    try:
        load_object(path)
    except (Exception, SystemExit) as error:  # whatever the module of an add-on does when it is imported
        raise ConfigurationError(f"property {name}: {path}: {_format_error(error)}") from error


def _format_error(error: BaseException) -> str:
    return str(error) if isinstance(error, (ImportError, NameError, ValueError)) else f"{type(error).__name__}: {error}"


def _parse_components(conf: Configuration, name: str) -> ComponentPriorities:
    """Read paths, each with ``=PLACE`` in Scrapy's order or without."""
    found = []
    for number, text in enumerate(conf.get_strings(name)):
        path, _, place = (part.strip() for part in text.partition("="))
        if place and not place.isdecimal():
            raise ConfigurationError(f"property {name} holds {text!r}: write PATH or PATH=PLACE, a whole number")
        _load_class(name, path)
        found.append((path, int(place) if place else _FIRST_MIDDLEWARE_ORDER + number))
    return tuple(found)


def _split_settings(text: str) -> list[str]:
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


def _parse_settings(conf: Configuration) -> tuple[tuple[str, Any], ...]:
    name, found = "fetcher.scrapy.settings", []
    for text in _split_settings(conf.get(name, "")):
        key, equals, value = (part.strip() for part in text.partition("="))
        if not equals:
            raise ConfigurationError(f"property {name} holds {text!r}: write NAME=VALUE, parted by commas or lines")
        try:
            found.append((key, json.loads(value) if value[:1] in ("{", "[") else value))
        except ValueError as error:
            raise ConfigurationError(f"property {name}: {key} is not JSON: {error}") from error
    return tuple(found)
