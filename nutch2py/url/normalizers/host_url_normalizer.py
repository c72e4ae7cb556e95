"""urlnormalizer-host: replaces hosts by rules of host-urlnormalizer.txt, such as ``*.example.com www.example.com``."""

from __future__ import annotations

from nutch2py.conf.configuration import Configuration
from nutch2py.interfaces import URLNormalizer
from nutch2py.url.java_url import parse_url
from nutch2py.url.rule_files import read_rules
from nutch2py.url.url_parts import parent_domains


class HostURLNormalizer(URLNormalizer):
    """Replace hosts by name, or all hosts of a domain by ``*.domain``; the shortest domain applies."""

    java_class = "org.apache.nutch.net.urlnormalizer.host.HostURLNormalizer"

    def __init__(self, conf: Configuration) -> None:
        rules = read_rules(conf, "urlnormalizer.hosts", "host-urlnormalizer.txt")
        self._targets: dict[str, str] = {}
        for number, line in rules.lines():
            words = line.split()
            if len(words) != 2:
                raise rules.error(number, f"{line.strip()!r} is not a host and its replacement")
            self._targets[words[0]] = words[1]
        self._longest_target = max(map(len, self._targets), default=0)

    def normalize(self, url: str, scope: str) -> str:
        """Return the URL with its host replaced; raise ValueError if it is malformed."""
        del scope
        host = parse_url(url).host
        target = self._targets.get(host)
        if target is None:
            # "*.example.com" first, never "*.com" nor the host itself: the order of Nutch
            for domain in reversed([*parent_domains(host, self._longest_target)]):
                if "." in domain and (target := self._targets.get(f"*.{domain}")) is not None:
                    break
        if target is None or not host:
            return url
        at = url.index(host, url.index("//") + 2)
        return url[:at] + target + url[at + len(host) :]
