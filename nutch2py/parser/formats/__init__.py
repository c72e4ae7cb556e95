"""Parsers of the formats that Nutch reads with Tika: one module a format, all run in a process that can be ended."""
