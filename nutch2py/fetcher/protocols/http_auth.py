"""Credentials for servers: ``http.auth.file``, in the format of Nutch's ``httpclient-auth.xml``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError
from nutch2py.support.reporting import warn
from nutch2py.url.url_parts import parent_domains

AUTH_SCHEMES = ("basic", "digest", "ntlm")
_DEFAULT_HOSTS = "http.auth.default.hosts"
_ANY_HOST = "*"
_HTTP_METHODS = ("", "httpauth")
"""Values of ``authMethod``, in lower case, for logins of HTTP; Nutch has ``formAuth`` besides."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """A login ``user:password`` and its scheme ("" for any of :data:`AUTH_SCHEMES`)."""

    login: str
    scheme: str = ""


class CredentialStore:
    """Credentials by host and port. Realms in the file are ignored, since libcurl does not report them.

    Args:
        scopes: credentials by host and port, "" for any port.
        default: credentials of ``<default>``, or of a scope that names no host.
        default_hosts: hosts that may get them: names, ``*.name`` for all hosts below a name, ``*`` for any.
    """

    def __init__(
        self,
        scopes: Mapping[tuple[str, str], Credentials],
        default: Credentials | None = None,
        default_hosts: Iterable[str] = (),
    ) -> None:
        self._scopes = scopes
        hosts = frozenset(host.lower().removesuffix(".") for host in default_hosts)
        self._default = default if hosts else None
        self._default_hosts = hosts
        self._longest_host = max(map(len, hosts), default=0)

    def __bool__(self) -> bool:
        return bool(self._scopes) or self._default is not None

    def find(self, host: str, port: int) -> Credentials | None:
        """Return the credentials for host and port, for the host, or the default; None if there are none."""
        host = host.lower().removesuffix(".")
        found = self._scopes.get((host, str(port))) or self._scopes.get((host, ""))
        return found or (self._default if self._is_default_host(host) else None)

    def _is_default_host(self, host: str) -> bool:
        if _ANY_HOST in self._default_hosts or host in self._default_hosts:
            return True
        return any(f"*.{domain}" in self._default_hosts for domain in parent_domains(host, self._longest_host))

    @classmethod
    def from_conf(cls, conf: Configuration) -> CredentialStore:
        """Read the file if it exists; raise ConfigurationError if it is malformed. Unused logins are warned about."""
        name = conf.get_trimmed("http.auth.file", "httpclient-auth.xml")
        root = conf.resource_xml(name)
        if root is None:
            return cls({})
        scopes: dict[tuple[str, str], Credentials] = {}
        default: Credentials | None = None
        for element in root.iter("credentials"):
            method = element.get("authMethod", "").strip()
            if method.lower() not in _HTTP_METHODS:
                _warn_of_method(name, method, element.get("loginUrl", "").strip())
                continue
            login = f"{element.get('username', '')}:{element.get('password', '')}"
            for scope in element:
                scheme = scope.get("scheme", "").lower()
                if scheme not in ("", *AUTH_SCHEMES):
                    raise ConfigurationError(
                        f"http.auth.file: {name} names the scheme {scheme!r}: write one of {AUTH_SCHEMES}"
                    )
                host = scope.get("host", "").strip().lower().removesuffix(".")
                if scope.tag == "default" or (scope.tag == "authscope" and host in ("", _ANY_HOST)):
                    default = default or Credentials(login, scheme)
                elif scope.tag == "authscope":
                    server = host, scope.get("port", "").replace("-1", "")
                    scopes.setdefault(server, Credentials(login, scheme))
        hosts = conf.get_strings(_DEFAULT_HOSTS)
        if default is not None and not hosts:
            warn(
                f"http.auth.file: the <default> login of {name} goes to no host: name hosts in authscope, or set "
                f"{_DEFAULT_HOSTS} to the hosts that may get it (*: any host that asks, as in Nutch)"
            )
        return cls(scopes, default, hosts)


def _warn_of_method(file: str, method: str, login_url: str) -> None:
    where = f" at {login_url:.200}" if login_url else ""
    if method.lower() == "formauth":
        advice = (
            "forms are not filled in: log in with a browser, and write the host and its session cookie into "
            "http.agent.host.cookie.file (docs/fetching.md)"
        )
    else:
        advice = "write httpAuth, or omit it"
    warn(f"http.auth.file: {file} has a login{where} with authMethod={method!r:.50}, which is not used: {advice}")
