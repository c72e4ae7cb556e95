"""Tools outside the crawl cycle: checkers, link readers, web graph, domain statistics, cluster package.

Exports: ``node_dumper.print_nodes``, ``link_db_reader.print_inlinks``, ``webgraph.export_graph``.
"""
