"""Files of words that properties name: synonyms, words that say little, Chinese words, what is written alike."""

from __future__ import annotations

import re
from pathlib import Path

from nutch2py.backends.analysis.opencc_variants import OPENCC, read_opencc_variants
from nutch2py.conf.configuration import Configuration, data_dir
from nutch2py.errors import ConfigurationError

_COMMENT = re.compile(r"(?<!\S)#.*")


def read_dictionaries(conf: Configuration, name: str) -> str:
    """Return the texts of the files that a property names, one after another."""
    return "\n".join(
        read_opencc_variants() if file == OPENCC else _read_dictionary(conf, name, file)
        for file in conf.get_strings(name)
    )


def strip_comments(text: str) -> str:
    r"""Return the text of a file without comments: what follows ``#`` at the beginning of a line or behind a blank.

    >>> without_comments("C#, csharp  # one of them\n# none\n")
    'C#, csharp  \n\n'
    """
    return _COMMENT.sub("", text)


def _read_dictionary(conf: Configuration, name: str, given: str) -> str:
    text = conf.resource_text(given)
    if text is None:
        path = data_dir("conf") / given  # shipped, and not in a folder that stands for the whole configuration
        path = path if path.is_file() else Path(given)
        if not path.is_file():
            raise ConfigurationError(f"{name}: there is no file {given}: correct the name or leave it out")
        text = path.read_text(encoding="utf-8-sig", errors="replace")
    return text
