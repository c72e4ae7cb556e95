"""Stored lists of seeds."""

from __future__ import annotations

import secrets
from pathlib import Path

from msgspec import Struct, field

from nutch2py.rest.kinds import Name, Urls
from nutch2py.rest.state import Shelf


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


class SeedLists(Shelf[SeedList]):
    """The lists of a server, in ``<rest.folder>/seeds``."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / "seeds", SeedList, "list of seeds", "lists of seeds")

    def store(self, new: NewSeedList) -> SeedList:
        """Store a list, in the place of one with its id."""
        stored = SeedList(id=new.id or f"seeds-{secrets.token_hex(6)}", name=new.name, urls=new.urls)
        self.put(stored.id, stored)
        return stored
