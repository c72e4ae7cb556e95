"""Stored lists of seeds."""

from __future__ import annotations

import secrets
from http import HTTPStatus
from pathlib import Path

from msgspec import Struct, field

from nutch2py.rest.kinds import Name, Urls
from nutch2py.rest.refusal import Refusal, not_found
from nutch2py.rest.state import checked_name, made, read, write

_MOST = 1000


class NewSeedList(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """A list of seeds to be stored; ``id``: "" for one that is made up."""

    id: Name | None = None
    name: str = ""
    urls: Urls = field(default_factory=list)


class SeedList(Struct, kw_only=True, frozen=True):
    """A stored list of seeds."""

    id: str
    name: str
    urls: list[str]


class SeedLists:
    """The lists of a server, in ``<rest.folder>/seeds``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "seeds"

    def all(self) -> list[SeedList]:
        """Return all lists."""
        return [found for path in sorted(self.folder.glob("[!.]*.json")) if (found := read(path, SeedList))]

    def get(self, list_id: str) -> SeedList:
        """Return a list; Refusal when there is none of this id."""
        found = read(self._path(list_id), SeedList)
        if found is None:
            raise not_found(f"list of seeds {list_id}")
        return found

    def put(self, new: NewSeedList) -> SeedList:
        """Store a list, in the place of one with its id."""
        made(self.folder)
        stored = SeedList(id=new.id or f"seeds-{secrets.token_hex(6)}", name=new.name, urls=new.urls)
        if len(self.all()) >= _MOST and not self._path(stored.id).exists():
            raise Refusal(HTTPStatus.CONFLICT, f"there are {_MOST:,} lists of seeds: delete some")
        write(self._path(stored.id), stored)
        return stored

    def delete(self, list_id: str) -> None:
        """Delete a list."""
        self.get(list_id)
        self._path(list_id).unlink(missing_ok=True)

    def _path(self, list_id: str) -> Path:
        return self.folder / f"{checked_name(list_id, 'list of seeds')}.json"
