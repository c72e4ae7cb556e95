"""urlnormalizer-slash: a slash at the end of a host's paths, or none, from slashes.txt: ``www.example.org +``."""

from __future__ import annotations

from nutch2py.conf.configuration import Configuration
from nutch2py.interfaces import URLNormalizer
from nutch2py.url.java_url import compose_url, parse_url
from nutch2py.url.rule_files import read_rules

_LONGEST_EXTENSION = 5  # ".html": a path with one is a file and gets no slash


class SlashURLNormalizer(URLNormalizer):
    """Adds (``+``) or takes away (``-``) the slash at the end of a path; ``/`` alone stays."""

    java_class = "org.apache.nutch.net.urlnormalizer.slash.SlashURLNormalizer"

    def __init__(self, conf: Configuration) -> None:
        rules = read_rules(conf, "urlnormalizer.slashes", "slashes.txt")
        self._adds_slash: dict[str, bool] = {}
        for number, line in rules.lines():
            words = line.split()
            if len(words) != 2 or words[1] not in {"+", "-"}:
                raise rules.error(number, f"{line.strip()!r} is not a host and + or -")
            self._adds_slash[words[0]] = words[1] == "+"

    def normalize(self, url: str, scope: str) -> str:
        """Return the URL by its host's rule; raise ValueError when it is malformed."""
        del scope
        parsed = parse_url(url)
        adds = self._adds_slash.get(parsed.host)
        path = parsed.path
        if adds is None or len(path) <= 1:
            return url
        if adds and not path.endswith("/") and not self._has_extension(path):
            path += "/"
        elif not adds and path.endswith("/"):
            path = path[:-1]
        else:
            return url
        return compose_url(parsed.protocol, parsed.host, parsed.port, parsed._replace(path=path).file)

    @staticmethod
    def _has_extension(path: str) -> bool:
        return len(path) > _LONGEST_EXTENSION and "." in path[-_LONGEST_EXTENSION - 1 :]
