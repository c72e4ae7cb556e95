"""urlnormalizer-slash: adds or removes trailing slashes of a host's paths by slashes.txt, as ``www.example.org +``."""

from __future__ import annotations

from nutch2py.conf.configuration import Configuration
from nutch2py.interfaces import URLNormalizer
from nutch2py.url.java_url import compose_url, parse_url
from nutch2py.url.rule_files import read_rules

_LONGEST_EXTENSION = 5  # ".html": a path with an extension is a file and gets no slash


class SlashURLNormalizer(URLNormalizer):
    """Add (``+``) or remove (``-``) the trailing slash of a path; the path ``/`` is unchanged."""

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
        """Return the URL by its host's rule; raise ValueError if it is malformed."""
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
