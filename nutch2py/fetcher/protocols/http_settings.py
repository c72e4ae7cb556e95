"""Settings of requests from the properties ``http.*``: identity, protocols, proxy and limits."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError
from nutch2py.fetcher.protocols.address_filter import AddressFilter
from nutch2py.fetcher.protocols.dns import DnsCache
from nutch2py.fetcher.protocols.http_auth import CredentialStore
from nutch2py.fetcher.protocols.local_files import LocalFileReader
from nutch2py.fetcher.protocols.response_body import ACCEPT_ENCODING
from nutch2py.fetcher.signatures.request_signer import RequestSigner
from nutch2py.plugins.loading import plugin_selector
from nutch2py.support.reporting import warn
from nutch2py.url.url_length import max_url_length

HTTP_SETTINGS_KEY = "NUTCH2PY_HTTP"
"""The Scrapy setting that carries :class:`HttpSettings` to a download handler."""
MAX_REQUESTS_KEY = "NUTCH2PY_MAX_REQUESTS"
"""The Scrapy setting with the maximum number of requests for one page."""


def build_user_agent(conf: Configuration) -> str:
    """Return the ``User-Agent`` header: ``name/version (description; url; email)``, as Nutch builds it."""
    name, version = conf.get_trimmed("http.agent.name"), conf.get_trimmed("http.agent.version")
    details = [conf.get_trimmed(f"http.agent.{part}") for part in ("description", "url", "email")]
    agent = f"{name}/{version}" if version else name
    comment = "; ".join(part for part in details if part)
    return f"{agent} ({comment})" if comment else agent


def require_agent_name(conf: Configuration) -> str:
    """Return ``http.agent.name``; raise ConfigurationError if it is empty, since a crawler must identify itself."""
    name = conf.get_trimmed("http.agent.name")
    if not name:
        raise ConfigurationError(
            "Fetcher: No agents listed in 'http.agent.name' property.: give your crawler a name in "
            f"{conf.site_file}, or with -D http.agent.name=NAME"
        )
    return name


def _read_rotating_agents(conf: Configuration) -> tuple[str, ...]:
    if not conf.get_bool("http.agent.rotate", False):
        return ()
    name = conf.get_trimmed("http.agent.rotate.file", "agents.txt")
    agents = tuple(line.strip() for line in (conf.resource_text(name) or "").splitlines() if line.strip())
    if not agents:
        warn(f"http.agent.rotate: {name} contains no agent: using http.agent.name")
    return agents


def _read_host_cookies(conf: Configuration) -> dict[str, str]:
    """Return the cookie by host of ``http.agent.host.cookie.file``: lines of host, tab and cookie."""
    if not conf.get_bool("http.enable.cookie.header", True):
        return {}
    text = conf.resource_text(conf.get_trimmed("http.agent.host.cookie.file", "cookies.txt")) or ""
    pairs = (line.partition("\t") for line in text.splitlines() if not line.startswith("#"))
    return {host.strip().lower(): cookie.strip() for host, _, cookie in pairs if cookie.strip()}


def enabled_protocols(conf: Configuration) -> frozenset[str]:
    """Return the enabled protocols: http, https, and file and ftp if in ``plugin.includes``."""
    selected = plugin_selector(conf)
    return frozenset({"http", "https", *(name for name in ("file", "ftp") if selected(f"protocol-{name}"))})


@dataclass(slots=True)
class FtpSettings:
    """Settings ``ftp.*``; ``content_limit`` in bytes, ``timeout`` in seconds."""

    login: str
    content_limit: int
    timeout: float

    @classmethod
    def from_conf(cls, conf: Configuration) -> FtpSettings:
        """Read the properties."""
        user = conf.get_trimmed("ftp.username", "anonymous")
        return cls(
            f"{user}:{conf.get_trimmed('ftp.password', 'anonymous@example.com')}",
            conf.get_int("ftp.content.limit", 65536),
            conf.get_int("ftp.timeout", 60000) / 1000,
        )


@dataclass(slots=True)
class ProxySettings:
    """The proxy of ``http.proxy.*``; ``bypass_rules``: hosts requested directly (``*`` at one end)."""

    url: str
    credentials: str
    bypass_rules: tuple[str, ...]

    def is_bypassed(self, host: str) -> bool:
        """Return whether a host is requested without the proxy."""
        return any(
            host == rule
            or (rule.endswith("*") and host.startswith(rule[:-1]))
            or (rule.startswith("*") and host.endswith(rule[1:]))
            for rule in self.bypass_rules
        )

    @classmethod
    def from_conf(cls, conf: Configuration) -> ProxySettings | None:
        """Read ``http.proxy.*``; return None if ``http.proxy.host`` is unset."""
        host = conf.get_trimmed("http.proxy.host")
        if not host:
            return None
        scheme = {"HTTP": "http", "SOCKS": "socks5h"}.get(conf.get_trimmed("http.proxy.type", "HTTP").upper())
        if scheme is None:
            raise ConfigurationError("property http.proxy.type is neither HTTP nor SOCKS: correct it")
        user = conf.get_trimmed("http.proxy.username")
        credentials = f"{user}:{conf.get_trimmed('http.proxy.password')}" if user else ""
        return cls(
            f"{scheme}://{host}:{conf.get_int('http.proxy.port', 8080)}",
            credentials,
            tuple(conf.get_strings("http.proxy.exception.list")),
        )


@dataclass(slots=True)
class HttpSettings:
    """Settings of requests; times in seconds, sizes in bytes, -1 for no limit."""

    default_user_agent: str
    rotating_agents: tuple[str, ...]
    default_headers: tuple[tuple[str, str], ...]
    timeout: float
    time_limit: float
    content_limit: int
    header_limit: int
    header_count: int
    http11: bool
    http2: bool
    lenient: bool
    keep_partial: bool
    if_modified_since: bool
    store_ip: bool
    check_certificates: bool
    proxy: ProxySettings | None
    address_filter: AddressFilter
    dns_cache: DnsCache
    host_cookies: dict[str, str]
    credentials: CredentialStore
    protocols: frozenset[str]
    local_files: LocalFileReader
    ftp: FtpSettings
    url_limit: int
    keep_exchange: bool
    signer: RequestSigner | None = None
    max_connections: int = field(default=64)

    @classmethod
    def from_conf(
        cls, conf: Configuration, threads: int = 10, *, sitemap: bool = False, keep_exchange: bool = False
    ) -> HttpSettings:
        """Read the properties.

        Args:
            conf: Properties of the crawl.
            threads: Number of fetcher threads.
            sitemap: Whether the URLs are sitemaps.
            keep_exchange: Whether requests and status lines are kept.

        Raises:
            ConfigurationError: A property is malformed, or ``http.agent.name`` is missing.
        """
        require_agent_name(conf)
        limit = conf.get_int("http.content.limit", 1048576)
        if sitemap:
            limit = conf.get_int("sitemap.content.limit", -1)
            limit = limit if limit >= 0 else conf.get_int("sitemap.size.max", 52_428_800)
        headers = (
            ("Accept-Encoding", ACCEPT_ENCODING),
            ("Accept-Language", conf.get_trimmed("http.accept.language")),
            ("Accept-Charset", conf.get_trimmed("http.accept.charset")),
            ("Accept", conf.get_trimmed("http.accept")),
        )
        return cls(
            default_user_agent=build_user_agent(conf),
            rotating_agents=_read_rotating_agents(conf),
            default_headers=tuple((name, value) for name, value in headers if value),
            timeout=conf.get_int("http.timeout", 10000) / 1000,
            time_limit=conf.get_float("http.time.limit", 300),
            content_limit=limit,
            header_limit=conf.get_int("http.header.limit", 131072),
            header_count=conf.get_int("http.header.max.count", 1000),
            http11=conf.get_bool("http.useHttp11", True),
            http2=conf.get_bool("http.useHttp2", False),
            lenient=conf.get_bool("http.accept.malformed", False),
            keep_partial=conf.get_bool("http.partial.truncated", False),
            if_modified_since=conf.get_bool("http.enable.if.modified.since.header", True),
            store_ip=conf.get_bool("store.ip.address", False) or keep_exchange,
            check_certificates=conf.get_bool("http.tls.certificates.check", False),
            proxy=ProxySettings.from_conf(conf),
            address_filter=AddressFilter.from_conf(conf),
            dns_cache=DnsCache.from_conf(conf),
            host_cookies=_read_host_cookies(conf),
            credentials=CredentialStore.from_conf(conf),
            protocols=enabled_protocols(conf),
            local_files=LocalFileReader.from_conf(conf),
            ftp=FtpSettings.from_conf(conf),
            url_limit=max_url_length(conf),
            keep_exchange=keep_exchange,
            signer=RequestSigner.from_conf(conf),
            max_connections=max(2 * threads, 64),
        )

    def choose_user_agent(self) -> str:
        """Return the ``User-Agent`` header, a random one of ``http.agent.rotate.file`` if enabled."""
        if not self.rotating_agents:
            return self.default_user_agent
        return random.choice(self.rotating_agents)  # noqa: S311 - no secret

    def signature_lines(self, url: str) -> tuple[str, ...]:
        """Return the header lines that sign one request (``http.signature.key.file``), none if it is not signed."""
        return self.signer.header_lines(url) if self.signer is not None else ()

    def build_request_headers(self) -> list[tuple[str, str]]:
        """Return the headers common to all requests."""
        return [*self.default_headers, ("User-Agent", self.choose_user_agent())]
