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
}
"""Class names below ``org.apache.nutch.``; the arguments that follow are those of the command."""
_PACKAGE = "org.apache.nutch."


def resolve_command(name: str) -> str:
    """Return the command of a Nutch 2 class, any other name unchanged."""
    return _CLASSES.get(name.removeprefix(_PACKAGE), name) if name.startswith(_PACKAGE) else name


def commands_by_class() -> dict[str, str]:
    """Return the commands by class name."""
    return {_PACKAGE + name: command for name, command in _CLASSES.items()}
