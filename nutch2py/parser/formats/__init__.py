"""Parsers of the formats that Nutch reads with Tika, one module per format; all run in the worker process.

Exports: ``document_parser.DocumentParser``, ``document_parser.ParsedDocument``.
"""
