"""Credentials for servers: ``http.auth.file``, in the format of Nutch's ``httpclient-auth.xml``."""

from __future__ import annotations

from dataclasses import dataclass

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError

AUTH_SCHEMES = ("basic", "digest", "ntlm")


@dataclass(frozen=True, slots=True)
class Credentials:
    """A login ``user:password`` and its scheme ("" for any of :data:`AUTH_SCHEMES`)."""

    login: str
    scheme: str = ""


class CredentialStore:
    """Credentials by host and port. Realms in the file are ignored, since libcurl does not report them."""

    def __init__(self, scopes: dict[tuple[str, str], Credentials], default: Credentials | None = None) -> None:
        self._scopes, self._default = scopes, default

    def __bool__(self) -> bool:
        return bool(self._scopes) or self._default is not None

    def find(self, host: str, port: int) -> Credentials | None:
        """Return the credentials for host and port, for the host, or the default; None if there are none."""
        host = host.lower()
        return self._scopes.get((host, str(port))) or self._scopes.get((host, "")) or self._default

    @classmethod
    def from_conf(cls, conf: Configuration) -> CredentialStore:
        """Read the file if it exists; raise ConfigurationError if it is malformed."""
        name = conf.get_trimmed("http.auth.file", "httpclient-auth.xml")
        root = conf.resource_xml(name)
        if root is None:
            return cls({})
        scopes: dict[tuple[str, str], Credentials] = {}
        default: Credentials | None = None
        for element in root.iter("credentials"):
            login = f"{element.get('username', '')}:{element.get('password', '')}"
            for scope in element:
                scheme = scope.get("scheme", "").lower()
                if scheme not in ("", *AUTH_SCHEMES):
                    raise ConfigurationError(
                        f"http.auth.file: {name} names the scheme {scheme!r}: write one of {AUTH_SCHEMES}"
                    )
                if scope.tag == "default":
                    default = default or Credentials(login, scheme)
                elif scope.tag == "authscope":
                    server = scope.get("host", "").lower(), scope.get("port", "").replace("-1", "")
                    scopes.setdefault(server, Credentials(login, scheme))
        return cls(scopes, default)
