"""Which fetch task gets a URL: the pages of one host (domain, address) always go to the same one."""

from __future__ import annotations

from zlib import crc32

from nutch2py.conf.configuration import Configuration
from nutch2py.support.bounded_cache import bounded_cache
from nutch2py.support.reporting import warn
from nutch2py.url.host_resolver import HostResolver, HostsFile
from nutch2py.url.java_url import parse_url
from nutch2py.url.normalizers.url_normalizers import SCOPE_PARTITION, URLNormalizers
from nutch2py.url.url_parts import domain_of_host

BY_HOST, BY_DOMAIN, BY_IP = "byHost", "byDomain", "byIP"


@bounded_cache(65_536)
def java_hash(text: str) -> int:
    """Return ``String.hashCode``, -2**31 to 2**31 - 1: the same in every process, which Python's ``hash`` is not."""
    value = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for high, low in zip(units[::2], units[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value


def choose_partition_seed(conf: Configuration, batch_id: str) -> int:
    """Return ``partition.url.seed``; where that is 0, a number of the batch, the same for every task and every rerun.

    Hosts then meet others in each batch, so that none is slow for ever for standing beside a slow one.
    """
    return conf.get_int("partition.url.seed", 0) or crc32(batch_id.encode("utf-8", "surrogateescape"))


def _mix_bits(value: int) -> int:
    """Return 32 bits of which each depends on each of ``value``'s (the last step of MurmurHash3)."""
    value &= 0xFFFFFFFF
    value = ((value ^ value >> 16) * 0x85EBCA6B) & 0xFFFFFFFF
    value = ((value ^ value >> 13) * 0xC2B2AE35) & 0xFFFFFFFF
    return value ^ value >> 16


class URLPartitioner:
    """Partitions by ``mode``, else by ``partition.url.mode``.

    ``seed``, else ``partition.url.seed``, moves hosts to other partitions. With 0 partitions are those of Nutch; with
    another number hash and seed are mixed, where Nutch's "exclusive or" has the same hosts meet in another partition
    whenever there are 2, 4, 8, … of them.
    """

    def __init__(self, conf: Configuration, mode: str = "", seed: int | None = None) -> None:
        self.mode = mode or conf.get_trimmed("partition.url.mode", BY_HOST)
        if self.mode not in {BY_HOST, BY_DOMAIN, BY_IP}:
            warn(f"partition.url.mode is {self.mode}, which is not byHost, byDomain or byIP: byHost is taken")
            self.mode = BY_HOST
        self.seed = conf.get_int("partition.url.seed", 0) if seed is None else seed
        self._normalize = URLNormalizers(conf, SCOPE_PARTITION).normalize
        self._resolve = HostResolver(HostsFile.from_conf(conf)).resolve

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
        value = java_hash(self.key(url))
        return ((_mix_bits(value ^ self.seed) if self.seed else value) & 0x7FFFFFFF) % count
