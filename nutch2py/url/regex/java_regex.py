r"""Translates regular expressions of ``java.util.regex`` to :mod:`re`.

The dialects are similar. Differences are translated: flags in mid-pattern, nested and intersected character classes,
``\p{Alpha}`` and other properties, ``\Q…\E``, named groups, ``\z``. ``\d``, ``\w`` and case folding are ASCII, as in
Java.
"""

from __future__ import annotations

import re
import warnings

_POSIX = {
    "Lower": "a-z", "Upper": "A-Z", "ASCII": r"\x00-\x7f", "Alpha": "a-zA-Z", "Digit": "0-9", "Alnum": "a-zA-Z0-9",
    "Punct": r"!-/:-@\[-`{-~", "Graph": "!-~", "Print": " -~", "Blank": r" \t", "Cntrl": r"\x00-\x1f\x7f",
    "XDigit": "0-9a-fA-F", "Space": r" \t\n\x0b\f\r",
}  # fmt: skip
_UNICODE = {"L": r"[^\W\d_]", "IsL": r"[^\W\d_]", "IsAlphabetic": r"[^\W\d_]", "Nd": r"\d", "IsDigit": r"\d"}
_ESCAPES = {"z": r"\Z", "Z": r"(?=\n?\Z)", "e": r"\x1b", "h": r"[ \t\xa0]", "R": r"(?:\r\n|[\n-\r\x85\u2028\u2029])"}
_FLAGS = re.compile(r"\(\?([a-zA-Z]*)(?:-([a-zA-Z]+))?([:)])")
_PROPERTY = re.compile(r"\\([pP])(?:\{(\^?)(\w+)\}|(\w))")
_CODE_POINT = re.compile(r"\\x\{([0-9A-Fa-f]+)\}")
_GROUP = re.compile(r"\$(?:\{(\w+)\}|([0-9]+))|\\(.)|([^$\\]+)", re.DOTALL)


def compile_java(pattern: str) -> re.Pattern[str]:
    """Compile a Java pattern; raise ValueError with the reason if :mod:`re` has no equivalent."""
    try:
        translated = _Translator(pattern).translate()
    except RecursionError:
        raise ValueError("character classes are nested too deep") from None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # about set operations that later versions of re may support
        try:
            return re.compile(translated, re.ASCII)
        except (re.error, OverflowError, RecursionError) as error:
            raise ValueError(str(error)) from None


def translate_replacement(replacement: str, groups: int) -> str:
    r"""Translate a Java replacement (``$1``, ``${name}``, ``\x`` for x itself) to a template of ``re.sub``."""
    parts = []
    end = 0
    for match in _GROUP.finditer(replacement):
        if match.start() != end:
            break
        name, number, escaped, text = match.groups()
        end = match.end()
        if number:
            digits = len(number)
            while digits > 1 and int(number[:digits]) > groups:  # with fewer than 12 groups, $12 is group 1 and a 2
                digits -= 1
            parts.append(rf"\g<{int(number[:digits])}>{number[digits:]}")
        elif name:
            parts.append(rf"\g<{name}>")
        else:
            parts.append((escaped or text).replace("\\", "\\\\"))
    if end != len(replacement):
        raise ValueError(f"{replacement!r} has an invalid group reference")
    return "".join(parts)


class _Translator:
    """Single-pass translator; ``position`` is the index of the next character."""

    def __init__(self, pattern: str) -> None:
        self.pattern, self.position = pattern, 0
        self.output: list[str] = []
        self.flags: list[list[str]] = [[]]  # per open group: scopes opened by flags in mid-pattern

    def translate(self) -> str:
        handlers = {
            "\\": self._escape,
            "[": self._translate_class,
            "(": self._open,
            ")": self._close,
            "|": self._alternative,
        }
        while self.position < len(self.pattern):
            handler = handlers.get(self.pattern[self.position])
            if handler is None:
                self.output.append(self.pattern[self.position])
                self.position += 1
            else:
                handler()
        self.output.append(_closing(self.flags[0]))
        return "".join(self.output)

    def _open(self) -> None:
        match = _FLAGS.match(self.pattern, self.position)
        if match is not None and (match[1] or match[2] or match[3] == ":"):
            scope = _flag_scope(match[1], match[2] or "")
            self.output.append(scope)
            if match[3] == ")":
                self.flags[-1].append(scope)  # until the end of the enclosing group
            else:
                self.flags.append([])
            self.position = match.end()
            return
        named = self.pattern.startswith("(?<", self.position) and self.pattern[
            self.position + 3 : self.position + 4
        ] not in {"=", "!"}
        self.output.append("(?P<" if named else "(")
        self.position += 3 if named else 1
        self.flags.append([])

    def _close(self) -> None:
        if len(self.flags) == 1:
            raise ValueError(f"unmatched ')' at position {self.position}")
        self.output.append(_closing(self.flags.pop()) + ")")
        self.position += 1

    def _alternative(self) -> None:
        scopes = self.flags[-1]
        self.output.append(_closing(scopes) + "|" + "".join(scopes))
        self.position += 1

    def _escape(self) -> None:
        letter = self.pattern[self.position + 1 : self.position + 2]
        if letter == "Q":
            end = self.pattern.find("\\E", self.position)
            self.output.append(re.escape(self.pattern[self.position + 2 : end if end >= 0 else None]))
            self.position = end + 2 if end >= 0 else len(self.pattern)
        elif match := _PROPERTY.match(self.pattern, self.position):
            self.output.append(_property(match, in_class=False))
            self.position = match.end()
        elif self.pattern.startswith("\\k<", self.position):
            name = self.pattern[self.position + 3 :].partition(">")[0]
            self.output.append(f"(?P={name})")
            self.position += len(name) + 4
        elif letter in _ESCAPES:
            self.output.append(_ESCAPES[letter])
            self.position += 2
        else:
            self._simple_escape(self.output)

    def _simple_escape(self, out: list[str]) -> None:
        match = _CODE_POINT.match(self.pattern, self.position)
        if match is not None:
            out.append(re.escape(chr(int(match[1], 16))))
            self.position = match.end()
        elif self.pattern.startswith("\\c", self.position) and self.position + 2 < len(self.pattern):
            out.append(f"\\x{ord(self.pattern[self.position + 2]) ^ 64:02x}")
            self.position += 3
        else:
            out.append(self.pattern[self.position : self.position + 2])
            self.position += 2

    def _translate_class(self) -> None:
        self.output.append(self._read_class())

    def _read_class(self) -> str:
        """Read ``[…]`` and return an equivalent expression for one character."""
        start = self.position
        self.position += 1
        negated = self.pattern.startswith("^", self.position)
        self.position += negated
        operands: list[str] = []
        items: list[str] = []
        nested: list[str] = []
        first = True
        while self.position < len(self.pattern):
            character = self.pattern[self.position]
            if character == "]" and not first:
                self.position += 1
                operands.append(_union(items, nested))
                return _class_of(operands, negated)
            first = False
            if character == "[":
                nested.append(self._read_class())
            elif self.pattern.startswith("&&", self.position):
                operands.append(_union(items, nested))
                items, nested = [], []
                self.position += 2
            elif character == "\\":
                match = _PROPERTY.match(self.pattern, self.position)
                if match is not None:
                    items.append(_property(match, in_class=True))
                    self.position = match.end()
                else:
                    self._simple_escape(items)
            else:
                items.append("\\" + character if character in "&~|" else character)
                self.position += 1
        raise ValueError(f"unclosed character class at position {start}")


def _closing(scopes: list[str]) -> str:
    """Return the closing parentheses of the scopes, after a line end if a comment (flag x) could precede them."""
    return "".join("\n)" if "x" in scope else ")" for scope in scopes)


def _flag_scope(on: str, off: str) -> str:
    """Return ``(?i:`` for Java's flags, without the flags for Unicode and line ends, which do not affect URLs."""
    unknown = set(on + off) - set("ismxudU")
    if unknown:
        raise ValueError(f"unknown flag {''.join(sorted(unknown))}")
    on, off = ("".join(flag for flag in flags if flag in "ismx") for flags in (on, off))
    return f"(?{on}-{off}:" if off else f"(?{on}:"


def _property(match: re.Match[str], *, in_class: bool) -> str:
    name = match[3] or match[4]
    negated = (match[1] == "P") != bool(match[2])
    if name in _POSIX and not (negated and in_class):
        return _POSIX[name] if in_class else f"[{'^' if negated else ''}{_POSIX[name]}]"
    if name in _UNICODE and not negated and not in_class:
        # the lookahead disables re's search for a first character, which would use ASCII in spite of the "u"
        return rf"(?:(?=[\s\S])(?u:{_UNICODE[name]}))"
    raise ValueError(f"{match[0]} is not supported{' in a character class' if in_class else ''}")


def _union(items: list[str], nested: list[str]) -> str:
    choices = ([f"[{''.join(items)}]"] if items else []) + nested
    return choices[0] if len(choices) == 1 else f"(?:{'|'.join(choices)})"


def _class_of(operands: list[str], negated: bool) -> str:
    if len(operands) == 1 and operands[0].startswith("[") and not operands[0].startswith("[^"):
        return f"[^{operands[0][1:]}" if negated else operands[0]
    operands = [operand for operand in operands if operand != "(?:)"]
    both = "".join(f"(?={operand})" for operand in operands[:-1]) + operands[-1]
    return rf"(?:(?!{both})[\s\S])" if negated else f"(?:{both})"
