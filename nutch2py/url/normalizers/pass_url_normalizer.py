"""urlnormalizer-pass: every URL is its own canonical form. A scope that shall not change URLs is given this one."""

from __future__ import annotations

from nutch2py.conf.configuration import Configuration
from nutch2py.interfaces import URLNormalizer


class PassURLNormalizer(URLNormalizer):
    """Returns the URL as it is."""

    java_class = "org.apache.nutch.net.urlnormalizer.pass.PassURLNormalizer"

    def __init__(self, conf: Configuration) -> None:
        del conf

    def normalize(self, url: str, scope: str) -> str:
        """Return the URL."""
        del scope
        return url
