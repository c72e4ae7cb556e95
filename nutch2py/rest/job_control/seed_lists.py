"""Stored seed lists."""

from __future__ import annotations

import secrets
from pathlib import Path

from msgspec import Struct, field

from nutch2py.rest.job_control.job_requests import Identifier, SeedUrls
from nutch2py.rest.state_dir import JsonStore, StoreQuota


class NewSeedList(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """A seed list to store. ``id``: generated if None."""

    id: Identifier | None = None
    name: str = ""
    urls: SeedUrls = field(default_factory=list)


class SeedList(Struct, kw_only=True, frozen=True):
    """A stored seed list."""

    id: str
    name: str
    urls: list[str]


class SeedListStore(JsonStore[SeedList]):
    """The seed lists of a server, in ``<rest.folder>/seeds``."""

    def __init__(self, directory: Path, quota: StoreQuota) -> None:
        super().__init__(directory / "seeds", SeedList, "seed list", "seed lists", quota)

    def store(self, new: NewSeedList) -> SeedList:
        """Store a list, replacing one with its id."""
        stored = SeedList(id=new.id or f"seeds-{secrets.token_hex(6)}", name=new.name, urls=new.urls)
        self.put(stored.id, stored)
        return stored
