"""The configuration: where it was read, who the crawler says it is, names that mean nothing, plug-ins that load."""

from __future__ import annotations

from collections.abc import Iterator

from nutch2py.conf import Configuration
from nutch2py.doctor.finding import Finding, doubtful, good
from nutch2py.fetcher.gate import AddressGate
from nutch2py.fetcher.http_settings import HttpSettings
from nutch2py.parser.parsing import Parsing
from nutch2py.plugins import unknown_ids, unread
from nutch2py.schedule.fetch_schedule import check_schedule
from nutch2py.scoring.scoring_filters import ScoringFilters
from nutch2py.url.url_filters import URLFilters
from nutch2py.url.url_normalizers import SCOPES, URLNormalizers


def files(conf: Configuration) -> Iterator[Finding]:
    """Which files were read."""
    found = [str(path) for folder in conf.folders for path in (folder / "nutch-site.xml",) if path.is_file()]
    told = f"read from {', '.join(found)}" if found else "shipped defaults alone"
    yield good("configuration", f"{told}; a folder of your own is named by --conf or NUTCH_CONF_DIR")
    conf.check_numbers()


def properties(conf: Configuration) -> Iterator[Finding]:
    """Names that mean nothing."""
    for name, near in unread(conf):
        if near:
            yield doubtful("properties", f"there is no {name}, did you mean {near}? {conf.origin(name)} sets it")
        else:
            yield doubtful("properties", f"there is no {name}, which {conf.origin(name)} sets: nothing reads it")
    for name, plugin, near in unknown_ids(conf):
        meant = f", did you mean {near}?" if near else ""
        yield doubtful("properties", f"{name} names {plugin}, which is no plug-in here{meant}")


def agent(conf: Configuration) -> Iterator[Finding]:
    """Who the crawler says it is."""
    name = conf.get_trimmed("http.agent.name")
    if not name:
        told = "http.agent.name is empty: fetch refuses to run, and crawl calls itself nutch2py"
        yield doubtful("agent name", f"{told}: name your crawler there, in {conf.own_file}")
    elif not conf.get_trimmed("http.agent.url") and not conf.get_trimmed("http.agent.email"):
        yield doubtful("agent name", f"{name}: say in http.agent.url or http.agent.email whom site owners can ask")
    else:
        yield good("agent name", name)


def plugins(conf: Configuration) -> Iterator[Finding]:
    """Whether all that is chosen can be loaded, with its rules and settings."""
    gate = AddressGate.from_conf(conf)
    if conf.get_trimmed("http.agent.name"):
        HttpSettings.from_conf(conf)
    filters = URLFilters(conf)
    for scope in SCOPES:
        URLNormalizers(conf, scope)
    ScoringFilters(conf)
    Parsing(conf)
    check_schedule(conf)
    yield good("plug-ins", f"all load: {len(filters.filters)} URL filters, their rules, parsers, schedule")
    if not gate:
        yield doubtful(
            "address gate", "http.filter.ipaddress.exclude is empty: links and redirects can lead to private addresses"
        )
