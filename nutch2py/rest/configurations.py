"""Stored configurations: properties by name that go before those of the server, under an id."""

from __future__ import annotations

from http import HTTPStatus
from pathlib import Path

from nutch2py.conf import Configuration
from nutch2py.rest.refusal import Refusal, not_found
from nutch2py.rest.settable import applied
from nutch2py.rest.state import checked_name, held, made, read, write

DEFAULT = "default"
"""The server's own configuration, which is not changed."""
_MOST = 1000


class Configurations:
    """The configurations of a server, in ``<rest.folder>/configurations``."""

    def __init__(self, folder: Path, conf: Configuration) -> None:
        self.folder = folder / "configurations"
        self._conf = conf

    def ids(self) -> list[str]:
        """Return the ids."""
        return [DEFAULT, *sorted(path.stem for path in self.folder.glob("[!.]*.json"))]

    def properties(self, conf_id: str) -> dict[str, str]:
        """Return what is set besides the server's own; Refusal when there is none of this id."""
        if conf_id == DEFAULT:
            return {}
        found = read(self._path(conf_id), dict[str, str])
        if found is None:
            raise not_found(f"configuration {conf_id}")
        return found

    def effective(self, conf_id: str) -> Configuration:
        """Return the whole configuration of an id."""
        return applied(self._conf, self.properties(conf_id))

    def create(self, conf_id: str, properties: dict[str, str], replace: bool) -> None:
        """Store properties under an id, which is new unless ``replace`` is given."""
        applied(self._conf, properties)
        path = self._own(conf_id)
        with held(made(self.folder) / ".lock"):
            if path.exists() and not replace:
                raise Refusal(HTTPStatus.CONFLICT, f"there is a configuration {conf_id}: force replaces it")
            if len(self.ids()) > _MOST:
                raise Refusal(HTTPStatus.CONFLICT, f"there are {_MOST:,} configurations: delete some")
            write(path, properties)

    def change(self, conf_id: str, name: str, value: str) -> None:
        """Set one property of a stored configuration."""
        path = self._own(conf_id)
        with held(made(self.folder) / ".lock"):
            properties = {**self.properties(conf_id), name: value}
            applied(self._conf, properties)
            write(path, properties)

    def delete(self, conf_id: str) -> None:
        """Delete a stored configuration."""
        self.properties(conf_id)
        self._own(conf_id).unlink(missing_ok=True)

    def _own(self, conf_id: str) -> Path:
        if conf_id == DEFAULT:
            raise Refusal(HTTPStatus.CONFLICT, "the configuration default is the server's own, and not changed")
        return self._path(conf_id)

    def _path(self, conf_id: str) -> Path:
        return self.folder / f"{checked_name(conf_id, 'configuration')}.json"
