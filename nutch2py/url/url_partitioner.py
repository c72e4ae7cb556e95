"""Assigns URLs to fetch tasks: all pages of one host (domain, address) belong to the same task."""

from __future__ import annotations

from zlib import crc32

from nutch2py.conf.configuration import Configuration
from nutch2py.support.bounded_cache import bounded_cache
from nutch2py.support.reporting import warn
from nutch2py.url.host_resolver import HostResolver, HostsFile
from nutch2py.url.java_url import parse_url
from nutch2py.url.normalizers.url_normalizers import SCOPE_PARTITION, URLNormalizers
from nutch2py.url.url_parts import DomainRules

BY_HOST, BY_DOMAIN, BY_IP = "byHost", "byDomain", "byIP"


@bounded_cache(65_536)
def java_hash(text: str) -> int:
    """Return Java's ``String.hashCode``, -2**31 to 2**31 - 1, which is the same in every process."""
    value = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for high, low in zip(units[::2], units[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value


def choose_partition_seed(conf: Configuration, batch_id: str) -> int:
    """Return ``partition.url.seed``, or a number derived from the batch id if that is 0.

    The number is the same for all tasks and reruns of a batch. Each batch groups hosts differently, so that a host does
    not always share its task with the same slow host.
    """
    return conf.get_int("partition.url.seed", 0) or crc32(batch_id.encode("utf-8", "surrogateescape"))


def _mix_bits(value: int) -> int:
    """Return 32 mixed bits of ``value`` (the finalizer of MurmurHash3)."""
    value &= 0xFFFFFFFF
    value = ((value ^ value >> 16) * 0x85EBCA6B) & 0xFFFFFFFF
    value = ((value ^ value >> 13) * 0xC2B2AE35) & 0xFFFFFFFF
    return value ^ value >> 16


class URLPartitioner:
    """Partition URLs by ``mode`` (default: ``partition.url.mode``).

    ``seed`` (default: ``partition.url.seed``) moves hosts to other partitions. With 0 the partitions are those of
    Nutch. Otherwise hash and seed are mixed: Nutch's "exclusive or" keeps the same hosts together if there are 2, 4, 8,
    … partitions.
    """

    def __init__(self, conf: Configuration, mode: str = "", seed: int | None = None) -> None:
        self._domain_of_host = DomainRules.from_conf(conf).domain_of_host
        self.mode = mode or conf.get_trimmed("partition.url.mode", BY_HOST)
        if self.mode not in {BY_HOST, BY_DOMAIN, BY_IP}:
            warn(f"partition.url.mode is {self.mode}, which is not byHost, byDomain or byIP: using byHost")
            self.mode = BY_HOST
        self.seed = conf.get_int("partition.url.seed", 0) if seed is None else seed
        self._normalize = URLNormalizers(conf, SCOPE_PARTITION).normalize
        self._resolve = HostResolver(HostsFile.from_conf(conf)).resolve

    def key(self, url: str) -> str:
        """Return the grouping key of a URL: host, domain or address, or the URL itself if it is malformed.

        A host that cannot be resolved is its own key. The normalizers of scope ``partition`` run first.
        """
        url = self._normalize(url) or url
        try:
            host = parse_url(url).host
        except ValueError:
            return url
        if self.mode == BY_HOST:
            return host
        if self.mode == BY_DOMAIN:
            return self._domain_of_host(host)
        return self._resolve(host) or host

    def partition(self, url: str, count: int) -> int:
        """Return the number of the partition, 0 to ``count`` - 1."""
        if count <= 1:
            return 0
        value = java_hash(self.key(url))
        return ((_mix_bits(value ^ self.seed) if self.seed else value) & 0x7FFFFFFF) % count
