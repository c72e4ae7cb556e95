"""Named configurations: stored properties that override those of the server."""

from __future__ import annotations

from bisect import bisect_right
from http import HTTPStatus
from pathlib import Path

from nutch2py.conf.configuration import Configuration
from nutch2py.rest.access.allowed_properties import with_properties
from nutch2py.rest.http_error import HttpError
from nutch2py.rest.state_dir import JsonStore, StoreQuota

DEFAULT_ID = "default"
"""Id of the server's own configuration, which is read-only."""


class StoredConfigurations:
    """The configurations of a server, in ``<rest.folder>/configurations``."""

    def __init__(self, folder: Path, conf: Configuration) -> None:
        quota = StoreQuota.from_conf(conf)
        self._stored = JsonStore(folder / "configurations", dict[str, str], "configuration", "configurations", quota)
        self._conf = conf

    def ids(self) -> list[str]:
        """Return the ids."""
        return [DEFAULT_ID, *self._stored.ids()]

    def page(self, after: str, limit: int) -> list[str]:
        """Return at most ``limit`` ids after ``after``: ``default`` first, then in order."""
        ids = self.ids()
        start = ids.index(after) + 1 if after in ids else bisect_right(ids, after, 1) if after else 0
        return ids[start : start + limit]

    def properties(self, conf_id: str) -> dict[str, str]:
        """Return the overriding properties; raise HttpError when no configuration has this id."""
        return {} if conf_id == DEFAULT_ID else self._stored.get(conf_id)

    def effective(self, conf_id: str) -> Configuration:
        """Return the effective configuration of an id."""
        return with_properties(self._conf, self.properties(conf_id))

    def store(self, conf_id: str, properties: dict[str, str], force: bool) -> None:
        """Store properties under an id; raise HttpError for an existing id unless ``force`` is set."""
        with_properties(self._conf, properties)
        _require_not_default(conf_id)
        with self._stored.lock():
            if not force and self._stored.exists(conf_id):
                raise HttpError(HTTPStatus.CONFLICT, f"the configuration {conf_id} exists: set force to replace it")
            self._stored.put_locked(conf_id, properties)

    def set_property(self, conf_id: str, name: str, value: str) -> None:
        """Set one property of a stored configuration."""
        _require_not_default(conf_id)
        with self._stored.lock():
            properties = {**self.properties(conf_id), name: value}
            with_properties(self._conf, properties)
            self._stored.put_locked(conf_id, properties)

    def delete(self, conf_id: str) -> None:
        """Delete a stored configuration."""
        _require_not_default(conf_id)
        self._stored.delete(conf_id)


def _require_not_default(conf_id: str) -> None:
    if conf_id == DEFAULT_ID:
        raise HttpError(HTTPStatus.CONFLICT, "the configuration default is read-only: it is the server's own")
