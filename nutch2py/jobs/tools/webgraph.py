"""webgraph: exports the links between pages or hosts as a graph file.

The links are the inlinks that updatedb wrote, so their targets are pages of the table. An edge between pages has the
anchor text, an edge between hosts the number of links.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO
from xml.sax.saxutils import escape

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import UsageError
from nutch2py.jobs.job_context import open_job
from nutch2py.jobs.locking.lock_scopes import make_reader_scope
from nutch2py.jobs.row_output.row_text import format_status
from nutch2py.mapreduce.driver import map_task_count, run_job
from nutch2py.mapreduce.input_splits import range_splits
from nutch2py.mapreduce.job_parameters import JobParameters
from nutch2py.mapreduce.table_job import GroupedValues, KeyValuePair, Pages, TableJob
from nutch2py.records.record import RecordField
from nutch2py.records.webpage import WebPage
from nutch2py.support.atomic_files import atomic_write
from nutch2py.support.reporting import log_line
from nutch2py.table import DataStore, TableQuery
from nutch2py.url.keys import reversed_host_of_key, unreverse_host, url_or_key
from nutch2py.url.url_parts import host_of

GRAPH_FORMATS = ("graphml", "edges")
_LINK_FIELDS: frozenset[RecordField] = frozenset({WebPage.inlinks})
_NODE_FIELDS: frozenset[RecordField] = frozenset({WebPage.inlinks, WebPage.score, WebPage.status})
_MAX_BUFFERED_PAIRS = 50_000  # host pairs that a task buffers before it emits them
_GRAPHML_START = """\
<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
"""
_GRAPH_START = '<graph edgedefault="directed">\n'
_GRAPHML_END = "</graph>\n</graphml>\n"
_KEY_ELEMENT = '<key id="{0}" for="{1}" attr.name="{0}" attr.type="{2}"/>\n'
# characters that XML 1.0 cannot represent
_INVALID_XML_CHARACTERS = dict.fromkeys(
    [*range(9), 11, 12, *range(14, 32), 0xFFFE, 0xFFFF, *range(0xD800, 0xE000)], "\ufffd"
)


class HostGraphJob(TableJob[JobParameters]):
    """Counts links by pair of hosts, ``from<TAB>to``."""

    fields = _LINK_FIELDS

    def map_pages(self, pages: Pages) -> Iterator[KeyValuePair]:
        """Yield the link counts of a split."""
        counts: Counter[str] = Counter()
        for key, page in pages:
            target_host = unreverse_host(reversed_host_of_key(key))
            for source in page.inlinks:
                counts[f"{host_of(source) or ''}\t{target_host}"] += 1
            if len(counts) >= _MAX_BUFFERED_PAIRS:
                yield from counts.items()
                counts.clear()
        yield from counts.items()

    def reduce_groups(self, groups: GroupedValues) -> Iterator[KeyValuePair]:
        """Sum the counts."""
        for pair, counts in groups:
            yield pair, sum(counts)


def export_graph(
    conf: Configuration, path: Path, graph_format: str = "graphml", *, between_hosts: bool = False
) -> tuple[int, int]:
    """Write the graph; return the numbers of nodes and edges.

    ``graph_format``: ``graphml``, or ``edges`` with lines ``from<TAB>to<TAB>anchor or number``. The table is read once.
    Between hosts the linked pairs must fit into memory.
    """
    if graph_format not in GRAPH_FORMATS:
        raise UsageError(f"-format {graph_format} is not one of {', '.join(GRAPH_FORMATS)}")
    with open_job(conf, make_reader_scope("webgraph")) as tables, atomic_write(path) as raw:
        out = io.TextIOWrapper(raw, "utf-8", "backslashreplace", newline="\n")
        write = _write_host_graph if between_hosts else _write_page_graph
        nodes, edges = write(conf, tables.store, out, graph_format == "graphml")
        out.detach()  # flushes
    log_line(f"WebGraph: {nodes} {'hosts' if between_hosts else 'pages'} and {edges} links in {path}")
    return nodes, edges


def _write_page_graph(_: Configuration, store: DataStore[WebPage], out: TextIO, graphml: bool) -> tuple[int, int]:
    nodes = edges = 0
    if graphml:
        out.write(_GRAPHML_START)
        keys = (("status", "node", "string"), ("score", "node", "double"), ("anchor", "edge", "string"))
        out.writelines([*(_KEY_ELEMENT.format(*each) for each in keys), _GRAPH_START])
    for key, page in store.scan(TableQuery(_NODE_FIELDS)):
        url = url_or_key(key)
        nodes += 1
        if graphml:
            data = f'<data key="status">{_escape_xml(format_status(page.status))}</data>'
            data += f'<data key="score">{page.score:g}</data>'
            out.write(f'<node id="{_escape_xml(url)}">{data}</node>\n')
        for source, anchor in page.inlinks.decoded_items():
            edges += 1
            if graphml:
                data = f'<data key="anchor">{_escape_xml(anchor)}</data>'
                out.write(f'<edge source="{_escape_xml(source)}" target="{_escape_xml(url)}">{data}</edge>\n')
            else:
                out.write("\t".join(map(_normalize_column, (source, url, anchor))) + "\n")
    if graphml:
        out.write(_GRAPHML_END)
    return nodes, edges


def _write_host_graph(conf: Configuration, store: DataStore[WebPage], out: TextIO, graphml: bool) -> tuple[int, int]:
    splits = range_splits(store, TableQuery(_LINK_FIELDS), map_task_count(conf))
    result = run_job(HostGraphJob, conf, splits, title="WebGraph", expected_rows=store.row_estimate())
    pairs = [(*pair.split("\t"), count) for pair, count in sorted(result.output)]
    hosts = sorted({host for one, other, _ in pairs for host in (one, other)})
    if graphml:
        out.write(_GRAPHML_START + _KEY_ELEMENT.format("links", "edge", "long") + _GRAPH_START)
        out.writelines(f'<node id="{_escape_xml(host)}"/>\n' for host in hosts)
    for one, other, count in pairs:
        if graphml:
            data = f'<data key="links">{count}</data>'
            out.write(f'<edge source="{_escape_xml(one)}" target="{_escape_xml(other)}">{data}</edge>\n')
        else:
            out.write(f"{one}\t{other}\t{count}\n")
    if graphml:
        out.write(_GRAPHML_END)
    return len(hosts), len(pairs)


def _escape_xml(text: str) -> str:
    return escape(text.translate(_INVALID_XML_CHARACTERS), {'"': "&quot;", "\t": "&#9;", "\n": "&#10;", "\r": "&#13;"})


def _normalize_column(text: str) -> str:
    return " ".join(text.split())
