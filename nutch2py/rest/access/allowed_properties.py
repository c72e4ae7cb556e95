"""Which properties a request may set: those of a list for who may run jobs, any for who administers.

The list holds numbers, switches and choices that say how much, how fast and how often: nothing that names a file, an
address, a program, a class or a plug-in, nothing that decides where the crawl, its index or its logs are, and nothing
that lets a crawl reach what the operator keeps it from (the gate of addresses, robots.txt, certificates, logins).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from http import HTTPStatus

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import InputError
from nutch2py.rest.access.tokens import Role
from nutch2py.rest.http_error import HttpError

RUN_ROLE_PROPERTIES = frozenset(
    [
        "db.fetch.interval.default",
        "db.fetch.interval.max",
        "db.fetch.retry.max",
        "db.ignore.external.links",
        "db.max.outlinks.per.page",
        "db.update.additions.allowed",
        "db.update.max.inlinks",
        "fetcher.parse",
        "fetcher.store.content",
        "fetcher.threads.fetch",
        "fetcher.timelimit.mins",
        "generate.count.mode",
        "generate.max.count",
        "generate.max.distance",
        "generate.min.score",
        "generate.update.crawldb",
        "link.analyze.num.iterations",
        "pagerank.iterations",
        "parser.skip.truncated",
    ]
)
"""Set by the role ``run``."""
_XML_INVALID = re.compile("[\x00-\x08\x0b-\x1f\ud800-\udfff\ufffe\uffff]")
"""What no XML file can hold."""


def check_allowed(properties: Mapping[str, str], role: Role) -> None:
    """Raise Refusal for a property that the role may not set, InputError for a value that no file can hold."""
    for name, value in properties.items():
        if role < Role.ADMIN and name not in RUN_ROLE_PROPERTIES:
            raise HttpError(HTTPStatus.FORBIDDEN, f"the property {name} is set by the role admin only (docs/rest.md)")
        if role < Role.ADMIN and "${" in value:
            raise HttpError(HTTPStatus.FORBIDDEN, f"{name}: variables are used by the role admin only")
        if _XML_INVALID.search(value):
            raise InputError(f"the value of {name} holds control characters")


def with_properties(conf: Configuration, properties: Mapping[str, str]) -> Configuration:
    """Return a configuration with properties set; a number that is none, or out of its range, is refused."""
    changed = conf.copy()
    for name, value in properties.items():
        changed.set(name, value)
    changed.check_numbers()
    return changed
