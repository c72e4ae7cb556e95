"""Fenced blocks of the documentation: what they are, and how their commands run.

The language after the fence says what a block is:

- ``console``: commands after ``$``, with their output. They run as written, and the output must match.
- ``sh``: commands of a reference page. They are parsed, and their options, properties and scripts must exist.
- ``text``: a synopsis, a file or output. Options after ``nutch2py`` must exist.
- ``python``, ``xml``, ``json``, ``toml``, ``yaml``, ``javascript``, ``html``: parsed; names of ours must exist.

A line ``<!-- not run: REASON -->`` before a console block says why its commands are parsed only.
"""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

_BLOCK = re.compile(
    r"(?:^(?P<mark> *)<!-- not run: (?P<reason>[^\n]+) -->\n)?"
    r"^(?P<indent> *)```(?P<language>[^\n]*)\n(?P<text>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)
_MEASURED = re.compile(r"(\d+ min )?\d+(\.\d+)?( ms| s\b)")
_MARK = "@@command@@"


class Block(NamedTuple):
    """A fenced block; ``reason`` says why it is not run, "" for one that is."""

    line: int
    language: str
    text: str
    reason: str


class Step(NamedTuple):
    """A command with its here-documents, and the output that the page shows."""

    command: str
    shown: str


def blocks(page: str) -> list[Block]:
    """Return the fenced blocks of a page in order."""
    found = []
    for match in _BLOCK.finditer(page):
        indent = len(match["indent"])
        text = "".join(line[indent:] if line.strip() else line for line in match["text"].splitlines(keepends=True))
        line = page.count("\n", 0, match.start("language")) + 1
        found.append(Block(line, match["language"], text, match["reason"] or ""))
    return found


def steps(text: str) -> list[Step]:
    """Return the commands of a console block; a block in another form raises ValueError."""
    if not text.startswith("$ "):
        raise ValueError(f"a block that is not run: {text[:80]}")
    found = []
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, rest = part.partition("\n")
        here = re.search(r"<<'(\w+)'$", command)
        if here:
            body, _, rest = rest.partition(f"\n{here[1]}\n")
            command = f"{command}\n{body}\n{here[1]}"
        found.append(Step(command, rest))
    return found


def steps_to_run(page: str, *, python: bool = True) -> list[Step]:
    """Return the steps of a page's console blocks, and of its Python blocks, that have no reason not to run."""
    found: list[Step] = []
    for block in blocks(page):
        if block.reason:
            continue
        if block.language == "console":
            found += steps(block.text)
        elif block.language == "python" and python:
            found.append(Step(f"python - <<'END_OF_BLOCK'\n{block.text}END_OF_BLOCK", "…\n"))
    return found


def pattern(shown: str) -> re.Pattern[str]:
    """Return what output must match: an ellipsis stands for any text, a line of it for any lines; times may differ."""
    lines = [re.escape(_MEASURED.sub("#", line)).replace("…", ".*") for line in shown.splitlines()]
    return re.compile("".join("(?:.*\n)*" if line == ".*" else f"{line}\n" for line in lines))


def normalized(output: str) -> str:
    """Return output with every measured time replaced, as :func:`pattern` expects it."""
    return _MEASURED.sub("#", output)


def run(found: Sequence[Step], folder: Path, variables: dict[str, str], *, seconds: float) -> list[str]:
    """Run steps in one shell, and return a description of each that failed or printed something else."""
    script = ["set -m", "trap 'kill $(jobs -p) 2>/dev/null' EXIT"]
    for step in found:
        script += [step.command, f"printf '%s %s\\n' '{_MARK}' $?"]
        if step.command.endswith("&"):
            script += ["sleep 3"]  # a reader is slower than a script
    done = subprocess.run(
        ["bash", "-c", "\n".join(script)], cwd=folder, env=variables, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=seconds, check=False,
    )  # fmt: skip
    # a shell reports a job that `kill` ended at a moment of its own
    lines = re.sub(r"^\[\d+\]\+? +Terminated .*\n", "", done.stdout, flags=re.MULTILINE)
    parts = re.split(rf"^{_MARK} (\d+)\n", lines, flags=re.MULTILINE)
    outputs, codes = parts[0:-1:2], parts[1::2]
    wrong = [] if len(outputs) == len(found) else [f"{len(outputs)} of {len(found)} commands ended: {parts[-1]}"]
    for step, output, code in zip(found, outputs, codes, strict=False):
        if code != "0":
            wrong.append(f"{step.command}: exit code {code}\n{output}")
        elif not pattern(step.shown).fullmatch(normalized(output.lstrip())):
            wrong.append(f"{step.command}\nshown:\n{step.shown}\nprinted:\n{output}")
    return wrong


def commands(block: Block) -> list[str]:
    """Return the command lines of a console or sh block, without output and comments."""
    if block.language == "console":
        return [step.command.partition("\n")[0] for step in steps(block.text)]
    joined = re.sub(r"\\\n\s*", " ", block.text)
    return [line for line in joined.splitlines() if line.strip() and not line.lstrip().startswith("#")]


def simple_commands(line: str) -> Iterator[list[str]]:
    """Yield the words of each command in a line of shell."""
    lexer = shlex.shlex(re.sub(r"\s+#\s.*$", "", line), posix=True, punctuation_chars=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    words: list[str] = []
    skip = False
    for word in lexer:
        if re.fullmatch(r"[();<>|&]+", word):
            if "<" in word or ">" in word:
                skip = True
                if words and words[-1] in ("1", "2"):
                    words.pop()
                continue
            if words:
                yield words
            words = []
        elif skip:
            skip = False
        else:
            words.append(word)
    if words:
        yield words
