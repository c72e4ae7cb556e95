"""Which fetch task gets a URL: the pages of one host (domain, address) always go to the same one."""

from __future__ import annotations

from functools import lru_cache

from nutch2py.conf import Configuration
from nutch2py.reporting import warn
from nutch2py.url.javaurl import parse_url
from nutch2py.url.parts import domain_of_host
from nutch2py.url.resolve import HostsFile, Resolver
from nutch2py.url.url_normalizers import PARTITION, URLNormalizers

BY_HOST, BY_DOMAIN, BY_IP = "byHost", "byDomain", "byIP"


@lru_cache(maxsize=65_536)
def java_hash(text: str) -> int:
    """Return ``String.hashCode``, -2**31 to 2**31 - 1: the same in every process, which Python's ``hash`` is not."""
    value = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for high, low in zip(units[::2], units[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value


class URLPartitioner:
    """Partitions by ``mode``, else by ``partition.url.mode``.

    ``partition.url.seed`` moves hosts to other partitions from run to run.
    """

    def __init__(self, conf: Configuration, mode: str = "") -> None:
        self.mode = mode or conf.get_trimmed("partition.url.mode", BY_HOST)
        if self.mode not in {BY_HOST, BY_DOMAIN, BY_IP}:
            warn(f"partition.url.mode is {self.mode}, which is not byHost, byDomain or byIP: byHost is taken")
            self.mode = BY_HOST
        self.seed = conf.get_int("partition.url.seed", 0)
        self._normalize = URLNormalizers(conf, PARTITION).normalize
        self._resolve = Resolver(HostsFile.from_conf(conf)).resolve

    def key(self, url: str) -> str:
        """Return what holds pages together: host, domain or address; the URL itself when it is malformed.

        A host whose address is not known is its own key. The normalizers of scope ``partition`` run first.
        """
        url = self._normalize(url) or url
        try:
            host = parse_url(url).host
        except ValueError:
            return url
        if self.mode == BY_HOST:
            return host
        if self.mode == BY_DOMAIN:
            return domain_of_host(host)
        return self._resolve(host) or host

    def partition(self, url: str, count: int) -> int:
        """Return the number of the partition, 0 to ``count`` - 1."""
        if count <= 1:
            return 0
        return ((java_hash(self.key(url)) ^ self.seed) & 0x7FFFFFFF) % count
