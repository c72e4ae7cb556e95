"""The configuration: where it was read, who the crawler says it is, names that mean nothing, plug-ins that load."""

from __future__ import annotations

from collections.abc import Iterator

from nutch2py.conf.configuration import Configuration
from nutch2py.doctor.check_result import CheckResult, ok_result, warning_result
from nutch2py.fetcher.protocols.address_filter import AddressFilter
from nutch2py.fetcher.protocols.http_settings import HttpSettings
from nutch2py.parser.row_parser import RowParser
from nutch2py.plugins.loading import unknown_plugin_ids, unread_properties
from nutch2py.schedule.fetch_schedule import check_fetch_schedule
from nutch2py.scoring.scoring_filters import ScoringFilters
from nutch2py.url.filters.url_filters import URLFilters
from nutch2py.url.normalizers.url_normalizers import SCOPES, URLNormalizers


def check_config_files(conf: Configuration) -> Iterator[CheckResult]:
    """Which files were read."""
    found = [str(path) for folder in conf.conf_dirs for path in (folder / "nutch-site.xml",) if path.is_file()]
    told = f"read from {', '.join(found)}" if found else "shipped defaults alone"
    yield ok_result("configuration", f"{told}; a folder of your own is named by --conf or NUTCH_CONF_DIR")
    conf.check_numbers()


def check_property_names(conf: Configuration) -> Iterator[CheckResult]:
    """Names that mean nothing."""
    for name, near in unread_properties(conf):
        if near:
            yield warning_result("properties", f"there is no {name}, did you mean {near}? {conf.origin(name)} sets it")
        else:
            yield warning_result("properties", f"there is no {name}, which {conf.origin(name)} sets: nothing reads it")
    for name, plugin, near in unknown_plugin_ids(conf):
        meant = f", did you mean {near}?" if near else ""
        yield warning_result("properties", f"{name} names {plugin}, which is no plug-in here{meant}")


def check_agent_name(conf: Configuration) -> Iterator[CheckResult]:
    """Who the crawler says it is."""
    name = conf.get_trimmed("http.agent.name")
    if not name:
        told = "http.agent.name is empty: fetch refuses to run, and crawl calls itself nutch2py"
        yield warning_result("agent name", f"{told}: name your crawler there, in {conf.site_file}")
    elif not conf.get_trimmed("http.agent.url") and not conf.get_trimmed("http.agent.email"):
        yield warning_result(
            "agent name", f"{name}: say in http.agent.url or http.agent.email whom site owners can ask"
        )
    else:
        yield ok_result("agent name", name)


def check_plugins(conf: Configuration) -> Iterator[CheckResult]:
    """Whether all that is chosen can be loaded, with its rules and settings."""
    gate = AddressFilter.from_conf(conf)
    if conf.get_trimmed("http.agent.name"):
        HttpSettings.from_conf(conf)
    filters = URLFilters(conf)
    for scope in SCOPES:
        URLNormalizers(conf, scope)
    ScoringFilters(conf)
    RowParser(conf)
    check_fetch_schedule(conf)
    yield ok_result("plug-ins", f"all load: {len(filters.filters)} URL filters, their rules, parsers, schedule")
    if not gate:
        yield warning_result(
            "address gate", "http.filter.ipaddress.exclude is empty: links and redirects can lead to private addresses"
        )
