"""Class names of Nutch 2's commands, by which scripts may call them: ``org.apache.nutch.crawl.InjectorJob``."""

from __future__ import annotations

_CLASSES = {
    "crawl.InjectorJob": "inject",
    "crawl.GeneratorJob": "generate",
    "fetcher.FetcherJob": "fetch",
    "parse.ParserJob": "parse",
    "crawl.DbUpdaterJob": "updatedb",
    "crawl.WebTableReader": "readdb",
    "host.HostInjectorJob": "hostinject",
    "host.HostDbUpdateJob": "updatehostdb",
    "host.HostDbReader": "readhostdb",
    "indexer.IndexingJob": "index",
    "indexer.CleaningJob": "clean",
    "indexer.IndexingFiltersChecker": "indexchecker",
    "indexer.solr.SolrDeleteDuplicates": "solrdedup",
    "parse.ParserChecker": "parsechecker",
    "plugin.PluginRepository": "plugin",
    "indexer.elastic.ElasticIndexerJob": "elasticindex",
    "net.URLFilterChecker": "filterchecker",
    "net.URLNormalizerChecker": "normalizerchecker",
    "protocol.RobotRulesParser": "robotsparser",
    "storage.WebTableCreator": "createtable",
    "api.NutchServer": "nutchserver",
    "webui.NutchUiServer": "serve",
}
"""Class names below ``org.apache.nutch.``; the arguments that follow are those of the command."""
_PACKAGE = "org.apache.nutch."
_ALIASES = {"webapp": "serve"}
"""Commands of Nutch 2 that have another name here and take the same arguments."""


def resolve_command(name: str) -> str:
    """Return the command of a Nutch 2 class, or of a command with another name here; any other name unchanged."""
    name = _ALIASES.get(name, name)
    return _CLASSES.get(name.removeprefix(_PACKAGE), name) if name.startswith(_PACKAGE) else name


def commands_by_class() -> dict[str, str]:
    """Return the commands by class name."""
    return {_PACKAGE + name: command for name, command in _CLASSES.items()}
