"""webgraph: the links between pages, or between hosts, as a file that programs for graphs read.

Links are those of the inlinks, which updatedb has written: both ends are pages of the table. An edge from page to page
has the anchor, one from host to host the number of links.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO
from xml.sax.saxutils import escape

from nutch2py.conf import Configuration
from nutch2py.disk import new_file
from nutch2py.errors import UsageError
from nutch2py.jobs.beginning import begin
from nutch2py.jobs.readdb_text import status_text
from nutch2py.jobs.works import reader
from nutch2py.mapreduce.driver import map_tasks, run_job
from nutch2py.mapreduce.job import Pages, Pair, TableJob
from nutch2py.mapreduce.parameters import JobParameters
from nutch2py.mapreduce.splits import range_splits
from nutch2py.record import Field
from nutch2py.reporting import tell
from nutch2py.table import DataStore, Query
from nutch2py.url.keys import host_of_key, name_of_key, unreverse_host
from nutch2py.url.parts import host_of
from nutch2py.webpage import WebPage

FORMATS = ("graphml", "edges")
_LINKS: frozenset[Field[Any]] = frozenset({WebPage.inlinks})
_NODES: frozenset[Field[Any]] = frozenset({WebPage.inlinks, WebPage.score, WebPage.status})
_HELD = 50_000  # pairs of hosts that a task holds before it gives them on
_HEAD = """\
<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
"""
_GRAPH = '<graph edgedefault="directed">\n'
_END = "</graph>\n</graphml>\n"
_KEY = '<key id="{0}" for="{1}" attr.name="{0}" attr.type="{2}"/>\n'
# what XML 1.0 has no way to write
_NO_XML = dict.fromkeys([*range(9), 11, 12, *range(14, 32), 0xFFFE, 0xFFFF, *range(0xD800, 0xE000)], "\ufffd")


class HostGraphJob(TableJob[JobParameters]):
    """Rows to numbers of links by pair of hosts, ``from<TAB>to``."""

    fields = _LINKS

    def map_pages(self, pages: Pages) -> Iterator[Pair]:
        """Yield the links of a split."""
        counts: Counter[str] = Counter()
        for key, page in pages:
            here = unreverse_host(host_of_key(key))
            for source in page.inlinks:
                counts[f"{host_of(source) or ''}\t{here}"] += 1
            if len(counts) >= _HELD:
                yield from counts.items()
                counts.clear()
        yield from counts.items()

    def reduce_groups(self, groups: Iterator[tuple[str, Iterator[Any]]]) -> Iterator[Pair]:
        """Add up."""
        for pair, counts in groups:
            yield pair, sum(counts)


def export_graph(conf: Configuration, path: Path, form: str = "graphml", *, hosts: bool = False) -> tuple[int, int]:
    """Write the graph; return how many nodes and edges it has.

    ``form``: ``graphml``, or ``edges``, lines of ``from<TAB>to<TAB>anchor or number``. A table of any size is read
    once; between hosts, the pairs that are linked have to fit into memory.
    """
    if form not in FORMATS:
        raise UsageError(f"-format {form} is none of {', '.join(FORMATS)}")
    with begin(conf, reader("webgraph")) as tables, new_file(path) as raw:
        out = io.TextIOWrapper(raw, "utf-8", "backslashreplace", newline="\n")
        write = _hosts if hosts else _pages
        nodes, edges = write(conf, tables.store, out, form == "graphml")
        out.detach()  # which flushes
    tell(f"WebGraph: {nodes} {'hosts' if hosts else 'pages'} and {edges} links in {path}")
    return nodes, edges


def _pages(_: Configuration, store: DataStore[WebPage], out: TextIO, graphml: bool) -> tuple[int, int]:
    nodes = edges = 0
    if graphml:
        out.write(_HEAD)
        keys = (("status", "node", "string"), ("score", "node", "double"), ("anchor", "edge", "string"))
        out.writelines([*(_KEY.format(*each) for each in keys), _GRAPH])
    for key, page in store.scan(Query(_NODES)):
        url = name_of_key(key)
        nodes += 1
        if graphml:
            data = f'<data key="status">{_xml(status_text(page.status))}</data><data key="score">{page.score:g}</data>'
            out.write(f'<node id="{_xml(url)}">{data}</node>\n')
        for source, anchor in page.inlinks.decoded():
            edges += 1
            if graphml:
                data = f'<data key="anchor">{_xml(anchor)}</data>'
                out.write(f'<edge source="{_xml(source)}" target="{_xml(url)}">{data}</edge>\n')
            else:
                out.write("\t".join(map(_column, (source, url, anchor))) + "\n")
    if graphml:
        out.write(_END)
    return nodes, edges


def _hosts(conf: Configuration, store: DataStore[WebPage], out: TextIO, graphml: bool) -> tuple[int, int]:
    splits = range_splits(store, Query(_LINKS), map_tasks(conf))
    result = run_job(HostGraphJob, conf, splits, title="WebGraph", expected=store.row_estimate())
    pairs = [(*pair.split("\t"), count) for pair, count in sorted(result.output)]
    hosts = sorted({host for one, other, _ in pairs for host in (one, other)})
    if graphml:
        out.write(_HEAD + _KEY.format("links", "edge", "long") + _GRAPH)
        out.writelines(f'<node id="{_xml(host)}"/>\n' for host in hosts)
    for one, other, count in pairs:
        if graphml:
            data = f'<data key="links">{count}</data>'
            out.write(f'<edge source="{_xml(one)}" target="{_xml(other)}">{data}</edge>\n')
        else:
            out.write(f"{one}\t{other}\t{count}\n")
    if graphml:
        out.write(_END)
    return len(hosts), len(pairs)


def _xml(text: str) -> str:
    return escape(text.translate(_NO_XML), {'"': "&quot;", "\t": "&#9;", "\n": "&#10;", "\r": "&#13;"})


def _column(text: str) -> str:
    return " ".join(text.split())
