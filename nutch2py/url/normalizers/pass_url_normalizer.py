"""urlnormalizer-pass: returns URLs unchanged, for scopes that must not change URLs."""

from __future__ import annotations

from nutch2py.conf.configuration import Configuration
from nutch2py.interfaces import URLNormalizer


class PassURLNormalizer(URLNormalizer):
    """Return URLs unchanged."""

    java_class = "org.apache.nutch.net.urlnormalizer.pass.PassURLNormalizer"

    def __init__(self, conf: Configuration) -> None:
        del conf

    def normalize(self, url: str, scope: str) -> str:
        """Return the URL."""
        del scope
        return url
