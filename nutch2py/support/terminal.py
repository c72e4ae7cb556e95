"""Escapes text for terminals: the standard streams of every command pass here.

Titles, URLs and texts of the web may contain control characters, which would move the cursor, set the title of a window
or reverse the reading direction. :func:`escaped_streams` replaces standard output and standard error of a command by
streams that escape them, so that no print can forget it. Own sequences, such as colors, are of the type
:class:`StyledText`; text that is added to it loses the type and is escaped.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO, cast

_CONTROL = re.compile(
    # C0 but tab and line feed, DEL and C1; bidi controls; line and paragraph separator, deprecated format characters;
    # halves of surrogate pairs. A carriage return before a line feed is a line end of files.
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f\ufff9-\ufffb\ud800-\udfff]|\r(?!\n)"
)


class StyledText(str):
    """Text with terminal sequences of this program, in which all other text is escaped."""

    __slots__ = ()

    def __str__(self) -> StyledText:
        """Return the text itself, so that ``print`` keeps its type."""
        return self


def escape_controls(text: str) -> str:
    r"""Return text with ``\uXXXX`` for each character that controls a terminal; tabs and line ends are kept.

    JSON stays the same JSON.

    >>> escape_controls("a\x1b[2Jb\u202ec\r\n北")
    'a\\u001b[2Jb\\u202ec\r\n北'
    """
    if isinstance(text, StyledText):
        return text
    return _CONTROL.sub(lambda control: f"\\u{ord(control[0]):04x}", text)


class EscapingStream:
    """A text stream that escapes what is written to it, but :class:`StyledText`; the rest is the stream's own."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write text, escaped."""
        self._stream.write(escape_controls(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write lines, escaped."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def escaped_streams() -> Iterator[None]:
    """Escape what the block writes to standard output and standard error, files and pipes included."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (cast("TextIO", EscapingStream(stream)) for stream in before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
