"""Settings of the transport read from the properties: handler, Scrapy components and limits."""

from __future__ import annotations

import json
from importlib import import_module
from typing import Any, NamedTuple

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError

PYCURL_HANDLER = "nutch2py.fetcher.downloader.download_handler.PycurlDownloadHandler"
_AIOHTTP_HANDLER = "scrapy.core.downloader.handlers._aiohttp.AiohttpDownloadHandler"
_HTTPX_HANDLER = "scrapy.core.downloader.handlers._httpx.HttpxDownloadHandler"
HANDLER_ALIASES = {
    "auto": PYCURL_HANDLER,
    "pycurl": PYCURL_HANDLER,
    "aiohttp": _AIOHTTP_HANDLER,
    "httpx": _HTTPX_HANDLER,
}
"""Values of ``fetcher.download.handler``; any other value is the path of a handler class."""
FILTERED_HANDLERS = frozenset({PYCURL_HANDLER, _AIOHTTP_HANDLER, _HTTPX_HANDLER})
"""Handlers with connections that pass the address filter."""

_FIRST_MIDDLEWARE_ORDER = 100
"""Order of the first middleware configured without one: closer to the engine than all of Scrapy's own."""

ComponentPriorities = tuple[tuple[str, int], ...]


class TransportSettings(NamedTuple):
    """Handler, Scrapy components (path, order) and limits of the transport.

    Attributes:
        time_limit: Maximum time that add-ons may take for a page, in seconds.
        max_requests: Maximum number of requests for one page.
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
        """Path of the handler class."""
        return HANDLER_ALIASES.get(self.handler, self.handler)

    @property
    def is_scrapy_mode(self) -> bool:
        """Whether requests pass through all of Scrapy: it is configured, or a component needs it."""
        components = self.middlewares or self.addons or self.extensions or self.settings_module or self.extra_settings
        return self.force_scrapy_mode or bool(components) or self.handler_path != PYCURL_HANDLER

    @classmethod
    def from_conf(cls, conf: Configuration) -> TransportSettings:
        """Read the properties.

        Raises:
            ConfigurationError: A component cannot be imported, or a value is malformed.
        """
        settings = cls(
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
        if settings.handler_path not in FILTERED_HANDLERS:
            _load_class("fetcher.download.handler", settings.handler_path)
        if settings.settings_module:
            try:
                import_module(settings.settings_module)
            except (Exception, SystemExit) as error:
                is_missing = isinstance(error, ImportError)
                raise ConfigurationError(
                    f"property fetcher.scrapy.settings.module: {settings.settings_module}: {_format_error(error)}"
                    + (": add the directory of the Scrapy project to PYTHONPATH" if is_missing else "")
                ) from error
        return settings


def _load_class(name: str, path: str) -> None:
    from scrapy.utils.misc import load_object

    try:
        load_object(path)
    except (Exception, SystemExit) as error:  # importing an add-on's module can raise anything
        raise ConfigurationError(f"property {name}: {path}: {_format_error(error)}") from error


def _format_error(error: BaseException) -> str:
    return str(error) if isinstance(error, (ImportError, NameError, ValueError)) else f"{type(error).__name__}: {error}"


def _parse_components(conf: Configuration, name: str) -> ComponentPriorities:
    """Read component paths, each with an optional ``=ORDER``."""
    components = []
    for number, text in enumerate(conf.get_strings(name)):
        path, _, order = (part.strip() for part in text.partition("="))
        if order and not order.isdecimal():
            raise ConfigurationError(
                f"property {name} holds {text!r}: write PATH or PATH=ORDER, where ORDER is an integer"
            )
        _load_class(name, path)
        components.append((path, int(order) if order else _FIRST_MIDDLEWARE_ORDER + number))
    return tuple(components)


def _split_settings(text: str) -> list[str]:
    """Split settings at commas and line ends that a setting's name follows; other commas belong to the value."""
    parts: list[str] = []
    for line in text.splitlines():
        for number, piece in enumerate(line.split(",")):
            name, equals, _ = piece.partition("=")
            starts_setting = equals and name.strip().isidentifier() and name.strip().isupper()
            if parts and not starts_setting:
                parts[-1] += ("," if number else "\n") + piece
            elif piece.strip():
                parts.append(piece)
    return parts


def _parse_settings(conf: Configuration) -> tuple[tuple[str, object], ...]:
    name, settings = "fetcher.scrapy.settings", []
    for text in _split_settings(conf.get(name, "")):
        key, equals, value = (part.strip() for part in text.partition("="))
        if not equals:
            raise ConfigurationError(
                f"property {name} holds {text!r}: write NAME=VALUE, separated by commas or line ends"
            )
        try:
            settings.append((key, json.loads(value) if value[:1] in ("{", "[") else value))
        except ValueError as error:
            raise ConfigurationError(f"property {name}: {key} is not JSON: {error}") from error
    return tuple(settings)
