"""Reads the dictionaries that properties name: synonyms, stopwords, user words and variants."""

from __future__ import annotations

import re
from pathlib import Path

from nutch2py.backends.analysis.opencc_variants import OPENCC, read_first_opencc_variants, read_opencc_variants
from nutch2py.conf.configuration import Configuration, data_dir
from nutch2py.errors import ConfigurationError

_COMMENT = re.compile(r"(?<!\S)#.*")


def read_dictionaries(conf: Configuration, name: str, rules_version: int = 4) -> str:
    """Return the joined texts of the files that a property names; ``rules_version``: version of the text analysis."""
    return "\n".join(
        (read_opencc_variants(rules_version) if rules_version > 2 else read_first_opencc_variants())
        if file == OPENCC
        else _read_dictionary(conf, name, file)
        for file in conf.get_strings(name)
    )


def strip_comments(text: str) -> str:
    r"""Return a text without comments: from ``#`` at the start of a line or after a space to the end of the line.

    >>> strip_comments("C#, csharp  # one of them\n# none\n")
    'C#, csharp  \n\n'
    """
    return _COMMENT.sub("", text)


def _read_dictionary(conf: Configuration, name: str, file_name: str) -> str:
    text = conf.resource_text(file_name)
    if text is None:
        path = data_dir("conf") / file_name  # the shipped file, when a conf folder replaces the default one
        path = path if path.is_file() else Path(file_name)
        if not path.is_file():
            raise ConfigurationError(f"{name}: file {file_name} not found: correct the name or remove it")
        text = path.read_text(encoding="utf-8-sig", errors="replace")
    return text
