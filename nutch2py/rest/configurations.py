"""Stored configurations: properties by name that go before those of the server, under an id."""

from __future__ import annotations

from contextlib import AbstractContextManager
from http import HTTPStatus
from pathlib import Path

from nutch2py.conf import Configuration
from nutch2py.rest.refusal import Refusal
from nutch2py.rest.settable import applied
from nutch2py.rest.state import Shelf, held, made

DEFAULT = "default"
"""The server's own configuration, which is not changed."""


class Configurations:
    """The configurations of a server, in ``<rest.folder>/configurations``."""

    def __init__(self, folder: Path, conf: Configuration) -> None:
        self._stored = Shelf(folder / "configurations", dict[str, str], "configuration", "configurations")
        self._conf = conf

    def ids(self) -> list[str]:
        """Return the ids."""
        return [DEFAULT, *self._stored.ids()]

    def properties(self, conf_id: str) -> dict[str, str]:
        """Return what is set besides the server's own; Refusal when there is none of this id."""
        return {} if conf_id == DEFAULT else self._stored.get(conf_id)

    def effective(self, conf_id: str) -> Configuration:
        """Return the whole configuration of an id."""
        return applied(self._conf, self.properties(conf_id))

    def create(self, conf_id: str, properties: dict[str, str], replace: bool) -> None:
        """Store properties under an id, which is new unless ``replace`` is given."""
        applied(self._conf, properties)
        _own(conf_id)
        with self._held():
            if not replace and self._stored.has(conf_id):
                raise Refusal(HTTPStatus.CONFLICT, f"there is a configuration {conf_id}: force replaces it")
            self._stored.put(conf_id, properties)

    def change(self, conf_id: str, name: str, value: str) -> None:
        """Set one property of a stored configuration."""
        _own(conf_id)
        with self._held():
            properties = {**self.properties(conf_id), name: value}
            applied(self._conf, properties)
            self._stored.put(conf_id, properties)

    def delete(self, conf_id: str) -> None:
        """Delete a stored configuration."""
        _own(conf_id)
        self._stored.delete(conf_id)

    def _held(self) -> AbstractContextManager[None]:
        return held(made(self._stored.folder) / ".lock")


def _own(conf_id: str) -> None:
    if conf_id == DEFAULT:
        raise Refusal(HTTPStatus.CONFLICT, "the configuration default is the server's own, and not changed")
