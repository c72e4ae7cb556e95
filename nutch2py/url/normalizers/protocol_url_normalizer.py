"""urlnormalizer-protocol: sets the protocol of hosts by protocols.txt: ``a.org https`` or ``*.example.com https``."""

from __future__ import annotations

import re

from nutch2py.conf.configuration import Configuration
from nutch2py.interfaces import URLNormalizer
from nutch2py.support.reporting import warn
from nutch2py.url.java_url import compose_url, parse_url
from nutch2py.url.rule_files import read_rules
from nutch2py.url.url_parts import parent_domains

_PROTOCOL = re.compile(r"[a-z](?:[a-z0-9$\-_@.&!*\"'(),]|%[0-9a-f]{2})*", re.IGNORECASE)  # RFC 1630


class ProtocolURLNormalizer(URLNormalizer):
    """Set the protocol of hosts, or of ``*.domain`` and all its hosts; URLs with a port are unchanged."""

    java_class = "org.apache.nutch.net.urlnormalizer.protocol.ProtocolURLNormalizer"

    def __init__(self, conf: Configuration) -> None:
        rules = read_rules(conf, "urlnormalizer.protocols", "protocols.txt")
        self._hosts: dict[str, str] = {}
        self._domains: dict[str, str] = {}
        for number, line in rules.lines():
            words = line.split()
            if len(words) != 2 or not _PROTOCOL.fullmatch(words[1]):
                warn(f"{rules.name}, line {number}: {line.strip()!r} is not a host and a protocol: line skipped")
                continue
            name, protocol = words
            if name.startswith("*."):
                self._domains[name[2:]] = protocol
                self._hosts[name[2:]] = protocol
            else:
                self._hosts[name] = protocol
        self._longest_domain = max(map(len, self._domains), default=0)

    def normalize(self, url: str, scope: str) -> str:
        """Return the URL with the protocol of its host; raise ValueError if it is malformed."""
        del scope
        parsed = parse_url(url)
        if parsed.port != -1:
            return url
        protocol = self._hosts.get(parsed.host)
        if protocol is None:
            found = (self._domains.get(domain) for domain in parent_domains(parsed.host, self._longest_domain))
            protocol = next(filter(None, found), None)
        if protocol is None or protocol == parsed.protocol:
            return url
        return compose_url(protocol, parsed.host, -1, parsed.file)
