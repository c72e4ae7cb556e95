"""Properties that requests may set: a list for the role ``run``, any for ``admin``.

The list holds numbers, switches and choices for amounts, rates and intervals. It holds no file, address, program, class
or plug-in, no location of the crawl, its index or its logs, and nothing that lifts a restriction of the operator
(address filter, robots.txt, certificates, logins).
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
"""Properties that the role ``run`` may set."""
_XML_INVALID = re.compile("[\x00-\x08\x0b-\x1f\ud800-\udfff\ufffe\uffff]")
"""Characters that XML cannot represent."""


def check_allowed(properties: Mapping[str, str], role: Role) -> None:
    """Raise HttpError for a property that the role may not set, InputError for a value that XML cannot represent."""
    for name, value in properties.items():
        if role < Role.ADMIN and name not in RUN_ROLE_PROPERTIES:
            raise HttpError(HTTPStatus.FORBIDDEN, f"the property {name} requires the role admin (docs/rest.md)")
        if role < Role.ADMIN and "${" in value:
            raise HttpError(HTTPStatus.FORBIDDEN, f"{name}: variables require the role admin")
        if _XML_INVALID.search(value):
            raise InputError(f"the value of {name} contains control characters")


def with_properties(conf: Configuration, properties: Mapping[str, str]) -> Configuration:
    """Return a copy with properties set; raise ConfigurationError for an invalid or out-of-range number."""
    changed = conf.copy()
    for name, value in properties.items():
        changed.set(name, value)
    changed.check_numbers()
    return changed
