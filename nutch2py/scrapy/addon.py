"""The add-on that makes a Scrapy project write the crawl table, by one line of its settings."""

from __future__ import annotations

from contextlib import suppress

from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.settings import BaseSettings

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError
from nutch2py.scrapy.robots_middleware import RobotsMiddleware

SETTING, CRAWL_ID, CONF_DIR = "NUTCH2PY", "NUTCH2PY_CRAWL_ID", "NUTCH2PY_CONF_DIR"
"""Settings: properties of Nutch, the crawl's id, and the folder of nutch-site.xml."""
_MIDDLEWARE_PATH = "nutch2py.scrapy.middleware.TableMiddleware"
_PRIORITY = 30  # nearer to the engine than HttpErrorMiddleware (50), which keeps answers such as 404 from spiders


class TableAddon:
    """Adds :class:`~nutch2py.scrapy.middleware.TableMiddleware`, and takes on what the properties say of requests."""

    def update_settings(self, settings: BaseSettings) -> None:
        """Change a project's settings where it has said nothing itself."""
        settings.setdefault_in_component_priority_dict("SPIDER_MIDDLEWARES", _load_middleware(), _PRIORITY)
        conf = configuration_from_settings(settings)
        name = conf.get_trimmed("http.agent.name")
        if name:
            from nutch2py.fetcher.protocols.http_settings import build_user_agent

            settings.set("USER_AGENT", build_user_agent(conf), "addon")
            settings.set("ROBOTSTXT_USER_AGENT", name, "addon")
        settings.set("ROBOTSTXT_OBEY", True, "addon")
        with suppress(KeyError):  # a project that has taken it out, or has its own
            settings.replace_in_component_priority_dict(
                "DOWNLOADER_MIDDLEWARES_BASE", RobotsTxtMiddleware, RobotsMiddleware
            )


def _load_middleware() -> type:
    from scrapy.utils.misc import load_object

    found = load_object(_MIDDLEWARE_PATH)
    assert isinstance(found, type)
    return found


def configuration_from_settings(settings: BaseSettings) -> Configuration:
    """Return the configuration that a project's settings name."""
    properties = settings.getdict(SETTING)
    crawl_id = settings.get(CRAWL_ID)
    if crawl_id:
        properties["storage.crawl.id"] = crawl_id
    if any(not isinstance(name, str) for name in properties):
        raise ConfigurationError(f"the Scrapy setting {SETTING} must be a dict of properties")
    return Configuration.load(settings.get(CONF_DIR), {name: str(value) for name, value in properties.items()})
