"""The add-on that connects a Scrapy project to the crawl table with one line of its settings."""

from __future__ import annotations

from contextlib import suppress

from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.settings import BaseSettings

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError
from nutch2py.scrapy.robots_middleware import RobotsMiddleware

SETTING, CRAWL_ID, CONF_DIR = "NUTCH2PY", "NUTCH2PY_CRAWL_ID", "NUTCH2PY_CONF_DIR"
"""Settings: properties of Nutch, crawl id, and directory of nutch-site.xml."""
_MIDDLEWARE_PATH = "nutch2py.scrapy.middleware.TableMiddleware"
_PRIORITY = 30  # closer to the engine than HttpErrorMiddleware (50), which hides responses such as 404 from spiders


class TableAddon:
    """Adds :class:`~nutch2py.scrapy.middleware.TableMiddleware` and applies request properties to the project."""

    def update_settings(self, settings: BaseSettings) -> None:
        """Change the project's settings that it does not set itself."""
        settings.setdefault_in_component_priority_dict("SPIDER_MIDDLEWARES", _load_middleware(), _PRIORITY)
        conf = configuration_from_settings(settings)
        name = conf.get_trimmed("http.agent.name")
        if name:
            from nutch2py.fetcher.protocols.http_settings import build_user_agent

            settings.set("USER_AGENT", build_user_agent(conf), "addon")
            settings.set("ROBOTSTXT_USER_AGENT", name, "addon")
        settings.set("ROBOTSTXT_OBEY", True, "addon")
        with suppress(KeyError):  # a project that removed or replaced it
            settings.replace_in_component_priority_dict(
                "DOWNLOADER_MIDDLEWARES_BASE", RobotsTxtMiddleware, RobotsMiddleware
            )


def _load_middleware() -> type:
    from scrapy.utils.misc import load_object

    middleware = load_object(_MIDDLEWARE_PATH)
    if not isinstance(middleware, type):
        raise TypeError(f"{_MIDDLEWARE_PATH} is not a class")
    return middleware


def configuration_from_settings(settings: BaseSettings) -> Configuration:
    """Return the configuration defined by a project's settings."""
    properties = settings.getdict(SETTING)
    crawl_id = settings.get(CRAWL_ID)
    if crawl_id:
        properties["storage.crawl.id"] = crawl_id
    if any(not isinstance(name, str) for name in properties):
        raise ConfigurationError(f"the Scrapy setting {SETTING} must be a dict of properties")
    return Configuration.load(settings.get(CONF_DIR), {name: str(value) for name, value in properties.items()})
