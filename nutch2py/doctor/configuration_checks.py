"""Checks of the configuration: files, property names, agent name and plug-ins."""

from __future__ import annotations

from collections.abc import Iterator

from nutch2py.conf.configuration import Configuration
from nutch2py.doctor.check_result import CheckResult, ok_result, warning_result
from nutch2py.fetcher.protocols.address_filter import AddressFilter
from nutch2py.fetcher.protocols.http_settings import HttpSettings
from nutch2py.parser.row_parser import RowParser
from nutch2py.plugins.unknown_properties import unknown_plugin_ids, unread_properties
from nutch2py.schedule.fetch_schedule import check_fetch_schedule
from nutch2py.scoring.scoring_filters import ScoringFilters
from nutch2py.url.filters.url_filters import URLFilters
from nutch2py.url.normalizers.url_normalizers import SCOPES, URLNormalizers


def check_config_files(conf: Configuration) -> Iterator[CheckResult]:
    """Report the configuration files, and check that numbers are valid."""
    files = [str(path) for folder in conf.conf_dirs for path in (folder / "nutch-site.xml",) if path.is_file()]
    source = f"read from {', '.join(files)}" if files else "shipped defaults only"
    yield ok_result("configuration", f"{source}; set another folder with --conf or NUTCH_CONF_DIR")
    conf.check_numbers()


def check_property_names(conf: Configuration) -> Iterator[CheckResult]:
    """Find unknown property names and plug-in ids."""
    for name, near in unread_properties(conf):
        if near:
            yield warning_result("properties", f"unknown property {name} in {conf.origin(name)}: did you mean {near}?")
        else:
            yield warning_result("properties", f"unknown property {name} in {conf.origin(name)}: nothing reads it")
    for name, plugin, near in unknown_plugin_ids(conf):
        suggestion = f": did you mean {near}?" if near else ""
        yield warning_result("properties", f"unknown plug-in {plugin} in {name}{suggestion}")


def check_agent_name(conf: Configuration) -> Iterator[CheckResult]:
    """Check the name and the contact that the crawler sends."""
    name = conf.get_trimmed("http.agent.name")
    if not name:
        message = "http.agent.name is empty: fetch does not run, and crawl uses the name nutch2py"
        yield warning_result("agent name", f"{message}. Set the name of your crawler in {conf.site_file}")
    elif not conf.get_trimmed("http.agent.url") and not conf.get_trimmed("http.agent.email"):
        yield warning_result(
            "agent name", f"{name}: set http.agent.url or http.agent.email, so that site owners can contact you"
        )
    else:
        yield ok_result("agent name", name)


def check_plugins(conf: Configuration) -> Iterator[CheckResult]:
    """Load all configured plug-ins with their rules and settings."""
    address_filter = AddressFilter.from_conf(conf)
    if conf.get_trimmed("http.agent.name"):
        HttpSettings.from_conf(conf)
    filters = URLFilters(conf)
    for scope in SCOPES:
        URLNormalizers(conf, scope)
    ScoringFilters(conf)
    RowParser(conf)
    check_fetch_schedule(conf)
    yield ok_result(
        "plug-ins", f"loaded: {len(filters.filters)} URL filters with their rules, parsers and fetch schedule"
    )
    if not address_filter:
        yield warning_result(
            "address filter",
            "http.filter.ipaddress.exclude is empty: the fetcher follows links and redirects to private addresses",
        )
